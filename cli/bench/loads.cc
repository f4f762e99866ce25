#include "bench/loads.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "bench/processes.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "wire/contract.h"

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

namespace {

constexpr char kConnect = 0x10;
constexpr char kConnectAccepted = 0x20;
constexpr char kPublishQos1 = 0x32;
constexpr char kPublishAcknowledged = 0x40;
constexpr std::size_t kAcknowledgementBytes = 4;
constexpr std::uint32_t kSensors = 10;  // of one publisher

void append_text(std::string& out, std::string_view text) {
  out += static_cast<char>(text.size() >> 8);
  out += static_cast<char>(text.size());
  out += text;
}

void append_length(std::string& out, std::size_t length) {
  do {
    const auto byte = static_cast<unsigned char>(length & 0x7f);
    length >>= 7;
    out += static_cast<char>(length > 0 ? byte | 0x80 : byte);
  } while (length > 0);
}

}  // namespace

Result<MqttPublisher> MqttPublisher::connect(const Endpoint& broker, const std::string& client_id,
                                             std::uint32_t window) {
  MqttPublisher publisher;
  publisher.window_ = window;
  EC_TRY(publisher.connection_.open(broker));
  std::string body;
  append_text(body, "MQTT");
  body += '\x04';                // 3.1.1
  body += '\x02';                // clean session
  body += std::string(2, '\0');  // no keep-alive
  append_text(body, client_id);
  std::string packet(1, kConnect);
  append_length(packet, body.size());
  EC_TRY(publisher.connection_.send(packet + body));
  std::string& answer = publisher.incoming_;
  while (answer.size() < kAcknowledgementBytes) {
    EC_ASSIGN_OR_RETURN(const std::size_t got, publisher.connection_.receive(answer));
    if (got == 0) return unavailable("the broker closed the connection");
  }
  if (answer[0] != kConnectAccepted || answer[3] != 0) return not_allowed("the broker refused us");
  answer.erase(0, kAcknowledgementBytes);
  return publisher;
}

Status MqttPublisher::publish(std::string_view topic, std::string_view payload) {
  if (++packet_id_ == 0) packet_id_ = 1;
  outgoing_ += kPublishQos1;
  append_length(outgoing_, 2 + topic.size() + 2 + payload.size());
  append_text(outgoing_, topic);
  outgoing_ += static_cast<char>(packet_id_ >> 8);
  outgoing_ += static_cast<char>(packet_id_);
  outgoing_ += payload;
  ++queued_;
  if (queued_ + unacknowledged_ < window_) return ok();
  EC_TRY(send_queued());
  // Half a window at a time: the broker always has some, and no call carries a single message.
  while (unacknowledged_ > window_ / 2) EC_TRY(receive_acknowledgements());
  return ok();
}

Status MqttPublisher::finish() {
  EC_TRY(send_queued());
  while (unacknowledged_ > 0) EC_TRY(receive_acknowledgements());
  return ok();
}

Status MqttPublisher::send_queued() {
  EC_TRY(connection_.send(outgoing_));
  outgoing_.clear();
  unacknowledged_ += queued_;
  queued_ = 0;
  return ok();
}

Status MqttPublisher::receive_acknowledgements() {
  EC_TRY(check_interrupt());
  EC_ASSIGN_OR_RETURN(const std::size_t got, connection_.receive(incoming_, 4096));
  if (got == 0) return unavailable("the broker closed the connection");
  std::size_t taken = 0;
  for (; incoming_.size() - taken >= kAcknowledgementBytes; taken += kAcknowledgementBytes) {
    if (incoming_[taken] != kPublishAcknowledged || unacknowledged_ == 0) {
      return io_error("the broker sent what is no acknowledgement");
    }
    --unacknowledged_;
  }
  incoming_.erase(0, taken);
  return ok();
}

