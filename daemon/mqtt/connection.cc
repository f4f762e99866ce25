#include "mqtt/connection.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "edgecase/machine.h"
#include "mqtt/ack_gate.h"
#include "wire/reading_format.h"

namespace edgecase::mqtt {
namespace {

// A connection that held this long was a good one: the next loss starts over with short pauses.
constexpr std::int64_t kStableNs = 10'000'000'000;
// For a broker that ended the connection to show that it is there.
constexpr int kProbeMs = 200;
// How often the age of what is held is looked at.
constexpr std::int64_t kWatchdogSpacingNs = 1'000'000'000;
// How many looks in a row find the gate without a connection, while paho has not said it to be
// lost.
constexpr int kUnnoticedLooks = 3;
// At the end, for what is on its way, for its acknowledgements, and for the broker to read them.
constexpr std::int64_t kFarewellNs = 2'000'000'000;

}  // namespace

Result<std::string> read_password(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (!file || !std::getline(file, text)) {
    return invalid_argument("mqtt.password-file: cannot read a line from " + path);
  }
  if (!text.empty() && text.back() == '\r') text.pop_back();
  if (text.size() > 65'535) return invalid_argument("mqtt.password-file: over 65535 bytes");
  return text;
}

MqttSource::Connection::Connection(ConnectionPlan plan, const MqttSourceParts& parts,
                                   std::unique_ptr<SubscribedFilters> filters)
    : plan_(std::move(plan)),
      clock_(parts.clock),
      logger_(parts.logger),
      ack_patience_ns_(parts.ack_patience_ns),
      ask_again_ns_(parts.ask_again_ns),
      engine_(parts.engine),
      pipeline_(parts.pipeline),
      sink_({.rules = plan_.rules,
             .limits = plan_.limits,
             .pipeline = parts.pipeline,
             .rejected = parts.rejected,
             .clock = parts.clock,
             .logger = parts.logger,
             .source = "mqtt " + plan_.address.text() + " as " + plan_.settings.client_id,
             .wake = [this] { gate_->wake(); },
             .names = parts.names}),
      backoff_(parts.random),
      answer_patience_(parts.answer_patience_ns),
      filters_(std::move(filters)),
      had_session_(!filters_->filters().empty()) {
  status_.broker = plan_.address.url();
  status_.subscriptions = plan_.subscriptions.size();
  status_.since_ns = clock_.wall_ns();
}

MqttSource::Connection::~Connection() {
  stop();
}

Status MqttSource::Connection::open_gate() {
  const std::uint32_t packet_max = packet_max_bytes(plan_.limits, kRemainingLengthMax);
  EC_ASSIGN_OR_RETURN(gate_, AckGate::open({.tls = plan_.tls,
                                            .host = plan_.address.host,
                                            .clock = clock_,
                                            .ledger = sink_,
                                            .packet_max_bytes = packet_max}));
  return ok();
}

void MqttSource::Connection::start() {
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { watch(); });
  pthread_setname_np(thread_.native_handle(), "mqtt-watch");
}

void MqttSource::Connection::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  // What is stored by now need not be sent again by the broker. What the drive refuses must be.
  if (gate_) (void)gate_->close_inlet(kFarewellNs);
  sink_.stop();
  if (gate_) (void)gate_->flush(kFarewellNs);
  if (gate_) (void)gate_->leave(kFarewellNs);
  client_.reset();
  const MutexLock lock(mutex_);
  status_.connected = false;
}

MqttStatus MqttSource::Connection::status() const {
  MqttStatus status;
  {
    const MutexLock lock(mutex_);
    status = status_;
  }
  const GateStatus gate = gate_->status();
  status.last_message_ns = gate.taken_last_ns;
  status.unacknowledged = gate.held;
  status.gate_connected = gate.connected;
  status.released = gate.released;
  status.counters = sink_.counters();
  status.counters.withheld = gate.dropped;
  if (status.counters.waiting_since_ns != 0) {
    status.lag_ns = clock_.boot_ns() - status.counters.waiting_since_ns;
  }
  return status;
}

void MqttSource::Connection::on_connected(bool session_present) {
  const MutexLock lock(mutex_);
  session_present_ = session_present;
  cut_ = false;
  lost_ = false;
  answer_ = Answer::Yes;
  changed_.notify_all();
}

void MqttSource::Connection::on_connect_failed(const std::string& why) {
  const MutexLock lock(mutex_);
  answer_ = Answer::No;
  answer_text_ = why;
  changed_.notify_all();
}

