// Loads that a bench makes: lines over HTTP for a daemon, TSBS's trucks among them, messages over
// MQTT for a broker, and the keys, values, clocks and distributions of the workloads on a store.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench/raw_connection.h"
#include "bench/workloads.h"
#include "edgecase/bytes.h"
#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"

namespace edgecase::cli::bench {

// Readings as Influx line protocol, made beforehand, and what sends them: over several keep-alive
// connections, waiting for every answer.
struct SensorLineOptions {
  std::uint64_t lines = 0;
  std::uint32_t lines_per_body = 1'000;
  std::uint32_t devices = 100;  // lines go round the devices; each round is one second
  std::uint32_t fields = 10;    // of one line
  std::uint64_t seed = 1;
  std::int64_t start_ns = 1'763'596'800'000'000'000;  // 2025-11-20T00:00:00Z
};

// One body after another; the caller takes them in turn.
std::vector<std::string> make_sensor_bodies(const SensorLineOptions& options);

struct LoadResult {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;  // of the bodies
  Histogram latency;        // of a request
};

// POST /write?db=<database>, one a body.
std::vector<std::string> make_write_requests(const std::vector<std::string>& bodies,
                                             const std::string& database);

// Each request goes once, in order, to whichever connection is free. Every answer must be 2xx. With
// `seconds` above 0 it stops after them. `begin` is called once connections over TLS have agreed on
// their keys, before the first request. Cancelled on Ctrl-C.
Result<LoadResult> send_all(const Endpoint& endpoint, const std::vector<std::string>& requests,
                            std::uint32_t connections, double seconds,
                            const std::function<Status()>& begin = nullptr);

// Makes the database where the server wants that: POST /query?q=CREATE DATABASE.
Status create_database(const Endpoint& endpoint, const std::string& database);

// One publisher's connection; used by one thread.
class MqttPublisher {
 public:
  static constexpr std::uint32_t kWindow = 100;

  // Connects with a clean session. At most `window` messages are on their way.
  static Result<MqttPublisher> connect(const Endpoint& broker, const std::string& client_id,
                                       std::uint32_t window = kWindow);

  // Queues one message; sends when enough are queued, and waits while the window is full.
  Status publish(std::string_view topic, std::string_view payload);
  // Sends what is queued and waits for every acknowledgement.
  Status finish();

 private:
  Status send_queued();
  Status receive_acknowledgements();

  std::uint32_t window_ = kWindow;
  RawConnection connection_;
  std::string outgoing_;
  std::string incoming_;
  std::uint32_t queued_ = 0;
  std::uint32_t unacknowledged_ = 0;
  std::uint16_t packet_id_ = 0;
};

// Publishers that cost next to nothing: MQTT 3.1.1 at QoS 1 over plain sockets, a window of
// messages in flight each.
struct MqttLoad {
  std::uint32_t publishers = 1;
  std::uint64_t messages = 0;  // of all publishers together
  std::uint64_t seed = 1;
  std::uint32_t payload_bytes = 0;  // a text of that length that begins with a number; 0: a number
  std::uint32_t window = MqttPublisher::kWindow;
};
// Each publisher in a thread of its own publishes as sensors/node-<p>/s<k>, everything acknowledged
// on return; how long that took, in seconds.
Result<double> publish_all(const Endpoint& broker, const MqttLoad& load);

inline std::uint64_t ns_since(std::chrono::steady_clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
}

// Decimal, as wide as the key: the order of bytes is the order of numbers.
class KeyMaker {
 public:
  explicit KeyMaker(std::uint32_t size) : key_(size, '0') {}
  ByteView of(std::uint64_t number) {
    for (std::size_t i = key_.size(); i-- > 0; number /= 10) {
      key_[i] = static_cast<char>('0' + number % 10);
    }
    return key_;
  }
  // A key that no fill writes, between two that one may have written.
  ByteView missing(std::uint64_t number) {
    of(number);
    key_.back() = static_cast<char>(key_.back() - '0' + 'a');
    return key_;
  }

 private:
  Bytes key_;
};

// Slices of a block of bytes, of each hundred of which `ratio` are random: next to nothing to make.
class ValueMaker {
 public:
  ValueMaker(std::uint64_t seed, std::uint32_t size, double ratio) : size_(size) {
    constexpr std::size_t kRun = 100;
    SeededRandom random(seed);
    block_.resize(size + kSpread);
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const bool random_byte = static_cast<double>(i % kRun) < ratio * kRun;
      block_[i] = random_byte ? static_cast<char>(random.next()) : 'v';
    }
  }
  ByteView of(std::uint64_t number) const {
    return ByteView(block_).substr(number * kStep % kSpread, size_);
  }

 private:
  static constexpr std::size_t kSpread = 64u << 10;
  // By the golden ratio: as many neighbours as make 16 KiB share no byte, or they could be
  // compressed together.
  static constexpr std::uint64_t kStep = 40503;
  std::size_t size_;
  Bytes block_;
};

