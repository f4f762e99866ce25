// EraseService after an erasure is invisible: bytes that go, certificates that tell.
#include <algorithm>
#include <chrono>
#include <functional>

#include "erase/erase_jobs.h"
#include "erase/erase_records.h"
#include "erase/erase_service.h"

namespace edgecase::erase {

std::size_t EraseService::pending_count() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

Status EraseService::obstacle() const {
  const std::lock_guard lock(mutex_);
  return obstacle_;
}

Status EraseService::drain() {
  const std::lock_guard draining(drain_mutex_);
  std::vector<std::uint64_t> numbers;
  bool with_names = false;
  {
    // What becomes pending from here on is for the next one.
    const std::lock_guard lock(mutex_);
    for (const auto& [number, certificate] : pending_) {
      numbers.push_back(number);
      with_names = with_names || certificate.with_names;
    }
  }
  if (numbers.empty()) return ok();
  Status status;
  {
    // Ranges that did not fit into the batch of an erasure count as hidden with it.
    const std::lock_guard erasing(erase_mutex_);
    status = run_jobs(parts_.engine, records_);
  }
  if (status.ok()) status = parts_.devices.forget_taken_back();
  if (status.ok() && with_names) status = merge_rejected();
  if (status.ok()) {
    const std::uint64_t before = parts_.engine.stats().encryption.destroyed_keys;
    const auto report = parts_.engine.erase();
    const std::uint64_t destroyed = parts_.engine.stats().encryption.destroyed_keys - before;
    if (destroyed != 0) status = note_destroyed(numbers, destroyed);
    if (status.ok()) status = report.ok() ? complete(numbers, *report) : report.status();
  }
  const std::lock_guard lock(mutex_);
  obstacle_ = status;
  changed_.notify_all();
  return status;
}

// Messages that gave way to others before the erasure named it, too: nobody sees them, and their
// bytes wait for the next merge.
Status EraseService::merge_rejected() {
  const auto found = parts_.engine.find_namespace(wire::kRejectedNamespace);
  return found.ok() ? parts_.engine.compact({found->id}, {}) : ok();
}

// While bytes remain it is what the certificate can say. Keys are those of whole devices; of
// several such erasures that were pending together they are counted together.
Status EraseService::note_destroyed(const std::vector<std::uint64_t>& numbers,
                                    std::uint64_t destroyed_keys) {
  WriteBatch batch;
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t number : numbers) {
      Certificate& certificate = pending_.at(number);
      const bool has_keys = certificate.with_names && certificate.devices > 0;
      if (!has_keys) continue;
      certificate.destroyed_keys += destroyed_keys;
      append_certificate(certificate, batch);
    }
  }
  return parts_.engine.write(batch, Durability::Sync);
}

Status EraseService::complete(const std::vector<std::uint64_t>& numbers,
                              const ErasureReport& report) {
  std::vector<Certificate> done;
  WriteBatch batch;
  const std::int64_t gone_ns = parts_.clock.wall_ns();
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t number : numbers) done.push_back(pending_.at(number));
  }
  for (Certificate& certificate : done) {
    certificate.state = ErasureState::Done;
    certificate.gone_ns = gone_ns;
    certificate.removed_files = report.removed_files;
    certificate.overwritten_bytes = report.overwritten_bytes;
    certificate.rewritten_bytes = report.rewritten_bytes;
    append_certificate(certificate, batch);
  }
  EC_TRY(parts_.engine.write(batch, Durability::Sync));
  const std::lock_guard lock(mutex_);
  for (const std::uint64_t number : numbers) pending_.erase(number);
  return ok();
}

Result<Certificate> EraseService::wait(std::uint64_t number, std::int64_t timeout_ns) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this, number] {
      return !pending_.contains(number) || obstacle_.code() == StatusCode::Unavailable ||
             waits_ended_;
    });
  }
  return certificate(number);
}

void EraseService::end_waiting() {
  const std::lock_guard lock(mutex_);
  waits_ended_ = true;
  changed_.notify_all();
}

Result<Certificate> EraseService::certificate(std::uint64_t number) const {
  const auto record = parts_.engine.get(records_, certificate_key(number), {});
  if (record.status().code() == StatusCode::NotFound)
    return not_found("there is no certificate " + std::to_string(number));
  EC_TRY(record.status());
  return decode_certificate(*record);
}

void EraseService::index(const Certificate& certificate) {
  const std::hash<std::string> hash;
  const std::lock_guard lock(mutex_);
  for (const std::string& each : certificate.device_pseudonyms)
    by_pseudonym_.emplace(hash(each), certificate.number);
  if (!certificate.owner_pseudonym.empty())
    by_pseudonym_.emplace(hash(certificate.owner_pseudonym), certificate.number);
}

void EraseService::forget_index(const Certificate& certificate) {
  std::vector<std::string> all = certificate.device_pseudonyms;
  all.push_back(certificate.owner_pseudonym);
  const std::lock_guard lock(mutex_);
  for (const std::string& each : all) {
    const auto [first, end] = by_pseudonym_.equal_range(std::hash<std::string>()(each));
    const auto found = std::find_if(
        first, end, [&](const auto& entry) { return entry.second == certificate.number; });
    if (found != end) by_pseudonym_.erase(found);
  }
}

// Newest first.
std::vector<std::uint64_t> EraseService::numbers_of(const std::string& pseudonym) const {
  std::vector<std::uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    const auto [first, end] = by_pseudonym_.equal_range(std::hash<std::string>()(pseudonym));
    for (auto at = first; at != end; ++at) numbers.push_back(at->second);
  }
  std::sort(numbers.rbegin(), numbers.rend());
  return numbers;
}

Result<std::vector<Certificate>> EraseService::certificates(
    const std::optional<catalog::DeviceName>& device, const std::string& owner,
    std::size_t limit) const {
  const Pseudonyms& pseudonyms = fences_->pseudonyms();
  std::string of_device, of_owner;
  if (device) {
    of_device =
        auth::hex_text(auth::view_of(pseudonyms.of_device(device->namespace_name, device->device)));
  }
  if (!owner.empty()) of_owner = auth::hex_text(auth::view_of(pseudonyms.of_owner(owner)));
  const auto is_meant = [&](const Certificate& each) {
    const auto& devices = each.device_pseudonyms;
    return (of_device.empty() ||
            std::find(devices.begin(), devices.end(), of_device) != devices.end()) &&
           (of_owner.empty() || each.owner_pseudonym == of_owner);
  };
  std::vector<Certificate> found;
  if (!of_device.empty() || !of_owner.empty()) {
    for (const std::uint64_t number : numbers_of(of_device.empty() ? of_owner : of_device)) {
      if (found.size() == limit) break;
      auto each = certificate(number);
      if (each.status().code() == StatusCode::NotFound) continue;  // it gave way meanwhile
      EC_TRY(each.status());
      if (is_meant(*each)) found.push_back(std::move(each).value());
    }
    return found;
  }
  ReadOptions options;
  options.direction = Direction::Reverse;
  options.fill_cache = false;
  EC_ASSIGN_OR_RETURN(const auto iterator, parts_.engine.scan(records_, {"C", "D"}, options));
  for (; iterator->valid() && found.size() < limit; iterator->next()) {
    EC_ASSIGN_OR_RETURN(found.emplace_back(), decode_certificate(iterator->value()));
  }
  EC_TRY(iterator->status());
  return found;
}

}  // namespace edgecase::erase