void MqttSource::Connection::on_connection_lost(const std::string& why) {
  const MutexLock lock(mutex_);
  lost_ = true;
  answer_text_ = why;
  changed_.notify_all();
}

void MqttSource::Connection::on_subscribed(int granted_qos) {
  const MutexLock lock(mutex_);
  granted_qos_ = granted_qos;
  answer_ = Answer::Yes;
  changed_.notify_all();
}

void MqttSource::Connection::on_subscribe_failed(const std::string& why) {
  on_connect_failed(why);
}

void MqttSource::Connection::note_error(const std::string& message, const char* key) {
  std::string what = message;
  // paho sees only that its connection ended.
  if (const std::string why = gate_->take_failure(); !why.empty()) what = why;
  {
    const MutexLock lock(mutex_);
    status_.last_error = what;
    status_.last_error_ns = clock_.wall_ns();
  }
  if (logger_ != nullptr) {
    logger_->log_keyed(observe::LogLevel::Warning, "mqtt", key, plan_.address.text() + ": " + what);
  }
}

void MqttSource::Connection::watch() {
  while (true) {
    std::int64_t pause_ns = 0;
    if (connect_once()) {
      pause_ns = stay_connected();
    } else {
      takeovers_.broker_is_away();
      choose_version();
      pause_ns = backoff_.next_ns(pause_max_ns_);
    }
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    pause(pause_ns);
  }
}

void MqttSource::Connection::pause(std::int64_t duration_ns) {
  const MutexLock lock(mutex_);
  const CondVar::Deadline deadline = CondVar::deadline_in(duration_ns);
  while (!stopping_ && changed_.wait_until(mutex_, deadline)) {
  }
}

// Before a connection. False: not tested, and no connection may be made.
bool MqttSource::Connection::is_gate_tested() {
  if (tested_versions_.contains(version_)) return true;
  const Status status = test_ack_gate(clock_, version_);
  if (status.ok()) {
    tested_versions_.insert(version_);
    return true;
  }
  note_error(status.message(), "self-test");
  return false;
}

// After a failure. A broker of 3.1.1 says that it knows no MQTT 5, or just hangs up.
void MqttSource::Connection::choose_version() {
  gate_->end(kFarewellNs);  // paho may have given up before the broker did
  const AckGate::Ending ending = gate_->take_ending();
  if (ending.version_refused) {
    if (version_ == ProtocolVersion::V5) is_version_known_ = true;
    version_ = ProtocolVersion::V311;
  } else if (ending.was_open && !ending.answered && !is_version_known_) {
    version_ = version_ == ProtocolVersion::V5 ? ProtocolVersion::V311 : ProtocolVersion::V5;
  }
}

bool MqttSource::Connection::connect_once() {
  if (!is_gate_tested()) return false;
  // Resolved here, since paho would do it under its lock; and the address tells its socket.
  const auto addresses = resolve_broker(plan_.address);
  if (!addresses.ok()) {
    note_error(addresses.status().message());
    return false;
  }
  // One that is started again is wanted soon, and nobody else is kept from it.
  const bool local = std::all_of(addresses->begin(), addresses->end(), is_loopback);
  pause_max_ns_ = local ? net::Backoff::kLocalMaxNs : net::Backoff::kMaxNs;
  const auto password = read_password(plan_.settings.password_file);  // may have been replaced
  if (!password.ok()) {
    note_error(password.status().message());
    return false;
  }
  for (const ResolvedAddress& address : *addresses) {
    if (!connect_to(address, {plan_.settings.username, *password})) {
      const MutexLock lock(mutex_);
      if (stopping_) return false;
      continue;
    }
    if (subscribe_all()) return true;
    client_.reset();
    return false;
  }
  return false;
}

bool MqttSource::Connection::connect_to(const ResolvedAddress& broker, const PahoLogin& login) {
  broker_ = broker;
  gate_->aim(broker, version_, certificate_time_ns());
  const ResolvedAddress& address = gate_->address();
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    answer_ = Answer::Pending;
    lost_ = false;
  }
  // One that has lost its connection takes over a second to make another; a new one does not.
  client_.reset();
  auto created = PahoClient::create(address.text, plan_.settings.client_id, version_, *this);
  if (!created.ok()) {
    note_error(created.status().message());
    return false;
  }
  client_ = std::move(created).value();
  if (const Status status = client_->connect(address.text, login); !status.ok()) {
    note_error(status.message());
    client_.reset();
    return false;
  }
  return wait_for_answer("connect", kAnswerPatienceNs) == Reply::Yes;
}

