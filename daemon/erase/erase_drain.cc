// EraseService after an erasure is invisible: bytes that go, certificates that tell.
#include <algorithm>
#include <chrono>
#include <functional>

#include "erase/erase_jobs.h"
#include "erase/erase_service.h"

namespace edgecase::erase {
namespace {

constexpr std::size_t kCertificatesPerBatch = 50;

// For what is pending the values drive counts as one that keeps its bytes.
StoreDrives with_bytes_left(StoreDrives drives) {
  drives.values.overwrites = Overwrites::Unknown;
  drives.values.why = "what was erased is not overwritten yet";
  return drives;
}

}  // namespace

std::string warning_of(const Reach& reach) {
  return "erasures are " + std::string(level_name(reach.level)) +
         ", not physical: what is overwritten may stay on a drive (" + reach.why + ")" +
         (reach.level == ErasureLevel::Logical ? "; encryption, with the metadata on a drive that "
                                                 "overwrites in place, helps"
                                               : "");
}

std::size_t EraseService::pending_count() const {
  const MutexLock lock(mutex_);
  return pending_.size();
}

Status EraseService::obstacle() const {
  const MutexLock lock(mutex_);
  return obstacle_;
}

Status EraseService::drain() {
  const MutexLock draining(drain_mutex_);
  std::vector<std::uint64_t> numbers;
  bool with_names = false;
  {
    // What becomes pending from here on is for the next one.
    const MutexLock lock(mutex_);
    for (const auto& [number, certificate] : pending_) {
      numbers.push_back(number);
      with_names = with_names || certificate.with_names;
    }
  }
  if (numbers.empty()) return ok();
  Status status;
  {
    // Ranges that did not fit into the batch of an erasure count as hidden with it.
    const MutexLock erasing(erase_mutex_);
    status = run_jobs(parts_.engine, records_);
  }
  if (status.ok()) status = parts_.devices.forget_taken_back();
  if (status.ok() && with_names) status = merge_rejected();
  if (status.ok()) {
    const StoreDrives drives_before = drives_->look();
    const std::uint64_t before = parts_.engine.stats().encryption.destroyed_keys;
    const auto report = parts_.engine.erase();
    const std::uint64_t destroyed = parts_.engine.stats().encryption.destroyed_keys - before;
    // What happened in between counts as it was at the worse of both moments.
    const StoreDrives drives = worse_of(drives_before, drives_->look());
    if (destroyed != 0) status = note_destroyed(numbers, destroyed, drives);
    if (status.ok() && report.ok()) forget_gone();
    if (status.ok()) status = report.ok() ? complete(numbers, *report, drives) : report.status();
  }
  const MutexLock lock(mutex_);
  obstacle_ = status;
  changed_.notify_all();
  return status;
}

// What is kept of names and values for later, here and by others.
void EraseService::forget_gone() {
  parts_.devices.forget_recent();
  std::vector<std::function<void()>> observers;
  {
    const MutexLock lock(mutex_);
    observers = on_gone_;
  }
  for (const auto& forget : observers) forget();
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
                                    std::uint64_t destroyed_keys, const StoreDrives& drives) {
  std::vector<std::uint64_t> with_keys;
  {
    const MutexLock lock(mutex_);
    for (const std::uint64_t number : numbers) {
      Pending& pending = pending_.at(number);
      if (!pending.has_keys) continue;
      pending.destroyed_keys += destroyed_keys;
      with_keys.push_back(number);
    }
  }
  const StoreDrives pending = with_bytes_left(drives);
  return rewrite(with_keys, [&](Certificate& certificate) {
    Reach now = reach(pending, is_of_whole_devices(certificate));
    certificate.level = now.level;
    certificate.level_why = std::move(now.why);
  });
}

Status EraseService::complete(const std::vector<std::uint64_t>& numbers,
                              const ErasureReport& report, const StoreDrives& drives) {
  const std::int64_t gone_ns = parts_.clock.wall_ns();
  return rewrite(numbers, [&](Certificate& certificate) {
    certificate.state = ErasureState::Done;
    certificate.gone_ns = gone_ns;
    Reach now = reach(drives, is_of_whole_devices(certificate));
    certificate.level = now.level;
    certificate.level_why = std::move(now.why);
    certificate.removed_files = report.removed_files;
    certificate.overwritten_bytes = report.overwritten_bytes;
    certificate.rewritten_bytes = report.rewritten_bytes;
  });
}

// What is sealed is gone with its key where the ring that held it is: a ring that was replaced on a
// drive that keeps old bytes opens everything again, for whoever has the master key.
Reach EraseService::reach(const StoreDrives& drives, bool whole_devices) const {
  if (drives.overwrite_in_place()) return {ErasureLevel::Physical, {}};
  Reach reach{ErasureLevel::Logical, obstacle_of(drives)};
  const EncryptionStats encryption = parts_.engine.stats().encryption;
  if (!encryption.is_on) return reach;
  if (drives.metadata.overwrites != Overwrites::InPlace) {
    reach.why += "; the keys that were destroyed may be on the metadata drive, too";
  } else if (!whole_devices) {
    reach.why += "; keys go with whole devices alone";
  } else if (encryption.shares_keys) {
    reach.why += "; so many devices have no keys of their own";
  } else {
    reach.level = ErasureLevel::Cryptographic;
  }
  return reach;
}

Reach EraseService::reach_of(const Certificate& certificate) const {
  if (certificate.level) return {*certificate.level, certificate.level_why};
  if (certificate.state == ErasureState::Done)
    return reach(drives_->last(), is_of_whole_devices(certificate));
  if (certificate.destroyed_keys == 0) return {};
  return reach(with_bytes_left(drives_->last()), is_of_whole_devices(certificate));
}

// Certificates that are pending, a few at a time; durable. Erasures that are done are pending no
// more.
Status EraseService::rewrite(const std::vector<std::uint64_t>& numbers,
                             const std::function<void(Certificate&)>& change) {
  for (std::size_t begin = 0; begin < numbers.size(); begin += kCertificatesPerBatch) {
    const std::size_t end = std::min(begin + kCertificatesPerBatch, numbers.size());
    std::vector<std::uint64_t> done;
    WriteBatch batch;
    for (std::size_t i = begin; i < end; ++i) {
      EC_ASSIGN_OR_RETURN(Certificate each, certificate(numbers[i]));
      {
        const MutexLock lock(mutex_);
        each.destroyed_keys += pending_.at(numbers[i]).destroyed_keys;
      }
      change(each);
      if (each.state == ErasureState::Done) done.push_back(numbers[i]);
      append_certificate(each, batch);
    }
    EC_TRY(parts_.engine.write(batch, Durability::Sync));
    const MutexLock lock(mutex_);
    for (std::size_t i = begin; i < end; ++i) pending_.at(numbers[i]).destroyed_keys = 0;
    for (const std::uint64_t number : done) pending_.erase(number);
  }
  return ok();
}

Result<Certificate> EraseService::wait(std::uint64_t number, std::int64_t timeout_ns) {
  {
    const MutexLock lock(mutex_);
    if (timeout_ns > 0 && !is_over(number)) {
      ++waiting_;
      changed_.notify_all();
      const CondVar::Deadline deadline = CondVar::deadline_in(timeout_ns);
      while (!is_over(number) && changed_.wait_until(mutex_, deadline)) {
      }
      --waiting_;
    }
  }
  return certificate(number);
}

void EraseService::rest(std::int64_t duration_ns) {
  const MutexLock lock(mutex_);
  const CondVar::Deadline deadline = CondVar::deadline_in(duration_ns);
  while (waiting_ == 0 && !waits_ended_ && !is_hurried() && changed_.wait_until(mutex_, deadline)) {
  }
}

bool EraseService::is_over(std::uint64_t number) const {
  return !pending_.contains(number) || obstacle_.code() == StatusCode::Unavailable || waits_ended_;
}

bool EraseService::is_hurried() const {
  std::uint64_t ranges = 0;
  for (const auto& [number, pending] : pending_) ranges += pending.ranges;
  return pending_.size() >= kHurriedPending || ranges >= kHurriedRanges;
}

void EraseService::end_waiting() {
  const MutexLock lock(mutex_);
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

Result<std::vector<Certificate>> EraseService::certificates(
    const std::optional<catalog::DeviceName>& device, const std::string& owner, std::size_t limit,
    std::uint64_t before) const {
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
  for (std::optional<std::uint64_t> number = before; found.size() < limit;) {
    number = newest_below(*number, of_device, of_owner);
    if (!number) break;
    const auto record = parts_.engine.get(records_, certificate_key(*number), {});
    if (record.status().code() == StatusCode::NotFound) continue;  // it has given way meanwhile
    EC_TRY(record.status());
    // Which it may be of shows faster than what it says.
    if (record->find(of_device) == Bytes::npos || record->find(of_owner) == Bytes::npos) continue;
    EC_ASSIGN_OR_RETURN(Certificate each, decode_certificate(*record));
    if (is_meant(each)) found.push_back(std::move(each));
  }
  return found;
}

std::optional<std::uint64_t> EraseService::newest_below(std::uint64_t before,
                                                        const std::string& device,
                                                        const std::string& owner) const {
  const MutexLock lock(mutex_);
  return index_.newest_below(before, device, owner);
}

}  // namespace edgecase::erase