namespace {

Status publish_part(const Endpoint& broker, std::uint32_t number, std::uint64_t messages,
                    const MqttLoad& load) {
  const std::string name = "node-" + std::to_string(number);
  EC_ASSIGN_OR_RETURN(MqttPublisher publisher,
                      MqttPublisher::connect(broker, "edgecase-bench-" + name, load.window));
  std::vector<std::string> topics;
  for (std::uint32_t i = 0; i < kSensors; ++i) {
    topics.push_back("sensors/" + name + "/s" + std::to_string(i));
  }
  SeededRandom random(load.seed + number);
  for (std::uint64_t i = 0; i < messages; ++i) {
    const std::uint64_t tenths = 150 + random.below(150);
    std::string payload = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
    if (load.payload_bytes > 0) payload.resize(load.payload_bytes, 'x');
    EC_TRY(publisher.publish(topics[i % kSensors], payload));
  }
  return publisher.finish();
}

}  // namespace

Result<double> publish_all(const Endpoint& broker, const MqttLoad& load) {
  Mutex mutex;
  Status first;
  std::vector<std::thread> threads;
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t i = 0; i < load.publishers; ++i) {
    const std::uint64_t part =
        load.messages * (i + 1) / load.publishers - load.messages * i / load.publishers;
    threads.emplace_back([&, i, part] {
      Status status = publish_part(broker, i, part, load);
      const MutexLock lock(mutex);
      if (first.ok()) first = std::move(status);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (!first.ok()) return first;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

namespace {

// What YCSB scrambles over, and the sum for so many items, which takes a minute to add up.
constexpr std::uint64_t kScrambledItems = 10'000'000'000;
constexpr double kScrambledZeta = 26.46902820178302;

double zeta_part(std::uint64_t from, std::uint64_t to) {
  double sum = 0;
  for (std::uint64_t i = from; i < to; ++i) {
    sum += 1 / std::pow(static_cast<double>(i + 1), Zipfian::kConstant);
  }
  return sum;
}

// In [0, 1).
double uniform(Random& random) {
  return static_cast<double>(random.next() >> 11) * 0x1p-53;
}

}  // namespace

std::uint64_t ycsb_hash(std::uint64_t number) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (int i = 0; i < 8; ++i) {
    hash ^= number & 0xFF;
    hash *= 0x100000001B3;
    number >>= 8;
  }
  // YCSB's numbers are signed, and it takes the absolute value.
  return hash >> 63 == 0 ? hash : ~hash + 1;
}

Zipfian::Zipfian(std::uint64_t items) : Zipfian(items, zeta_part(0, items)) {}

Zipfian::Zipfian(std::uint64_t items, double zeta) : items_(items), zeta_(zeta) {
  prepare();
}

void Zipfian::prepare() {
  const double two = zeta_part(0, 2);
  eta_ = (1 - std::pow(2.0 / static_cast<double>(items_), 1 - kConstant)) / (1 - two / zeta_);
}

void Zipfian::grow(std::uint64_t items) {
  if (items <= items_) return;
  zeta_ += zeta_part(items_, items);
  items_ = items;
  prepare();
}

std::uint64_t Zipfian::next(Random& random) {
  const double u = uniform(random);
  const double part = u * zeta_;
  if (part < 1) return 0;
  if (part < 1 + std::pow(0.5, kConstant)) return std::min<std::uint64_t>(1, items_ - 1);
  const double rank =
      static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kConstant));
  return std::min(static_cast<std::uint64_t>(rank), items_ - 1);
}

ScrambledZipfian::ScrambledZipfian(std::uint64_t items)
    : items_(items), ranks_(kScrambledItems, kScrambledZeta) {}

std::uint64_t ScrambledZipfian::next(Random& random) {
  return ycsb_hash(ranks_.next(random)) % items_;
}

std::uint64_t InsertSequence::take() {
  const MutexLock lock(mutex_);
  return next_++;
}

void InsertSequence::written(std::uint64_t number) {
  const MutexLock lock(mutex_);
  ahead_.insert(number);
  while (!ahead_.empty() && *ahead_.begin() == limit_) {
    ahead_.erase(ahead_.begin());
    ++limit_;
  }
}

std::uint64_t InsertSequence::limit() const {
  const MutexLock lock(mutex_);
  return limit_;
}

std::uint64_t Latest::next(Random& random, std::uint64_t limit) {
  if (limit > items_) {
    ages_.grow(limit);
    items_ = limit;
  }
  return limit - 1 - std::min(ages_.next(random), limit - 1);
}

}  // namespace edgecase::cli::bench
