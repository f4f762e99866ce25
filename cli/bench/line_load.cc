#include "bench/line_load.h"

#include <atomic>
#include <charconv>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/interrupt.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"
#include "wire/routes.h"

namespace edgecase::cli::bench {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

struct Field {
  const char* name;
  std::int64_t start;  // in units of the last decimal
  int decimals;
  std::uint64_t step;  // at most, from one reading to the next
};

// What a weather and energy node reports.
constexpr Field kLineFields[] = {
    {"temperature", 215, 1, 2}, {"humidity", 482, 1, 4}, {"pressure", 10132, 1, 1},
    {"co2", 640, 0, 9},         {"light", 3100, 0, 120}, {"voltage", 23010, 2, 25},
    {"current", 145, 2, 12},    {"power", 3330, 1, 60},  {"battery", 987, 1, 1},
    {"signal", 67, 0, 3},
};
constexpr std::size_t kFieldCount = sizeof kLineFields / sizeof kLineFields[0];

void append_number(std::string& out, std::int64_t number) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

void append_decimal(std::string& out, std::int64_t number, int decimals) {
  std::int64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  if (number < 0) {
    out += '-';
    number = -number;
  }
  append_number(out, number / scale);
  if (decimals == 0) return;
  out += '.';
  std::string rest = std::to_string(number % scale);
  out.append(static_cast<std::size_t>(decimals) - rest.size(), '0').append(rest);
}

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

std::vector<std::string> make_sensor_bodies(const SensorLineOptions& options) {
  SeededRandom random(options.seed);
  std::vector<std::int64_t> walks;
  for (std::uint32_t device = 0; device < options.devices; ++device) {
    for (std::uint32_t i = 0; i < options.fields; ++i) {
      const Field& field = kLineFields[i % kFieldCount];
      const auto spread = static_cast<std::uint64_t>(field.start / 5 + 1);
      walks.push_back(field.start + static_cast<std::int64_t>(random.below(spread)));
    }
  }
  std::vector<std::string> bodies;
  for (std::uint64_t line = 0; line < options.lines; ++line) {
    if (line % options.lines_per_body == 0) bodies.emplace_back();
    std::string& body = bodies.back();
    const std::uint64_t device = line % options.devices;
    body += "node,device=node-";
    append_number(body, static_cast<std::int64_t>(device));
    for (std::uint32_t i = 0; i < options.fields; ++i) {
      const Field& field = kLineFields[i % kFieldCount];
      std::int64_t& walk = walks[device * options.fields + i];
      walk += static_cast<std::int64_t>(random.below(2 * field.step + 1)) -
              static_cast<std::int64_t>(field.step);
      body += i == 0 ? ' ' : ',';
      body += field.name;
      if (i >= kFieldCount) append_number(body, static_cast<std::int64_t>(i / kFieldCount));
      body += '=';
      append_decimal(body, walk, field.decimals);
    }
    body += ' ';
    append_number(body, options.start_ns + static_cast<std::int64_t>(line / options.devices) *
                                               kNanosecondsPerSecond);
    body += '\n';
  }
  return bodies;
}

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
  Mutex mutex;
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
      const MutexLock lock(mutex);
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
