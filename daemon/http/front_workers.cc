// The workers of the front: from a complete request to the answer that has left, or is left to the
// poller.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "edgecase/bytes.h"

#include "edgecase/machine.h"
#include "http/http_front.h"

namespace edgecase::http {
namespace {

// At most, while others are served: about as long as a sync takes.
constexpr std::int64_t kHeldNs = 200'000;

// From an answer to the next request of who has it ready, or makes it of what was answered.
constexpr std::int64_t kLingerNs = 500'000;
// More of a body is for the poller to receive.
constexpr std::uint64_t kLingerBodyBytes = 1u << 20;

constexpr std::array kWorkersLanes = {Lane::Prompt, Lane::Ingest, Lane::Changes};
constexpr std::array kReadersLanes = {Lane::Reads};
// A third of what a worker gets of a processor that both want.
constexpr int kReadNice = 5;

bool is_readable(int descriptor, std::int64_t within_ns) {
  pollfd wanted{descriptor, POLLIN, 0};
  const timespec timeout{0, static_cast<long>(std::max<std::int64_t>(within_ns, 0))};
  return ppoll(&wanted, 1, &timeout, nullptr) > 0;
}

}  // namespace

// What stores readings, or changes something, may wait for a drive, and the second
// for an erasure: each leaves a worker to the others.
bool Front::may_serve(Lane lane) const {
  const std::uint32_t writing = serving(Lane::Ingest) + serving(Lane::Changes);
  switch (lane) {
    case Lane::Prompt: return serving(lane) < options_.threads;
    case Lane::Ingest: return serving(lane) == 0 || writing < options_.threads;
    case Lane::Changes:
      return serving(lane) == 0 ||
             (writing < options_.threads && serving(lane) + 1 < options_.threads);
    case Lane::Reads: return serving(lane) < options_.readers;
  }
  return false;
}

Front::Connection* Front::take_queued(std::span<const Lane> lanes) {
  for (const Lane lane : lanes) {
    auto& queue = queues_[static_cast<std::size_t>(lane)];
    if (queue.empty() || !may_serve(lane)) continue;
    Connection* const connection = queue.front();
    queue.pop_front();
    ++serving_[static_cast<std::size_t>(lane)];
    return connection;
  }
  return nullptr;
}

bool Front::are_any_queued() const {
  for (const Lane lane : kWorkersLanes) {
    if (!queues_[static_cast<std::size_t>(lane)].empty() && may_serve(lane)) return true;
  }
  return false;
}

// True: as serve().
bool Front::serve_counted(Connection& connection) {
  const std::size_t lane = static_cast<std::size_t>(connection.lane);
  const bool may_wait = waiting_.size() + serving(Lane::Reads) <= options_.waiting;
  mutex_.unlock();
  const bool is_left = serve(connection, may_wait);
  mutex_.lock();
  --serving_[lane];
  give_turns();
  return is_left;
}

void Front::enqueue(Connection& connection) {
  const MutexLock lock(mutex_);
  connection.stage = Stage::Serving;
  connection.has_asked = true;
  push_queued(connection);
  if (connection.lane == Lane::Reads) {
    wake_reader();
  } else {
    wake_worker();
  }
}

void Front::push_queued(Connection& connection) {
  connection.lane = lane_of(connection.reader.head());
  connection.queued_ns = now_ns();
  const auto& reads = queues_[static_cast<std::size_t>(Lane::Reads)];
  connection.is_turned_away = connection.lane == Lane::Reads && reads.size() >= options_.waiting;
  // To be told so is little work.
  if (connection.is_turned_away) connection.lane = Lane::Prompt;
  queues_[static_cast<std::size_t>(connection.lane)].push_back(&connection);
}

// Has one more worker look at the queues and at what is held, where nobody else will soon: whoever
// is done serving looks by itself, and whoever was told tells the next.
void Front::wake_worker() {
  const bool can_serve = are_any_queued();
  const bool is_unattended = !held_.empty() && !is_settling_ && !is_timed_;
  if (is_waking_ || (!can_serve && !is_unattended)) return;
  if (resting_ > 0) {
    is_waking_ = true;
    queued_.notify_one();
  } else if (is_timed_) {
    held_due_.notify_one();
  }
}

// The same of those that read; made where there are none left that rest.
void Front::wake_reader() {
  const std::size_t lane = static_cast<std::size_t>(Lane::Reads);
  if (queues_[lane].size() <= called_readers_) return;
  if (resting_readers_ > called_readers_) {
    ++called_readers_;
    read_due_.notify_one();
    return;
  }
  if (workers_end_ || readers_.size() >= options_.readers) return;
  try {
    readers_.reserve(readers_.size() + 1);
    readers_.emplace_back([this] { read(); });
    pthread_setname_np(readers_.back().native_handle(), "http-reader");
  } catch (const std::exception&) {
    // No memory, or no thread to be had: those that are there do it one after another.
  }
}

void Front::work() {
  bool has_served = false;  // since its stack was wiped
  const MutexLock lock(mutex_);
  while (true) {
    if (release_held(By::Worker)) continue;
    if (Connection* const connection = take_queued(kWorkersLanes); connection != nullptr) {
      wake_worker();
      if (serve_counted(*connection)) stay_with(*connection, By::Worker);
      has_served = true;
    } else if (workers_end_) {
      return;
    } else if (has_served) {
      // After the answer has left.
      has_served = false;
      mutex_.unlock();
      wipe_stack();
      mutex_.lock();
    } else {
      rest();
    }
  }
}

void Front::read() {
  // Whoever stores, or asks for health, goes first where the processor is short.
  setpriority(PRIO_PROCESS, 0, kReadNice);  // of this thread
  bool has_served = false;
  const MutexLock lock(mutex_);
  while (true) {
    if (Connection* const connection = take_queued(kReadersLanes); connection != nullptr) {
      wake_reader();
      if (serve_counted(*connection)) stay_with(*connection, By::Reader);
      while (release_held(By::Reader)) continue;
      wake_worker();
      has_served = true;
    } else if (workers_end_) {
      return;
    } else if (has_served) {
      has_served = false;
      mutex_.unlock();
      wipe_stack();
      mutex_.lock();
    } else {
      ++resting_readers_;
      read_due_.wait(mutex_);
      --resting_readers_;
      if (called_readers_ > 0) --called_readers_;
    }
  }
}

// One of the workers that have nothing to do looks after what is held.
void Front::rest() {
  if (held_.empty() || is_settling_ || is_timed_) {
    ++resting_;
    queued_.wait(mutex_);
    --resting_;
    is_waking_ = false;
    return;
  }
  is_timed_ = true;
  held_due_.wait_for(mutex_, held_until_ns_ - now_ns());
  is_timed_ = false;
}

bool Front::refuse_read(Connection& connection, const char* why) {
  const ReceivedRequest request = connection.reader.take();
  refused_.fetch_add(1, std::memory_order_relaxed);
  connection.output += refusal_text(request.head.target, overloaded(why));
  connection.close_after_output = true;
  return finish(connection);
}

bool Front::serve(Connection& connection, bool may_wait) {
  if (connection.is_turned_away) return refuse_read(connection, "too many reads wait");
  if (connection.lane == Lane::Reads && !connection.waiting &&
      now_ns() - connection.queued_ns > options_.long_wait_ns) {
    return refuse_read(connection, "others are read for, and this one's turn did not come");
  }
  Answered answered = Answered::Broken;
  HeldAnswer held{&connection, {}, {}};
  {
    const bool has_waited = connection.waiting.has_value();
    ReceivedRequest request =
        has_waited ? *std::exchange(connection.waiting, std::nullopt) : connection.reader.take();
    try {
      answered = answer(connection, request, may_wait && !has_waited, held.settlement);
    } catch (const std::exception&) {
      // Out of memory outside the router: the client sees a cut connection.
    }
    if (answered == Answered::NotYet) {
      wait_for_turn(connection, std::move(request));
      return false;
    }
    if (held.settlement) held.target = std::move(request.head.target);
  }
  if (answered == Answered::Broken) {
    reset_on_close(connection);
    await(connection, Stage::Cut);
    return false;
  }
  if (!held.settlement) return finish(connection);
  hold(std::move(held));
  return false;
}

void Front::wait_for_turn(Connection& connection, ReceivedRequest request) {
  const MutexLock lock(mutex_);
  connection.waiting = std::move(request);
  connection.waits_until_ns = now_ns() + options_.long_wait_ns;
  waiting_.push_back(&connection);
}

// After each answer, long or not: it is cheap, and none is forgotten.
void Front::give_turns() {
  while (!waiting_.empty() && waiting_.front()->turn.grow(1)) {
    queues_[static_cast<std::size_t>(Lane::Reads)].push_front(waiting_.front());
    waiting_.pop_front();
    wake_reader();
  }
}

void Front::hold(HeldAnswer answer) {
  const MutexLock lock(mutex_);
  if (held_.empty()) held_until_ns_ = now_ns() + kHeldNs;
  held_.push_back(std::move(answer));
}

// Whoever is served may make durable what is held, or add to it.
bool Front::are_together() const {
  if (held_.size() < expected_held_) return false;
  for (const Lane lane : kWorkersLanes) {
    if (!queues_[static_cast<std::size_t>(lane)].empty() || serving(lane) > 0) return false;
  }
  return true;
}

// Sends what is settled, or settles what is due. False: nothing is to be done yet.
bool Front::release_held(By by) {
  std::size_t settled = 0;
  while (settled < held_.size() && held_[settled].settlement.is_settled()) ++settled;
  const bool is_due = (by == By::Worker || workers_end_) && settled == 0 && !held_.empty() &&
                      !is_settling_ &&
                      (are_together() || workers_end_ || now_ns() >= held_until_ns_);
  if (settled == 0 && !is_due) return false;
  std::vector<HeldAnswer> group = take_held(is_due ? held_.size() : settled);
  if (is_due) {
    expected_held_ = group.size();
    is_settling_ = true;
    wake_worker();
    mutex_.unlock();
    settle_all(group);
    mutex_.lock();
    is_settling_ = false;
  }
  wake_worker();
  mutex_.unlock();
  Connection* left = nullptr;
  for (const HeldAnswer& each : group) {
    if (!finish(*each.connection)) continue;
    if (left != nullptr) await(*left, Stage::Reading);
    left = each.connection;
  }
  mutex_.lock();
  if (left != nullptr) stay_with(*left, by);
  return true;
}

std::vector<Front::HeldAnswer> Front::take_held(std::size_t count) {
  const auto end = held_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<HeldAnswer> group(std::make_move_iterator(held_.begin()),
                                std::make_move_iterator(end));
  held_.erase(held_.begin(), end);
  if (!held_.empty()) held_until_ns_ = now_ns() + kHeldNs;
  return group;
}

void Front::settle_all(std::vector<HeldAnswer>& group) {
  // From the newest on: most often the others have nothing left to wait for then. A worker that was
  // slow may have held an older one behind it.
  Status status;
  for (auto each = group.rbegin(); each != group.rend(); ++each) {
    if (each->settlement.is_settled()) continue;
    if (status.ok()) status = each->settlement.settle();
    if (status.ok()) continue;
    if (each->settlement.refused) each->settlement.refused(status);
    refused_.fetch_add(1, std::memory_order_relaxed);
    each->connection->output = refusal_of(each->target, {503, status});
    each->connection->close_after_output = true;
  }
}

// Sends the answer, and goes on with the connection. True: no next request is there yet, and the
// connection is still the worker's.
bool Front::finish(Connection& connection) {
  net::Channel& channel = *connection.channel;
  if (drop_revoked(connection)) {
    await(connection, Stage::Cut);
    return false;
  }
  switch (send_output(channel, connection.output)) {
    case net::Outcome::Closed:
    case net::Outcome::Failed: await(connection, Stage::Cut); return false;
    case net::Outcome::Blocked: await(connection, Stage::Flushing); return false;
    case net::Outcome::Done: break;
  }
  connection.parts.clear();
  if (connection.close_after_output) {
    channel.finish();
    await(connection, Stage::Draining);
    return false;
  }
  switch (connection.reader.next()) {
    case RequestReader::Progress::NeedMore: return true;
    case RequestReader::Progress::Complete: enqueue(connection); return false;
    case RequestReader::Progress::Refused: refuse_next(connection); return false;
  }
  return false;
}

void Front::refuse_next(Connection& connection) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  connection.output = refusal_of(connection.reader.target(), connection.reader.refusal());
  connection.close_after_output = true;
  await(connection, Stage::Flushing);
}

