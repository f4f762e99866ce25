#include "bench/experiments/gdpr_model.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace edgecase::cli::bench {
namespace {

// What expires this close to a question may be answered either way.
constexpr std::int64_t kDoubtNs = 100'000'000;
constexpr std::int64_t kModelSecondNs = 1'000'000'000;

struct Digits {
  explicit Digits(std::uint32_t number) {
    size = static_cast<std::size_t>(std::to_chars(text, text + sizeof text, number).ptr - text);
  }
  std::string_view view() const { return {text, size}; }
  char text[10] = {};
  std::size_t size;
};

}  // namespace

bool GdprModel::ByKey::operator()(std::uint32_t a, std::uint32_t b) const {
  return Digits(a).view() < Digits(b).view();
}

GdprModel::GdprModel(std::uint64_t loaded, std::uint64_t records_max)
    : layout_(loaded),
      records_(records_max),
      users_(layout_.users()),
      groups_(kGdprTtlSeconds.size() * kGdprPurposes) {}

std::uint64_t GdprModel::size() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

std::uint64_t GdprModel::take_number() {
  const std::lock_guard lock(mutex_);
  return next_++;
}

void GdprModel::add(std::uint64_t number, const GdprRecord& record) {
  const std::lock_guard lock(mutex_);
  records_[number] = record;
  users_[record.values[0]].insert(static_cast<std::uint32_t>(number));
  group_of(number).insert(static_cast<std::uint32_t>(number));
}

GdprRecord GdprModel::record(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return records_[number];
}

void GdprModel::set_value(std::uint64_t number, GdprField field, std::uint32_t value) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(field);
  const std::uint32_t before = std::exchange(records_[number].values[at], value);
  if (field != GdprField::User) return;
  users_[before].erase(static_cast<std::uint32_t>(number));
  users_[value].insert(static_cast<std::uint32_t>(number));
}

void GdprModel::set_version(std::uint64_t number, std::uint16_t version) {
  const std::lock_guard lock(mutex_);
  records_[number].version = version;
}

void GdprModel::set_erased(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  GdprRecord& record = records_[number];
  record.is_erased = true;
  ++erased_;
  users_[record.values[0]].erase(static_cast<std::uint32_t>(number));
  group_of(number).erase(static_cast<std::uint32_t>(number));
}

std::uint64_t GdprModel::erased_count() const {
  const std::lock_guard lock(mutex_);
  return erased_;
}

std::vector<std::uint64_t> GdprModel::of_user(std::uint32_t user) const {
  std::vector<std::uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    numbers.assign(users_[user].begin(), users_[user].end());
  }
  std::sort(numbers.begin(), numbers.end(), [](std::uint64_t a, std::uint64_t b) {
    return std::pair(gdpr_namespace(gdpr_ttl_class(a)), gdpr_key(a)) <
           std::pair(gdpr_namespace(gdpr_ttl_class(b)), gdpr_key(b));
  });
  return numbers;
}

std::vector<std::uint64_t> GdprModel::of_purpose(std::uint32_t ttl_class, std::uint32_t purpose,
                                                 std::uint64_t after, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  const Group& group = groups_[ttl_class * kGdprPurposes + purpose];
  std::vector<std::uint64_t> numbers;
  for (auto at = group.upper_bound(static_cast<std::uint32_t>(after));
       at != group.end() && numbers.size() < limit; ++at) {
    numbers.push_back(*at);
  }
  return numbers;
}

Presence GdprModel::presence(std::uint64_t number, const GdprRecord& record, std::int64_t from_ns,
                             std::int64_t to_ns) {
  if (record.is_erased) return Presence::Gone;
  const std::int64_t end_ns =
      record.time_ns + kGdprTtlSeconds[gdpr_ttl_class(number)] * kModelSecondNs;
  if (end_ns > to_ns + kDoubtNs) return Presence::There;
  return end_ns < from_ns - kDoubtNs ? Presence::Gone : Presence::Either;
}

}  // namespace edgecase::cli::bench