// When a broker's certificate must hold, where the clock cannot tell: not before this program was
// built, nor before what the store has known.
std::optional<std::int64_t> MqttSource::Connection::certificate_time_ns() {
  if (!plan_.tls || clock_.trust() == ClockTrust::Trusted) return {};
  const std::int64_t at_ns = std::max(build_time_ns(), engine_.expiry_now_ns());
  if (logger_ != nullptr) {
    std::string text = "the clock is not trusted: the certificate of " + plan_.address.text() +
                       " must not have ended by ";
    wire::append_time(at_ns, text);
    logger_->log_keyed(observe::LogLevel::Warning, "mqtt", "certificate time",
                       text + ", and whether it has begun is not looked at");
  }
  return at_ns;
}

// Before what is asked: the answer may come before the call returns.
void MqttSource::Connection::expect_answer() {
  const MutexLock lock(mutex_);
  answer_ = Answer::Pending;
}

// After a silence paho's client is thrown away; what it says of its questions then is no answer.
MqttSource::Connection::Reply MqttSource::Connection::wait_for_answer(const char* what,
                                                                      std::int64_t patience_ns) {
  std::string problem;
  bool silent = false;
  bool over = false;
  {
    const MutexLock lock(mutex_);
    silent = !wait_while_heard(patience_ns);
    if (!silent && answer_ == Answer::Yes) return Reply::Yes;
    if (stopping_) return Reply::Gone;
    problem = silent ? std::string("no answer") : answer_text_;
    over = silent || lost_;
  }
  if (silent) {
    client_.reset();
    answer_patience_.was_silent();
  }
  note_error(std::string(what) + ": " + problem);
  return over ? Reply::Gone : Reply::No;
}

// False: nothing has come for as long as a question may take. An answer may be late behind many
// messages; and while one of them is overdue, it is for the watchdog to end.
bool MqttSource::Connection::wait_while_heard(std::int64_t patience_ns) {
  std::uint64_t heard = gate_->status().taken;
  while (!wait_for_news(patience_ns)) {
    mutex_.unlock();
    const std::uint64_t now_heard = gate_->status().taken;
    const bool overdue = is_overdue();
    mutex_.lock();
    if (now_heard == heard || overdue) return answer_ != Answer::Pending;
    heard = now_heard;
  }
  return true;
}

// True once there is an answer, the connection is lost, or the daemon stops.
bool MqttSource::Connection::wait_for_news(std::int64_t patience_ns) {
  const CondVar::Deadline deadline = CondVar::deadline_in(patience_ns);
  while (!stopping_ && !lost_ && answer_ == Answer::Pending) {
    if (!changed_.wait_until(mutex_, deadline))
      return stopping_ || lost_ || answer_ != Answer::Pending;
  }
  return true;
}

// True once the connection is lost, or the daemon stops.
bool MqttSource::Connection::wait_for_loss(std::int64_t patience_ns) {
  const CondVar::Deadline deadline = CondVar::deadline_in(patience_ns);
  while (!stopping_ && !lost_) {
    if (!changed_.wait_until(mutex_, deadline)) return stopping_ || lost_;
  }
  return true;
}

bool MqttSource::Connection::subscribe_all() {
  bool fresh = false;
  bool forgotten = false;
  {
    const MutexLock lock(mutex_);
    fresh = !session_present_ || !subscribed_;
    forgotten = !session_present_ && (subscribed_ || had_session_);
    had_session_ = false;
    status_.sessions_lost += forgotten ? 1 : 0;
  }
  if (forgotten) note_lost_session();
  note_terms();
  next_ask_ns_ = 0;
  sink_.new_connection();
  if (fresh) {
    subscribed_ = false;
    look_for_overlaps();
    // In this order: what a new filter and a removed one both take is not missed in between.
    if (!subscribe_to_rules() || !unsubscribe_from_removed_rules()) return false;
    look_for_overlaps();
    subscribed_ = true;
  }
  answer_patience_.all_answered();
  const MutexLock lock(mutex_);
  status_.connected = true;
  status_.protocol = version_ == ProtocolVersion::V5 ? "5" : "3.1.1";
  status_.since_ns = clock_.wall_ns();
  ++status_.connects;
  if (logger_ != nullptr) {
    logger_->info("mqtt", "connected to " + plan_.address.text() +
                              (session_present_ ? ", session resumed" : ", new session"));
  }
  return true;
}

