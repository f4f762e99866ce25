// The front: listeners, connections, deadlines and byte budgets.
//
// One poller thread accepts, receives, and sends what small answers left over; a connection that is
// idle, slow, or being refused costs no more than its memory. A worker thread gets a request only
// when it is complete, undoes its compression, and has the router answer it. A request that cannot
// be served is refused with its error and the connection closed.
//
// An answer that must not leave before something is durable (Exchange::settlement) is held, and its
// worker goes on. One worker at a time settles all that are held: once they are as many as the last
// time and nobody is served, or the oldest has been held for a fraction of a millisecond, so that
// few syncs do for many. What others made durable leaves as soon as a worker sees it. There is a
// worker more than may serve: whoever settles takes the place of none.
//
// Workers belong to lanes (lanes.h): whatever else goes on, there is one for who asks for health or
// metrics, and one for readings that come. What reads has threads of its own, made as they are
// needed, up to http.readers, of a lower priority; few of them work at once (ReadSlots), by turns,
// and what a client that has left asked for is dropped. Where http.connections / 2 reads wait for a
// thread, or one has for too long, that is refused.
//
// An answer that is long keeps its reader's thread while the client is slow, so that there is
// always one that sends none. A request that only reads, and comes to another one, waits for its
// turn without a worker: it is asked once more when a long answer has ended, those first that wait
// longest; refused where none has in time.
//
// A worker that has answered, and has nothing else to do, receives the next request of that
// connection itself where it comes within half a millisecond: for who asks one after the other, the
// way by the poller costs as much as a small request. One worker does so at a time.
//
// A connection belongs to the poller, except from the queue until its worker is done with it
// (Stage::Serving), held, waiting or not. Stages change under the mutex, and whoever owns a
// connection reads its own without; each epoll registration fires once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "edgecase/machine.h"
#include "edgecase/mutex.h"
#include "edgecase/status.h"
#include "http/lanes.h"
#include "http/request_reader.h"
#include "http/router.h"
#include "net/budgets.h"
#include "net/channel.h"

namespace edgecase::http {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

struct FrontOptions {
  std::uint32_t threads = 4;   // workers
  std::uint32_t readers = 80;  // threads that read, at most
  std::uint32_t connections = 256;
  std::uint32_t connections_per_address = 65'536;  // over TCP
  HeadLimits head;
  std::uint64_t body_limit_bytes = 16u << 20;
  std::uint64_t in_flight_limit_bytes = 24u << 20;

  std::int64_t idle_ns = 75 * kSecondNs;               // between requests
  std::int64_t head_ns = 10 * kSecondNs;               // from a head's first byte to its last
  std::int64_t body_grace_ns = 10 * kSecondNs;         // for a body, and for any more of it, and
  std::uint64_t body_bytes_per_second_min = 1u << 10;  // a second more for so many bytes
  // Where connections are short, who is behind this pace for so long goes.
  std::int64_t slow_ns = kSecondNs;
  std::uint64_t slow_bytes_per_second = 8u << 10;
  std::int64_t write_grace_ns = 10 * kSecondNs;  // without a reader's progress
  // For a turn to send a long answer: longer than readers that read nothing keep one.
  std::int64_t long_wait_ns = 15 * kSecondNs;
  std::uint32_t waiting = 128;            // reads that wait for that, or are served
  std::int64_t close_ns = 2 * kSecondNs;  // for the client to read a last answer and close
  std::int64_t stop_grace_ns = 5 * kSecondNs;
  std::int64_t sweep_ns = kSecondNs;  // how often deadlines are looked at
  // Told when a body has come to kLargeBodyBytes, and may go on, at most every large_body_ns.
  std::function<void()> on_large_body = {};
  std::function<std::string()> date = {};  // of refusals: refusal_text()
  std::int64_t large_body_ns = kSecondNs / 4;
};
inline constexpr std::uint64_t kLargeBodyBytes = 2u << 20;
inline constexpr std::size_t kWaitingBodyMaxBytes = 64u << 10;  // of who waits for a turn

struct FrontListener {
  net::Socket socket;
  net::ListenerKind kind = net::ListenerKind::Tcp;
  net::ChannelMaker channels = {};
};

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

class Front {
 public:
  // `router` must have all its routes, and outlive the front.
  static Result<std::unique_ptr<Front>> start(const FrontOptions& options,
                                              std::vector<FrontListener> listeners, Router& router);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Accepts nothing more, lets running requests finish for stop_grace_ns, then cuts them off.
  void stop();

