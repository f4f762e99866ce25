#include "mqtt/listener/session_table.h"

#include <algorithm>

namespace edgecase::mqtt {

std::vector<ReceivedIds::Entry>::const_iterator ReceivedIds::find(std::uint16_t packet_id) const {
  return std::lower_bound(
      ids_.begin(), ids_.end(), packet_id,
      [](const Entry& entry, std::uint16_t wanted) { return entry.packet_id < wanted; });
}

ReceivedIds::State ReceivedIds::state(std::uint16_t packet_id) const {
  const auto found = find(packet_id);
  return found != ids_.end() && found->packet_id == packet_id ? found->state : State::Unknown;
}

void ReceivedIds::set(std::uint16_t packet_id, State state) {
  const auto place = ids_.begin() + (find(packet_id) - ids_.cbegin());
  const bool known = place != ids_.end() && place->packet_id == packet_id;
  if (state == State::Unknown) {
    if (known) ids_.erase(place);
  } else if (known) {
    place->state = state;
  } else {
    ids_.insert(place, {packet_id, state});
  }
}

SessionTable::Attached SessionTable::attach(std::string_view client_id, bool clean,
                                            std::uint64_t connection, std::int64_t now_ns) {
  remove_expired(now_ns);
  Attached attached;
  std::string name(client_id);
  if (const auto known = by_client_id_.find(name); known != by_client_id_.end()) {
    Session& session = *by_number_.at(known->second);
    attached.taken_from = session.connection;
    if (clean) {
      remove(session.number);
    } else {
      if (session.connection == 0) --kept_;
      attached.was_present = true;
      attached.session = &session;
    }
  }
  if (attached.session == nullptr) {
    auto session = std::make_unique<Session>();
    session->number = next_number_++;
    session->client_id = name;
    attached.session = session.get();
    by_client_id_[std::move(name)] = session->number;
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
  remove_surplus();
}

Session* SessionTable::find(std::uint64_t number) {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second.get();
}

void SessionTable::remove_expired(std::int64_t now_ns) {
  std::vector<std::uint64_t> ended;
  for (const auto& [number, session] : by_number_) {
    if (session->connection == 0 && session->ends_ns <= now_ns) ended.push_back(number);
  }
  for (const std::uint64_t number : ended) remove(number);
}

void SessionTable::remove(std::uint64_t number) {
  const auto found = by_number_.find(number);
  if (found->second->connection == 0) --kept_;
  by_client_id_.erase(found->second->client_id);
  by_number_.erase(found);
}

void SessionTable::remove_surplus() {
  while (kept_ > kKeptMax) {
    const Session* oldest = nullptr;
    for (const auto& [number, session] : by_number_) {
      if (session->connection != 0) continue;
      if (oldest == nullptr || session->last_used < oldest->last_used) oldest = session.get();
    }
    remove(oldest->number);
  }
}

}  // namespace edgecase::mqtt