void MqttSource::Connection::note_lost_session() {
  const std::string what = "the broker forgot the session: messages may be missing";
  note_error(what);
  if (pipeline_.audit() == nullptr) return;
  audit::Record record = audit::record_of(
      "mqtt.session-lost", {auth::PrincipalKind::Mqtt,
                            "mqtt " + plan_.address.text() + " as " + plan_.settings.client_id});
  record.outcome = audit::Outcome::Failed;
  record.detail = "possible gap";
  const Status noted = pipeline_.audit()->note(std::move(record));
  if (!noted.ok()) note_error("not in the audit log: " + noted.message());
}

// What the broker refuses stays refused, and the next filter's turn comes.
MqttSource::Connection::Reply MqttSource::Connection::reply_to(const Status& asked,
                                                               const std::string& what) {
  if (asked.ok()) return wait_for_answer(what.c_str(), answer_patience_.now_ns());
  note_error(asked.message());
  return Reply::Gone;
}

// Returns how long to wait before the next attempt.
std::int64_t MqttSource::Connection::stay_connected() {
  const std::int64_t begin_ns = clock_.boot_ns();
  bool by_us = false;
  std::string why;
  looks_without_gate_ = 0;
  {
    MutexLock lock(mutex_);
    while (!wait_for_loss(kWatchdogSpacingNs)) {
      lock.unlock();
      const bool overdue = is_overdue();
      const bool unnoticed = is_unnoticed_loss();
      const bool answered = ask_again();
      lock.lock();
      if (!answered && !lost_ && !stopping_) {
        lost_ = true;
        answer_text_ = "the broker does not answer SUBSCRIBE any more";
        break;
      }
      if (unnoticed && !lost_) {
        lost_ = true;
        answer_text_ = "the connection has ended, and the MQTT client did not notice";
        break;
      }
      if (!overdue || cut_) continue;
      cut_ = true;
      ++status_.overdue;
      gate_->cut();
    }
    by_us = cut_;
    why = by_us ? "cut by us: acknowledgements were held for too long" : answer_text_;
    status_.connected = false;
    status_.since_ns = clock_.wall_ns();
    if (!lost_) return 0;
  }
  return after_loss(clock_.boot_ns() - begin_ns, by_us, why);
}

// The watchdog. A drive that says why it refuses is waited for; anything else is a failure of ours.
bool MqttSource::Connection::is_overdue() const {
  const std::int64_t since_ns = gate_->status().held_since_ns;
  return since_ns != 0 && clock_.boot_ns() - since_ns > ack_patience_ns_ &&
         sink_.counters().waiting_since_ns == 0;
}

// There is nothing through which a message could come, and paho takes it for a connection.
bool MqttSource::Connection::is_unnoticed_loss() {
  looks_without_gate_ = gate_->status().connected ? 0 : looks_without_gate_ + 1;
  return looks_without_gate_ >= kUnnoticedLooks;
}

std::int64_t MqttSource::Connection::after_loss(std::int64_t held_ns, bool by_us,
                                                const std::string& why) {
  if (by_us || held_ns >= kStableNs) backoff_.reset();
  const AckGate::Ending ending = gate_->take_ending();
  if (!is_version_known_) version_ = ProtocolVersion::V5;
  std::int64_t long_pause_ns = 0;
  if (ending.taken_over) {
    long_pause_ns = takeovers_.taken_over();
  } else if (ending.said_why || !is_reachable(broker_, kProbeMs)) {
    takeovers_.broker_is_away();
  } else if (!by_us) {
    long_pause_ns = takeovers_.connection_lost(held_ns);
  }
  if (long_pause_ns == 0) {
    note_error(why);
    return backoff_.next_ns(pause_max_ns_);
  }
  (void)gate_->take_failure();  // what follows says more
  note_error(
      std::string(ending.taken_over
                      ? "the broker says that another client uses mqtt.client-id \""
                      : "the broker takes every connection and ends it soon after: most likely "
                        "another client uses mqtt.client-id \"") +
          plan_.settings.client_id + "\" too, and each daemon needs one of its own; next " +
          "attempt in " + std::to_string(long_pause_ns / 60'000'000'000) + " minutes",
      "client-id");
  return long_pause_ns;
}

}  // namespace edgecase::mqtt