  std::uint64_t connections() const { return connection_count_.load(std::memory_order_relaxed); }
  std::uint64_t in_flight_bytes() const { return budget_.used_bytes(); }
  // Requests that the worker received that had answered their client just before.
  std::uint64_t received_at_once() const {
    return received_at_once_.load(std::memory_order_relaxed);
  }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static std::int64_t now_ns() { return system_clock().boot_ns(); }

  enum class Stage : unsigned char {
    Reading,   // a request, or idle
    Serving,   // in the queue, with a worker, held, or waiting for a turn
    Flushing,  // an answer waits for its reader
    Draining,  // the last answer is out: waiting for the client to close
    Cut,       // to be closed by the poller
  };
  enum class Phase : unsigned char { Idle, Head, Body };

  struct Connection {
    Connection(std::uint64_t number, std::unique_ptr<net::Channel> accepted, auth::Principal who,
               bool is_limited, Front& front)
        : id(number),
          channel(std::move(accepted)),
          channel_share(front.budget_),
          turn(front.long_answers_),
          principal(std::move(who)),
          address_share(is_limited
                            ? std::make_unique<net::AddressShare>(front.addresses_, principal.name)
                            : nullptr),
          reader(front.budget_, static_cast<std::size_t>(front.options_.body_limit_bytes),
                 front.options_.head) {}

    const std::uint64_t id;
    const std::unique_ptr<net::Channel> channel;
    net::BudgetShare channel_share;
    std::optional<ReceivedRequest> waiting;  // that is asked once more
    net::BudgetShare turn;                   // that it was given
    std::int64_t waits_until_ns = 0;
    auth::Principal principal;
    const std::unique_ptr<net::AddressShare> address_share;  // null: no limit
    RequestReader reader;
    Lane lane = Lane::Prompt;    // of the request that is served
    std::int64_t queued_ns = 0;  // when it joined the queue
    bool is_turned_away = false;
    bool is_named = false;  // by its certificate, as far as it has shown one
    Stage stage = Stage::Reading;
    Phase phase = Phase::Idle;
    bool has_asked = false;  // a whole request
    std::int64_t phase_began_ns = 0;
    std::int64_t progress_ns = 0;      // when its body had grown to
    std::uint64_t progress_bytes = 0;  // so many bytes
    std::int64_t deadline_ns = 0;
    std::string output;
    std::deque<WatchedPart> parts;  // of output
    bool close_after_output = false;
    std::uint64_t drained_bytes = 0;
  };

  enum class By : unsigned char { Worker, Reader };  // whose thread it is
  enum class Answered : unsigned char { Whole, Broken, NotYet };

  struct HeldAnswer {
    Connection* connection = nullptr;
    Settlement settlement;
    std::string target;  // of the request
  };

  Front(const FrontOptions& options, std::vector<FrontListener> listeners, Router& router);
  Status open_poll();
  void start_threads();

  // Poller.
  void poll_loop() EC_EXCLUDES(mutex_);
  int poll_timeout_ms() const;
  void accept_some(std::size_t listener);
  void admit(net::Socket accepted, const FrontListener& listener);
  bool take_channel_bytes(Connection& connection, std::uint64_t bytes);
  bool make_room(const std::string& network = {});
  bool is_slow(const Connection& connection) const;
  static bool gives_way_before(const Connection& one, const Connection& other);
  std::string refusal_of(std::string_view target, const Refusal& refusal) const {
    return refusal_text(target, refusal, options_.date ? options_.date() : std::string());
  }
  static Refusal address_overloaded() {
    return overloaded(
        "this address has as many connections open as http.connections-per-address "
        "allows");
  }
  Answered refuse_request(Connection& connection, const RequestHead& head, const Refusal& refusal) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    connection.output += refusal_of(head.target, refusal);
    connection.close_after_output = true;
    return Answered::Whole;
  }
  static Refusal too_slow(const Connection& connection, const char* why);
  bool is_address_full(const std::string& address);
  void pause_accepting();
  void on_ready(Connection& connection);
  void receive(Connection& connection);
  void note_large_body(std::uint64_t bytes_before, const RequestReader& reader);
  void drain(Connection& connection);
  void flush(Connection& connection);
  void proceed(Connection& connection, RequestReader::Progress progress);
  void refuse(Connection& connection, const Refusal& refusal);
  void expire(Connection& connection);
  void sweep();
  bool stop_poller();
  void end_waiting(std::int64_t due_by_ns);
  void close_connection(std::uint64_t id) {
    connections_.erase(id);
    connection_count_ = connections_.size();
  }
  void drop_revoked();

  // Both, for a connection that is theirs.
  static void reset_on_close(Connection& connection);
  static bool drop_revoked(Connection& connection);
  void await(Connection& connection, Stage stage) EC_EXCLUDES(mutex_);
  std::int64_t reading_deadline(Connection& connection) const;
  void enqueue(Connection& connection) EC_EXCLUDES(mutex_);

