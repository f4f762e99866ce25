// Reads: one view, then core/reader.h.
#include <utility>

#include "core/engine_impl.h"
#include "core/reader.h"

namespace edgecase::engine {
namespace {

// A full key that takes memory only when it is long.
class ShortFullKey {
 public:
  ShortFullKey(NamespaceId id, ByteView key) {
    const std::size_t size = kNamespacePrefixBytes + key.size();
    if (size > sizeof bytes_) {
      long_ = make_full_key(id, key);
      view_ = long_;
      return;
    }
    encode_namespace(bytes_, id);
    key.copy(bytes_ + kNamespacePrefixBytes, key.size());
    view_ = ByteView(bytes_, size);
  }
  ShortFullKey(const ShortFullKey&) = delete;
  ShortFullKey& operator=(const ShortFullKey&) = delete;

  ByteView view() const { return view_; }

 private:
  char bytes_[128];
  Bytes long_;
  ByteView view_;
};

}  // namespace

VisibleView EngineImpl::visible_view() const {
  MutexLock lock(mutex_);
  return {view_, visible_.load(std::memory_order_acquire), nullptr};
}

VisibleView EngineImpl::view_for(const ReadOptions& options) const {
  if (options.snapshot == nullptr) return visible_view();
  VisibleView at = static_cast<const EngineSnapshot&>(*options.snapshot).at();
  MutexLock lock(mutex_);
  at.erased = erased();
  return at;
}

std::shared_ptr<const Snapshot> EngineImpl::snapshot() {
  std::shared_ptr<const void> generation = generations_.current();
  const std::uint64_t revocations = revocations_.count();
  return std::make_shared<const EngineSnapshot>(std::move(generation), visible_view(), revocations);
}

// What an iterator does not show any more.
Status EngineImpl::renew_hidden(NamespaceId id, VisibleView& at, ExpiryView& expiry) const {
  EC_TRY(check_readable(id));
  expiry = expiry_view(id);
  MutexLock lock(mutex_);
  at.erased = erased_log_.layers();
  return ok();
}

bool EngineImpl::is_revoked(NamespaceId namespace_id, ByteView first, ByteView last,
                            std::uint64_t since) const {
  if (revocations_.count() == since) return false;
  if (versions_->dropped().contains(namespace_id)) return true;
  const Bytes from = make_full_key(namespace_id, first);
  const Bytes to = make_full_key(namespace_id, last);
  if (const ExpiryView expiry = expiry_view(namespace_id); expiry.may_hide(from, to)) return true;
  return revocations_.has_erased(from, to, since);
}

std::weak_ptr<const void> EngineImpl::held_snapshots() {
  return generations_.turn();
}

// A file that is not there is no missing key: either its drive is gone, or the store is damaged.
Status EngineImpl::explain_read_failure(Status failure) const {
  const bool is_missing = failure.code() == StatusCode::Unavailable;
  if (is_missing || failure.code() == StatusCode::IoError) {
    const Status values = check_values_identity(file_system_, options_.values_directory, store_id_);
    if (values.code() == StatusCode::Unavailable)
      failure = values.with_context("", "; " + failure.message());
    else if (is_missing && values.ok())
      failure = std::move(failure)
                    .as(StatusCode::Corruption)
                    .with_context("", ", but the manifest names it");
  }
  if (failure.code() == StatusCode::Corruption) environment_.listener.on_corruption(failure);
  return failure;
}

Status EngineImpl::check_readable(NamespaceId id) const {
  if (!versions_->dropped().contains(id)) return ok();
  return not_found("namespace " + std::to_string(id) + " was dropped");
}

Result<Bytes> EngineImpl::get(NamespaceId namespace_id, ByteView key, const ReadOptions& options) {
  gets_.fetch_add(1, std::memory_order_relaxed);
  if (versions_->dropped().contains(namespace_id)) return check_readable(namespace_id);
  const ShortFullKey full_key(namespace_id, key);
  if (const ExpiryView expiry = expiry_view(namespace_id); expiry.hides(full_key.view()))
    return not_found("no such key");
  FoundEntry entry;
  const auto found =
      find_entry(view_for(options), *tables_, full_key.view(), options.fill_cache, hits_, entry);
  if (!found.ok()) return explain_read_failure(found.status());
  if (!*found || entry.kind == EntryKind::Delete) return not_found("no such key");
  return std::move(entry.value);
}

Result<std::unique_ptr<Iterator>> EngineImpl::scan(NamespaceId namespace_id, const KeyRange& range,
                                                   const ReadOptions& options) {
  EC_TRY(check_readable(namespace_id));
  compactor_->note_scan();
  ScanHost host{[this](Status failure) { return explain_read_failure(std::move(failure)); },
                revocations_,
                [this, namespace_id](VisibleView& at, ExpiryView& expiry) {
                  return renew_hidden(namespace_id, at, expiry);
                }};
  // Counted before anything is looked at.
  const std::uint64_t revocations = revocations_.count();
  auto iterator = make_scan(view_for(options), *tables_, expiry_view(namespace_id), namespace_id,
                            range, options, std::move(host), revocations);
  if (!iterator->status().ok()) return iterator->status();
  return iterator;
}

Result<RangeStats> EngineImpl::range_stats(NamespaceId namespace_id, const KeyRange& range,
                                           const ReadOptions& options) {
  EC_TRY(check_readable(namespace_id));
  auto counted = count_range(view_for(options), *tables_, expiry_view(namespace_id),
                             full_key_range(namespace_id, range), options.patience);
  if (!counted.ok() && counted.status().code() != StatusCode::Cancelled)
    return explain_read_failure(counted.status());
  return counted;
}

Status EngineImpl::summarize(NamespaceId namespace_id, const KeyRange& range,
                             std::size_t prefix_bytes, const ReadOptions& options,
                             const PrefixTaker& take) {
  EC_TRY(check_readable(namespace_id));
  // Its own errors are not of the drives.
  Status taken;
  Status status = summarize_range(view_for(options), *tables_, expiry_view(namespace_id),
                                  full_key_range(namespace_id, range), prefix_bytes,
                                  options.patience, [&](const PrefixStats& stats) {
                                    taken = take(stats);
                                    return taken;
                                  });
  if (!taken.ok() || status.ok() || status.code() == StatusCode::Cancelled) return status;
  return explain_read_failure(std::move(status));
}

Result<std::uint64_t> EngineImpl::approximate_size(NamespaceId namespace_id,
                                                   const KeyRange& range) {
  EC_TRY(check_readable(namespace_id));
  auto size = size_of_range(*visible_view().view->version, *tables_, namespace_id,
                            full_key_range(namespace_id, range));
  if (!size.ok()) return explain_read_failure(size.status());
  return size;
}

}  // namespace edgecase::engine