// Times one operation in `stride`, and of those between two the longest cannot hide: the time they
// all took counts towards the maximum. Reading the clock around each of them would be a good part
// of what is measured.
class LatencySampler {
 public:
  LatencySampler(Histogram& histogram, std::uint32_t stride)
      : histogram_(histogram), stride_(stride) {}

  void begin() {
    if (left_ > 0) return;
    const auto now = Clock::now();
    if (sampled_) histogram_.note_max(ns_between(before_, now));
    before_ = now;
  }
  void end() {
    if (left_ > 0) {
      --left_;
      return;
    }
    const auto now = Clock::now();
    histogram_.add(ns_between(before_, now));
    before_ = now;
    sampled_ = stride_ > 1;
    left_ = stride_ - 1;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static std::uint64_t ns_between(Clock::time_point from, Clock::time_point to) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
  }

  Histogram& histogram_;
  const std::uint32_t stride_;
  std::uint32_t left_ = 0;  // operations that are not timed
  bool sampled_ = false;
  Clock::time_point before_;
};

// The distributions of YCSB (Cooper et al., SoCC 2010) by its own arithmetic, so that a hot key
// here is as hot as there. tests/cli/bench/store_load_test.cc holds them against what its program
// draws.

// YCSB's hash of a number: FNV-1a of the eight bytes, the sign bit dropped.
std::uint64_t ycsb_hash(std::uint64_t number);

// 0 is drawn most often, then 1, …: probability of rank r as 1 / (r + 1)^0.99, by the method of
// Gray et al. (SIGMOD 1994). Not thread-safe.
class Zipfian {
 public:
  static constexpr double kConstant = 0.99;

  explicit Zipfian(std::uint64_t items);
  // The sum of 1 / i^0.99 over all items is known already.
  Zipfian(std::uint64_t items, double zeta);

  std::uint64_t next(Random& random);
  // More items from now on: only the new ones are added up.
  void grow(std::uint64_t items);

 private:
  void prepare();

  std::uint64_t items_;
  double zeta_;
  double eta_ = 0;
};

// The hot items lie anywhere: a zipfian rank among 10^10, hashed, so flatter than Zipfian over the
// items themselves.
class ScrambledZipfian {
 public:
  explicit ScrambledZipfian(std::uint64_t items);
  std::uint64_t next(Random& random);

 private:
  const std::uint64_t items_;
  Zipfian ranks_;
};

// Which records there are while several threads insert: those below limit() are all written.
// Thread-safe.
class InsertSequence {
 public:
  explicit InsertSequence(std::uint64_t first) : next_(first), limit_(first) {}
  std::uint64_t take();
  void written(std::uint64_t number);
  std::uint64_t limit() const;

 private:
  mutable Mutex mutex_;
  std::uint64_t next_ EC_GUARDED_BY(mutex_);
  std::uint64_t limit_ EC_GUARDED_BY(mutex_);
  std::set<std::uint64_t> ahead_ EC_GUARDED_BY(mutex_);  // written, but not all before them
};

// The newest is drawn most often.
class Latest {
 public:
  explicit Latest(std::uint64_t items) : ages_(items), items_(items) {}
  // Draws from the numbers below `limit`, which never gets less.
  std::uint64_t next(Random& random, std::uint64_t limit);

 private:
  Zipfian ages_;
  std::uint64_t items_;
};

// A private server of another make; gone at the end of its scope.
class Server {
 public:
  virtual ~Server() = default;
  virtual Endpoint endpoint() const = 0;
  virtual pid_t id() const = 0;
};
// `parent` is where its directory is made. Unavailable when it is not installed.
using StartServer = Result<std::unique_ptr<Server>>(const std::string& parent);

// The run with the median rate; operations are lines. With `--peer influxdb` and `start_influx`,
// its figures and the ratio to it, too.
Result<Report> ingest_http_beside(StartServer* start_influx, const BenchOptions& options);

struct TruckLineOptions {
  std::uint64_t lines = 0;
  std::uint32_t lines_per_body = 1'000;
  std::uint32_t trucks = 100;
  std::uint64_t seed = 1;
  std::int64_t start_ns = 1'763'596'800'000'000'000;  // 2025-11-20T00:00:00Z
};

// The stream of TSBS's IoT use case as Influx line protocol: trucks that tell every ten seconds
// where they are (`readings`) and how they are (`diagnostics`), over links that lose lines, delay
// them and let single values go missing. The same seed gives the same bytes.
//
// As there, lines are drawn ten at a time, all trucks' readings of an instant and then all their
// diagnostics: of these batches 1 % is missing and 5 % wait, each to come back in the place of a
// later batch with a chance of one half; of a batch's first ten lines a tenth is missing and 30 %
// of the others wait, to come back likewise, and then perhaps be missing or wait again; a tenth of
// the others lacks one field, and 1 % a tag. What counts as a number there (capacities) is a field.
// Values walk within the same bounds by steps of the same size, with as many digits.
struct TruckLines {
  std::vector<std::string> bodies;
  std::uint64_t fields = 0;  // of all lines
  std::uint64_t drawn = 0;   // lines that there would be if none were missing, late ones included
};

TruckLines make_truck_lines(const TruckLineOptions& options);

}  // namespace edgecase::cli::bench