// One worker at a time, with nothing else to do, receives the next request itself if that comes at
// once: to be told by the poller takes as long as a small request. Not where connections may soon
// have to give way, which one that is lingered by does not.
void Front::stay_with(Connection& connection, By by) {
  const std::uint32_t most = std::min(options_.connections, options_.connections_per_address);
  const bool is_roomy = 2 * connections() <= most;
  const bool is_idle =
      std::all_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue.empty(); });
  const bool lingers = is_roomy && !is_lingering_ && !stopping_ && is_idle && held_.empty();
  is_lingering_ = is_lingering_ || lingers;
  mutex_.unlock();
  bool is_complete = false;
  if (lingers) {
    std::size_t used_bytes = 0;
    is_complete = receive_next(connection, used_bytes);
    ::explicit_bzero(linger_buffer_.data(), used_bytes);
  } else {
    await(connection, Stage::Reading);
  }
  mutex_.lock();
  if (lingers) is_lingering_ = false;
  if (!is_complete) return;
  received_at_once_.fetch_add(1, std::memory_order_relaxed);
  push_queued(connection);
  // Where this thread looks next itself, but in the other's queues.
  const bool is_read = connection.lane == Lane::Reads;
  if (is_read && by == By::Worker) wake_reader();
  if (!is_read && by == By::Reader) wake_worker();
}

