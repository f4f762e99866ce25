#include "mqtt/listener/session_table.h"

#include <algorithm>
#include <utility>

#include "mqtt/topic_names.h"

namespace edgecase::mqtt {

std::vector<ReceivedIds::Entry>::const_iterator ReceivedIds::find(std::uint16_t packet_id) const {
  return std::lower_bound(
      ids_.begin(), ids_.end(), packet_id,
      [](const Entry& entry, std::uint16_t wanted) { return entry.packet_id < wanted; });
}

ReceivedIds::Entry ReceivedIds::get(std::uint16_t packet_id) const {
  const auto found = find(packet_id);
  return found != ids_.end() && found->packet_id == packet_id ? *found : Entry{packet_id};
}

void ReceivedIds::begin(std::uint16_t packet_id, std::uint64_t fingerprint) {
  const auto place = ids_.begin() + (find(packet_id) - ids_.cbegin());
  const Entry entry{packet_id, State::Storing, fingerprint};
  if (place != ids_.end() && place->packet_id == packet_id) {
    *place = entry;
  } else {
    ids_.insert(place, entry);
  }
}

void ReceivedIds::set(std::uint16_t packet_id, State state) {
  const auto place = ids_.begin() + (find(packet_id) - ids_.cbegin());
  const bool known = place != ids_.end() && place->packet_id == packet_id;
  if (!known) return;
  if (state == State::Unknown) {
    ids_.erase(place);
  } else {
    place->state = state;
  }
}

std::vector<std::uint16_t> ReceivedIds::all() const {
  std::vector<std::uint16_t> packet_ids;
  packet_ids.reserve(ids_.size());
  for (const Entry& entry : ids_) packet_ids.push_back(entry.packet_id);
  return packet_ids;
}

SessionTable::Attached SessionTable::attach(std::string_view key, bool clean,
                                            std::uint64_t connection, std::int64_t now_ns) {
  remove_expired(now_ns);
  Attached attached;
  std::string name(key);
  if (const auto known = by_key_.find(name); known != by_key_.end()) {
    Session& session = *by_number_.at(known->second);
    attached.taken_from = session.connection;
    if (clean || session.expiry_ns == 0) {
      remove(session.number);
    } else {
      // The session's old connection is lost to the new one; a will that was to wait need not be
      // published.
      if (session.will && session.will->delay_ns == 0) make_due(session);
      drop_will(session);
      if (session.connection == 0) release_kept();
      attached.was_present = true;
      attached.session = &session;
    }
  }
  if (attached.session == nullptr) {
    auto session = std::make_unique<Session>();
    session->number = next_number_++;
    session->key = name;
    attached.session = session.get();
    by_key_[std::move(name)] = session->number;
    by_number_.emplace(session->number, std::move(session));
  }
  attached.session->connection = connection;
  attached.session->last_used = ++uses_;
  return attached;
}

void SessionTable::detach(std::uint64_t number, std::uint64_t connection, std::int64_t now_ns) {
  Session* const session = find(number);
  if (session == nullptr || session->connection != connection) return;
  session->connection = 0;
  session->last_used = ++uses_;
  ++kept_;
  session->ends_ns =
      session->expiry_ns > kForever - now_ns ? kForever : now_ns + session->expiry_ns;
  if (session->expiry_ns == 0) return remove(number);
  if (session->will) {
    const std::int64_t wait_ns = session->will->delay_ns;
    if (wait_ns == 0) make_due(*session);
    session->will_due_ns = wait_ns > kForever - now_ns ? kForever : now_ns + wait_ns;
  }
  remove_surplus();
}

void SessionTable::set_will(Session& session, std::unique_ptr<Will> will) {
  if (session.will) will_bytes_ -= session.will->bytes();
  session.will = std::move(will);
  if (session.will) will_bytes_ += session.will->bytes();
}

void SessionTable::make_due(Session& session) {
  if (!session.will) return;
  will_bytes_ -= session.will->bytes();
  due_wills_.push_back(std::move(session.will));
}

void SessionTable::end_wills() {
  for (const auto& [number, session] : by_number_) make_due(*session);
}

Session* SessionTable::find(std::uint64_t number) {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second.get();
}

std::int64_t SessionTable::next_end_ns() const {
  std::int64_t next = kForever;
  for (const auto& [number, session] : by_number_) {
    if (session->connection != 0) continue;
    next = std::min(next, session->ends_ns);
    if (session->will) next = std::min(next, session->will_due_ns);
  }
  return next;
}

Session& SessionTable::restore(std::string_view key, std::int64_t expiry_ns, std::int64_t now_ns) {
  Session& session = *attach(key, true, 0, now_ns).session;
  session.recorded = true;
  session.expiry_ns = expiry_ns;
  session.ends_ns = expiry_ns > kForever - now_ns ? kForever : now_ns + expiry_ns;
  ++kept_;
  kept_max_ = std::max(kept_max_, kept_);
  return session;
}

void SessionTable::remove_expired(std::int64_t now_ns) {
  std::vector<std::uint64_t> ended;
  for (const auto& [number, session] : by_number_) {
    if (session->connection != 0) continue;
    if (session->will && session->will_due_ns <= now_ns) make_due(*session);
    if (session->ends_ns <= now_ns) ended.push_back(number);
  }
  for (const std::uint64_t number : ended) remove(number);
}

void SessionTable::remove(std::uint64_t number) {
  const auto found = by_number_.find(number);
  Session& session = *found->second;
  make_due(session);
  if (session.connection == 0) release_kept();
  if (session.recorded) add_ended({session.key, session.received.all()});
  by_key_.erase(session.key);
  by_number_.erase(found);
}

void SessionTable::add_ended(Ended ended) {
  ++ending_[ended.key];
  ended_.push_back(std::move(ended));
}

void SessionTable::note_gone(std::string_view key) {
  const auto found = ending_.find(std::string(key));
  if (found != ending_.end() && --found->second == 0) ending_.erase(found);
}

// One less is without a connection: what came back beyond the limit has gone by and by.
void SessionTable::release_kept() {
  --kept_;
  kept_max_ = std::max(kKeptMax, std::min(kept_max_, kept_));
}

void SessionTable::remove_surplus() {
  while (kept_ > kept_max_) {
    const Session* oldest = nullptr;
    for (const auto& [number, session] : by_number_) {
      if (session->connection != 0) continue;
      if (oldest == nullptr || session->last_used < oldest->last_used) oldest = session.get();
    }
    remove(oldest->number);
  }
}

namespace {

constexpr char kSessionRecordKind = 'Q';
constexpr char kSessionRecordVersion = 1;
constexpr std::size_t kPacketIdBytes = 2;
constexpr std::int64_t kExpirySecondNs = 1'000'000'000;

template <typename Number>
std::string versioned(Number number) {
  std::string value(1, kSessionRecordVersion);
  for (std::size_t i = 0; i < sizeof number; ++i) {
    value += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return value;
}

template <typename Number>
bool decode_versioned(ByteView value, Number& number) {
  if (value.size() != 1 + sizeof number || value[0] != kSessionRecordVersion) return false;
  number = 0;
  for (std::size_t i = sizeof number; i > 0; --i) {
    number = number << 8 | static_cast<unsigned char>(value[i]);
  }
  return true;
}

// Takes records in the order of their keys: a session, then its messages.
class Loader {
 public:
  Loader(SessionTable& table, std::size_t sessions_max, std::int64_t now_ns)
      : table_(table), sessions_max_(sessions_max), now_ns_(now_ns) {}

  void take(ByteView key, ByteView value) {
    const bool is_message = key.size() == kSessionKeyBytes + kPacketIdBytes;
    if (key.size() != kSessionKeyBytes && !is_message) {
      ++loaded_.unreadable;
      return;
    }
    const ByteView session_key = key.substr(0, kSessionKeyBytes);
    if (session_key != useless_.key) {
      finish();
      useless_.key = session_key;
      session_ = nullptr;
    }
    if (is_message) {
      take_message(key, value);
    } else {
      take_session(key, value);
    }
  }
  // Behind the last record of a session.
  void finish() {
    useless_.with_session = session_ == nullptr;
    const bool is_any = useless_.with_session || !useless_.packet_ids.empty();
    if (!useless_.key.empty() && is_any) table_.add_ended(std::move(useless_));
    useless_ = {};
  }
  const SessionRecords::Loaded& loaded() const { return loaded_; }

 private:
  void take_session(ByteView key, ByteView value) {
    std::uint32_t expiry_seconds = 0;
    if (!decode_session_value(value, expiry_seconds)) {
      ++loaded_.unreadable;
    } else if (expiry_seconds > 0 && loaded_.sessions == sessions_max_) {
      ++loaded_.surplus;
    } else if (expiry_seconds > 0) {
      ++loaded_.sessions;
      expiry_seconds = std::min(expiry_seconds, kSessionExpiryMaxSeconds);
      session_ = &table_.restore(key, expiry_seconds * kExpirySecondNs, now_ns_);
    }
  }

  void take_message(ByteView key, ByteView value) {
    const auto packet_id =
        static_cast<std::uint16_t>(static_cast<unsigned char>(key[kSessionKeyBytes]) << 8 |
                                   static_cast<unsigned char>(key[kSessionKeyBytes + 1]));
    std::uint64_t fingerprint = 0;
    const bool readable = packet_id != 0 && decode_message_value(value, fingerprint);
    if (readable && session_ != nullptr && session_->received.size() < ReceivedIds::kMax) {
      session_->received.begin(packet_id, fingerprint);
      session_->received.set(packet_id, ReceivedIds::State::Stored);
      ++loaded_.messages;
      return;
    }
    ++(readable && session_ != nullptr ? loaded_.surplus : loaded_.unreadable);
    useless_.packet_ids.push_back(packet_id);
  }

  SessionTable& table_;
  const std::size_t sessions_max_;
  const std::int64_t now_ns_;
  Session* session_ = nullptr;  // whose messages come; null: it did not come back
  SessionTable::Ended useless_;
  SessionRecords::Loaded loaded_;
};

}  // namespace

std::string message_key(std::string_view session_key, std::uint16_t packet_id) {
  std::string key(session_key);
  key += static_cast<char>(packet_id >> 8);
  key += static_cast<char>(packet_id & 0xff);
  return key;
}

std::string session_value(std::uint32_t expiry_seconds) {
  return versioned(expiry_seconds);
}

std::string message_value(std::uint64_t fingerprint) {
  return versioned(fingerprint);
}

bool decode_session_value(ByteView value, std::uint32_t& expiry_seconds) {
  return decode_versioned(value, expiry_seconds);
}

bool decode_message_value(ByteView value, std::uint64_t& fingerprint) {
  return decode_versioned(value, fingerprint);
}

Result<std::unique_ptr<SessionRecords>> SessionRecords::open(Engine& engine, Random& random) {
  EC_ASSIGN_OR_RETURN(const NamespaceId id, open_record_namespace(engine));
  EC_ASSIGN_OR_RETURN(auth::Pseudonyms pseudonyms, auth::Pseudonyms::load(engine, random));
  return std::unique_ptr<SessionRecords>(new SessionRecords(engine, id, std::move(pseudonyms)));
}

Result<SessionRecords::Loaded> SessionRecords::load(SessionTable& table, std::size_t sessions_max,
                                                    std::int64_t now_ns) const {
  KeyRange range;
  range.lower = Bytes(1, kSessionRecordKind);
  range.upper = Bytes(1, kSessionRecordKind + 1);
  Loader loader(table, sessions_max, now_ns);
  EC_ASSIGN_OR_RETURN(const std::unique_ptr<Iterator> each,
                      engine_.scan(namespace_id_, range, without_damaged()));
  for (; each->valid(); each->next()) loader.take(each->key(), each->value());
  EC_TRY(each->status());
  loader.finish();
  return loader.loaded();
}

std::string SessionRecords::key_of(std::string_view client_id) const {
  const auth::Pseudonym name = pseudonyms_.of_text("mqtt client", {}, client_id);
  std::string key(1, kSessionRecordKind);
  for (std::size_t i = 0; i + 1 < kSessionKeyBytes; ++i) key += static_cast<char>(name[i]);
  return key;
}

std::uint64_t SessionRecords::fingerprint(std::string_view topic, std::string_view payload) const {
  const auth::Pseudonym all = pseudonyms_.of_text("mqtt message", topic, payload);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number = number << 8 | static_cast<unsigned char>(all[i]);
  }
  return number;
}

}  // namespace edgecase::mqtt
