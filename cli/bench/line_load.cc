#include "bench/line_load.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "bench/interrupt.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// One connection's work: takes requests until there are none.
Status send_some(HttpClient& client, const std::vector<std::string>& requests,
                 std::atomic<std::size_t>& next, SteadyClock::time_point start, double seconds,
                 LoadResult& own) {
  for (;;) {
    EC_TRY(check_interrupt());
    if (seconds > 0 && seconds_since(start) >= seconds) return ok();
    const std::size_t index = next.fetch_add(1);
    if (index >= requests.size()) return ok();
    const auto begun = SteadyClock::now();
    std::string body;
    EC_ASSIGN_OR_RETURN(const HttpAnswer answer,
                        client.exchange(requests[index], [&body](std::string_view piece) {
                          body.append(piece.substr(0, 200));
                        }));
    if (answer.status / 100 != 2) {
      return io_error("HTTP " + std::to_string(answer.status) + " to a request: " + body);
    }
    own.latency.add(static_cast<std::uint64_t>((SteadyClock::now() - begun).count()));
    own.bytes += requests[index].size() - requests[index].find("\r\n\r\n") - 4;
    ++own.requests;
  }
}

}  // namespace

std::vector<std::string> make_write_requests(const std::vector<std::string>& bodies,
                                             const std::string& database) {
  std::vector<std::string> requests;
  requests.reserve(bodies.size());
  for (const std::string& body : bodies) {
    requests.push_back(http_request("POST", "/write?db=" + database,
                                    "Content-Type: text/plain; charset=utf-8\r\n", body));
  }
  return requests;
}

Result<LoadResult> send_all(const Endpoint& endpoint, const std::vector<std::string>& requests,
                            std::uint32_t connections, double seconds,
                            const std::function<Status()>& begin) {
  LoadResult total;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  Status first;
  std::vector<HttpClient> clients;
  clients.reserve(connections);
  for (std::uint32_t i = 0; i < connections; ++i) clients.emplace_back(endpoint);
  // Keys are agreed on once a connection, before the clock runs.
  for (HttpClient& client : clients) {
    if (endpoint.tls) EC_TRY(client.get(wire::routes::kReadyz).status());
  }
  if (begin) EC_TRY(begin());
  std::vector<std::thread> threads;
  const auto start = SteadyClock::now();
  for (HttpClient& client : clients) {
    threads.emplace_back([&] {
      const auto own = std::make_unique<LoadResult>();
      Status status = send_some(client, requests, next, start, seconds, *own);
      const std::lock_guard lock(mutex);
      if (!status.ok()) next = requests.size();  // the others need not go on
      if (first.ok()) first = std::move(status);
      total.requests += own->requests;
      total.bytes += own->bytes;
      total.latency.merge(own->latency);
    });
  }
  for (std::thread& thread : threads) thread.join();
  total.seconds = seconds_since(start);
  if (!first.ok()) return first;
  return total;
}

Status create_database(const Endpoint& endpoint, const std::string& database) {
  HttpClient client(endpoint);
  std::string body;
  EC_ASSIGN_OR_RETURN(
      const HttpAnswer answer,
      client.exchange(http_request("POST", "/query?q=CREATE%20DATABASE%20" + database, "", ""),
                      [&body](std::string_view piece) { body.append(piece); }));
  if (answer.status != 200) {
    return io_error("HTTP " + std::to_string(answer.status) + " to CREATE DATABASE: " + body);
  }
  return ok();
}

}  // namespace edgecase::cli::bench