// False: the connection is the poller's again. `used_bytes` of the buffer are to be wiped, once for
// all that was received.
bool Front::receive_next(Connection& connection, std::size_t& used_bytes) {
  net::Channel& channel = *connection.channel;
  RequestReader& reader = connection.reader;
  const std::int64_t until_ns = now_ns() + kLingerNs;
  while (reader.body_bytes() < kLingerBodyBytes) {
    if (!channel.holds_received() && !is_readable(channel.descriptor(), until_ns - now_ns())) break;
    const std::size_t wanted = std::min(reader.wanted_bytes(), linger_buffer_.size());
    const net::Transfer got = channel.receive(linger_buffer_.data(), wanted);
    if (got.outcome == net::Outcome::Blocked) break;
    if (got.outcome != net::Outcome::Done) {
      await(connection, Stage::Cut);
      return false;
    }
    const RequestReader::Progress progress = reader.feed({linger_buffer_.data(), got.bytes});
    used_bytes = std::max(used_bytes, got.bytes);
    switch (progress) {
      case RequestReader::Progress::NeedMore: break;
      case RequestReader::Progress::Complete: return true;
      case RequestReader::Progress::Refused: refuse_next(connection); return false;
    }
    if (reader.claim_continue()) {
      connection.output += kContinue;
      await(connection, Stage::Flushing);
      return false;
    }
  }
  await(connection, Stage::Reading);
  return false;
}

