#include "http/influx_names.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace edgecase::http {
namespace {

auto order_of(const Name& name) {
  return std::tie(name.group, name.first, name.second);
}

bool is_before(const Name& a, const Name& b) {
  return order_of(a) < order_of(b);
}

std::size_t hash_of(const Name& name) {
  constexpr std::size_t kFactor = 31;
  const std::hash<std::string_view> hash;
  return (hash(name.group) * kFactor + hash(name.first)) * kFactor + hash(name.second);
}

}  // namespace

Name Names::name_of(const Held& held) const {
  const std::string_view text = std::string_view(text_).substr(held.at, held.size);
  const std::size_t second = std::size_t{held.group} + held.first;
  return {text.substr(0, held.group), text.substr(held.group, held.first), text.substr(second)};
}

Result<bool> Names::peek(Name& name) {
  if (next_ == names_.size()) {
    if (has_looked_ && is_all_) return false;
    EC_TRY(look_through());
    if (names_.empty()) return false;
  }
  name = name_of(names_[next_]);
  return true;
}

void Names::pop() {
  last_.set(name_of(names_[next_++]));
}

void Names::drop() {
  text_ = {};
  names_ = {};
  next_ = 0;
  beyond_ = {};
  has_looked_ = is_all_ = false;
}

Status Names::look_through() {
  drop();
  recent_.assign(kRecentMax, 0);
  EC_TRY(look_([this](const Name& name) { take(name); }));
  recent_ = {};
  sort();
  is_all_ = !beyond_.is_there;
  has_looked_ = true;
  return ok();
}

void Names::take(const Name& name) {
  if (last_.is_there && !is_before(last_.name(), name)) return;
  if (beyond_.is_there && !is_before(name, beyond_.name())) return;
  std::uint32_t& recent = recent_[hash_of(name) % kRecentMax];
  if (recent > 0 && recent <= names_.size() &&
      order_of(name_of(names_[recent - 1])) == order_of(name))
    return;
  const std::size_t size = name.group.size() + name.first.size() + name.second.size();
  // Parts of an identity are at most kIdentityMaxBytes together.
  names_.push_back({static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(size),
                    static_cast<std::uint16_t>(name.group.size()),
                    static_cast<std::uint16_t>(name.first.size())});
  recent = static_cast<std::uint32_t>(names_.size());
  text_.append(name.group).append(name.first).append(name.second);
  if (held_bytes() > held_max_bytes_) shrink();
}

// In order, each once.
void Names::sort() {
  std::sort(names_.begin(), names_.end(), [this](const Held& a, const Held& b) {
    if (a.group != b.group || a.first != b.first) return is_before(name_of(a), name_of(b));
    // Parts that are as long lie one behind another.
    const std::string_view text = text_;
    return text.substr(a.at, a.size) < text.substr(b.at, b.size);
  });
  const auto is_same = [this](const Held& a, const Held& b) {
    return order_of(name_of(a)) == order_of(name_of(b));
  };
  names_.erase(std::unique(names_.begin(), names_.end(), is_same), names_.end());
}

// Leaves out those that came twice, and the last ones where that is not enough: room for half as
// much is made, so that the next time is not at once. One name stays, however long it is.
void Names::shrink() {
  sort();
  std::string kept;
  std::vector<Held> names;
  for (Held held : names_) {
    if (!names.empty() && kept.size() + names.size() * sizeof(Held) > held_max_bytes_ / 2) {
      beyond_.set(name_of(held));
      break;
    }
    const std::string_view text = std::string_view(text_).substr(held.at, held.size);
    held.at = static_cast<std::uint32_t>(kept.size());
    kept += text;
    names.push_back(held);
  }
  text_ = std::move(kept);
  names_ = std::move(names);
}

}  // namespace edgecase::http