  // Workers.
  // Those that need the mutex let it go for what takes long.
  void work() EC_EXCLUDES(mutex_);
  void read() EC_EXCLUDES(mutex_);  // of Lane::Reads
  std::uint32_t serving(Lane lane) const EC_REQUIRES(mutex_) {
    return serving_[static_cast<std::size_t>(lane)];
  }
  bool may_serve(Lane lane) const EC_REQUIRES(mutex_);
  Connection* take_queued(std::span<const Lane> lanes) EC_REQUIRES(mutex_);
  bool are_any_queued() const EC_REQUIRES(mutex_);
  bool serve_counted(Connection& connection) EC_REQUIRES(mutex_);
  void push_queued(Connection& connection) EC_REQUIRES(mutex_);
  void wake_reader() EC_REQUIRES(mutex_);
  bool refuse_read(Connection& connection, const char* why);
  void rest() EC_REQUIRES(mutex_);
  void wake_worker() EC_REQUIRES(mutex_);
  bool serve(Connection& connection, bool may_wait);  // as finish()
  Answered answer(Connection& connection, ReceivedRequest& request, bool may_wait,
                  Settlement& settlement);
  void wait_for_turn(Connection& connection, ReceivedRequest request);
  void give_turns() EC_REQUIRES(mutex_);
  void hold(HeldAnswer answer) EC_EXCLUDES(mutex_);
  bool are_together() const EC_REQUIRES(mutex_);
  bool release_held(By by) EC_REQUIRES(mutex_);
  std::vector<HeldAnswer> take_held(std::size_t count) EC_REQUIRES(mutex_);
  void settle_all(std::vector<HeldAnswer>& group);
  bool finish(Connection& connection);
  void refuse_next(Connection& connection);
  void stay_with(Connection& connection, By by) EC_REQUIRES(mutex_);
  bool receive_next(Connection& connection, std::size_t& used_bytes);

  const FrontOptions options_;
  std::vector<FrontListener> listeners_;
  Router& router_;
  net::ByteBudget budget_;
  net::AddressLimit addresses_;
  net::ByteBudget long_answers_;
  net::Socket poll_;
  net::Socket wake_;

  Mutex mutex_;  // stages, the queues, what is held
  CondVar queued_;
  std::array<std::deque<Connection*>, kLanes> queues_ EC_GUARDED_BY(mutex_);
  // For a turn to send a long answer, those longest first.
  std::deque<Connection*> waiting_ EC_GUARDED_BY(mutex_);
  std::array<std::uint32_t, kLanes> serving_ EC_GUARDED_BY(mutex_){};
  CondVar read_due_;
  std::uint32_t resting_readers_ EC_GUARDED_BY(mutex_) = 0;
  // Readers that were told and have not looked yet.
  std::uint32_t called_readers_ EC_GUARDED_BY(mutex_) = 0;
  std::uint32_t resting_ EC_GUARDED_BY(mutex_) = 0;  // workers that wait for the queue
  bool is_waking_ EC_GUARDED_BY(mutex_) = false;     // one was told, and has not looked yet
  bool workers_end_ EC_GUARDED_BY(mutex_) = false;
  std::vector<HeldAnswer> held_ EC_GUARDED_BY(mutex_);    // oldest first
  std::int64_t held_until_ns_ EC_GUARDED_BY(mutex_) = 0;  // then they are settled in any case
  std::size_t expected_held_ EC_GUARDED_BY(mutex_) = 1;   // as many as the last time
  bool is_settling_ EC_GUARDED_BY(mutex_) = false;        // a worker does it
  bool is_timed_ EC_GUARDED_BY(mutex_) = false;           // a worker waits for held_until_ns_
  CondVar held_due_;
  // A worker waits for the next request of who it answered.
  bool is_lingering_ EC_GUARDED_BY(mutex_) = false;
  std::vector<char> linger_buffer_;  // that worker's own

  // The poller's own.
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t next_id_;
  std::int64_t next_sweep_ns_ = 0;
  std::int64_t large_body_again_ns_ = 0;
  std::int64_t accept_again_ns_ = 0;  // 0: accepting
  std::int64_t stop_by_ns_ = 0;       // 0: not stopping
  std::vector<char> buffer_;

  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> connection_count_{0};
  std::atomic<std::uint64_t> received_at_once_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::thread poller_;
  std::vector<std::thread> workers_;
  std::vector<std::thread> readers_ EC_GUARDED_BY(mutex_);
  ReadSlots read_slots_;
};

}  // namespace edgecase::http