// A reset, so that no client takes half an answer for a whole one.
void Front::reset_on_close(Connection& connection) {
  const linger reset{1, 0};
  setsockopt(connection.channel->descriptor(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

// True: what waits to be sent was erased meanwhile, and the connection is of no use any more.
bool Front::drop_revoked(Connection& connection) {
  if (connection.parts.empty() || !is_any_revoked(connection.parts)) return false;
  connection.output = std::string();
  connection.parts.clear();
  reset_on_close(connection);
  return true;
}

Front::Answered Front::answer(Connection& connection, ReceivedRequest& request, bool may_wait,
                              Settlement& settlement) {
  connection.close_after_output = !request.head.keep_alive || stopping_;
  if (request.head.coding != wire::Coding::Identity) {
    std::string decoded;
    const Refusal refusal =
        inflate_body(request.body, request.head.coding,
                     static_cast<std::size_t>(options_.body_limit_bytes), request.share, decoded);
    if (refusal.http_status != 0) return refuse_request(connection, request.head, refusal);
    request.share.shrink(request.body.size());
    request.body = std::move(decoded);
    request.head.coding = wire::Coding::Identity;
  }
  // What a believed proxy hands on counts for whoever asked it.
  std::optional<net::AddressShare> asker_share;
  if (request.head.is_forwarded) {
    const auth::Principal asks = asker(request.head, connection.principal, *router_.sites());
    if (asks.name != connection.principal.name) asker_share.emplace(addresses_, asks.name);
    if (asker_share && addresses_.open(asks.name) > addresses_.most()) {
      return refuse_request(connection, request.head, address_overloaded());
    }
  }
  AnswerStream stream(*connection.channel, connection.output, options_.write_grace_ns);
  Exchange exchange{request.head,
                    request.body,
                    connection.principal,
                    stream,
                    std::move(connection.turn),
                    connection.close_after_output,
                    {}};
  // Nothing of what is held may be sent: head and body must fit into what is kept.
  if (connection.output.empty()) exchange.held_max_bytes = kOutputKeptBytes / 2;
  exchange.may_wait = may_wait && !stopping_ && request.body.size() <= kWaitingBodyMaxBytes;
  // What the client of has left is not begun, or not gone on with.
  LeavingClient client(connection.channel->descriptor());
  std::optional<ReadTurn> turn;
  if (connection.lane == Lane::Reads) {
    if (client.has_left()) return Answered::Broken;
    turn.emplace(read_slots_, [&client] { return client.has_left(); });
    exchange.patience = &*turn;
    exchange.second_turn = [this] { return ReadTurn::second(read_slots_); };
    stream.waits_in(&*turn, &client);
  }
  const bool complete = router_.answer(exchange);
  connection.parts = stream.take_parts();
  if (exchange.waits) return Answered::NotYet;
  settlement = std::move(exchange.settlement);
  return complete ? Answered::Whole : Answered::Broken;
}

}  // namespace edgecase::http
