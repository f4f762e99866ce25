#include "ingest/reading_feed.h"

#include <algorithm>
#include <cstring>

namespace edgecase::ingest {
namespace {

std::size_t text_bytes(const wire::Reading& reading) {
  return reading.namespace_name.size() + reading.device.size() + reading.sensor.size() +
         reading.value.text.size() + reading.value.content_type.size() +
         (reading.identity == nullptr
              ? 0
              : reading.identity->device_keys.size() + reading.identity->body.size());
}

std::size_t kept_bytes(const wire::Reading& reading) {
  return sizeof(reading) + text_bytes(reading) +
         (reading.identity == nullptr ? 0 : sizeof(wire::SeriesIdentity)) +
         (reading.window == nullptr ? 0 : sizeof(wire::Window));
}

}  // namespace

ReadingFeed::ReadingFeed(Clock& clock) : clock_(clock) {
  next_.epoch = static_cast<std::uint64_t>(clock.wall_ns());
}

void ReadingFeed::publish(std::span<const wire::Reading> readings,
                          std::span<const std::int64_t> times_ns) {
  const std::int64_t until = followed_until_ns_.load(std::memory_order_relaxed);
  if (until == 0) return;
  const bool followed = clock_.boot_ns() <= until;
  // The newest that fit; those before are counted as missed.
  std::size_t kept = 0;
  std::size_t bytes = 0;
  while (followed && kept < readings.size()) {
    const std::size_t more = kept_bytes(readings[readings.size() - kept - 1]);
    if (bytes + more > kBytesMax) break;
    bytes += more;
    ++kept;
  }
  std::shared_ptr<Block> block;
  if (kept > 0) block = copy(readings.last(kept), times_ns.last(kept));

  const MutexLock lock(mutex_);
  next_.next += readings.size();
  if (!followed) {
    std::int64_t expected = until;
    if (followed_until_ns_.compare_exchange_strong(expected, 0)) ++next_.epoch;
    trim(0);
    return;
  }
  trim(kBytesMax - bytes);
  if (block == nullptr) return;
  block->first = next_.next - kept;
  blocks_.push_back(std::move(block));
  bytes_ += bytes;
}

void ReadingFeed::publish_windows(const catalog::SeriesEntry& series,
                                  std::span<const wire::Window> windows) {
  if (!may_be_followed()) return;
  const wire::SeriesIdentity identity{0, {}, series.identity};
  std::vector<wire::Reading> readings(windows.size());
  std::vector<std::int64_t> times_ns;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    readings[i].namespace_name = series.namespace_name;
    readings[i].device = series.device;
    readings[i].sensor = series.sensor;
    readings[i].identity = series.identity.empty() ? nullptr : &identity;
    readings[i].window = &windows[i];
    times_ns.push_back(windows[i].begin_ns);
  }
  publish(readings, times_ns);
}

void ReadingFeed::clear() {
  const MutexLock lock(mutex_);
  trim(0);
}

std::shared_ptr<ReadingFeed::Block> ReadingFeed::copy(
    std::span<const wire::Reading> readings, std::span<const std::int64_t> times_ns) const {
  auto block = std::make_shared<Block>(alive_bytes_);
  std::size_t bytes = 0;
  for (const wire::Reading& reading : readings) {
    bytes += text_bytes(reading);
    block->bytes += kept_bytes(reading);
  }
  alive_bytes_->fetch_add(block->bytes, std::memory_order_relaxed);
  block->text.reset(new char[bytes]);
  block->readings.assign(readings.begin(), readings.end());
  char* out = block->text.get();
  const auto keep = [&out](std::string_view& view) {
    if (!view.empty()) std::memcpy(out, view.data(), view.size());
    view = {out, view.size()};
    out += view.size();
  };
  for (std::size_t i = 0; i < readings.size(); ++i) {
    wire::Reading& reading = block->readings[i];
    reading.time_ns = times_ns[i];
    reading.metadata = nullptr;
    keep(reading.namespace_name);
    keep(reading.device);
    keep(reading.sensor);
    keep(reading.value.text);
    keep(reading.value.content_type);
    if (reading.window != nullptr) reading.window = &block->windows.emplace_back(*reading.window);
    if (reading.identity == nullptr) continue;
    wire::SeriesIdentity& identity = block->identities.emplace_back(*reading.identity);
    keep(identity.device_keys);
    keep(identity.body);
    reading.identity = &identity;
  }
  return block;
}

void ReadingFeed::trim(std::size_t bytes_max) {
  while (!blocks_.empty() && bytes_ > bytes_max) {
    bytes_ -= blocks_.front()->bytes;
    blocks_.pop_front();
  }
}

std::vector<std::shared_ptr<const ReadingFeed::Block>> ReadingFeed::blocks_from(
    std::uint64_t position) const {
  const auto begin = std::partition_point(
      blocks_.begin(), blocks_.end(), [position](const std::shared_ptr<const Block>& block) {
        return block->first + block->readings.size() <= position;
      });
  return {begin, blocks_.end()};
}

Result<ReadingFeed::Page> ReadingFeed::read(
    const std::optional<Position>& position,
    const std::function<bool(const wire::Reading&)>& visit) {
  std::vector<std::shared_ptr<const Block>> blocks;
  Page page;
  {
    const MutexLock lock(mutex_);
    followed_until_ns_.store(clock_.boot_ns() + kFollowNs, std::memory_order_relaxed);
    page.next = next_;
    if (!position) return page;
    page.gap = position->epoch != next_.epoch || position->next > next_.next;
    if (page.gap) return page;
    if (alive_bytes_->load(std::memory_order_relaxed) > bytes_ + kPagesBytesMax)
      return busy("followers that read slowly keep as much in memory as they may");
    blocks = blocks_from(position->next);
  }
  std::uint64_t at = position->next;
  for (const auto& block : blocks) {
    if (block->first > at) page.missed += block->first - at;
    at = std::max(at, block->first);
    page.kept.push_back(block);
    for (; at < block->first + block->readings.size(); ++at) {
      if (visit(block->readings[at - block->first])) continue;
      page.next.next = at;
      return page;
    }
  }
  page.missed += page.next.next - at;
  return page;
}

}  // namespace edgecase::ingest
