#include "mqtt/listener/session_records.h"

#include <algorithm>
#include <utility>

#include "mqtt/record_namespace.h"

namespace edgecase::mqtt {
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
