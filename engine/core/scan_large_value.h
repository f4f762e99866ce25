// A large value that a scan hands out. It keeps the view that it is read from, tells what went
// wrong as the scan does, and ends where its key is revoked. Used by scan.cc alone; one thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/read_view.h"
#include "core/reader.h"

namespace edgecase::engine {

// What was erased, bytes or key, is no damage.
inline Status explain_large(const std::function<Status(Status)>& explain, const Status& failure) {
  return failure.code() == StatusCode::NotFound ? failure : explain(failure);
}

class ScanLargeValue final : public LargeValue {
 public:
  ScanLargeValue(std::unique_ptr<LargeValue> inner, VisibleView at, ScanHost host, Bytes full_key,
                 std::uint64_t revocations)
      : at_(std::move(at)),
        inner_(std::move(inner)),
        host_(std::move(host)),
        full_key_(std::move(full_key)),
        revocations_(revocations) {}

  std::uint64_t size_bytes() const override { return inner_->size_bytes(); }
  std::uint64_t sequence() const override { return inner_->sequence(); }
  Result<ByteView> next_piece() override {
    EC_TRY(check_there());
    auto piece = inner_->next_piece();
    if (!piece.ok()) return explain_large(host_.explain, piece.status());
    // What was read may be blank by now, or be gone.
    EC_TRY(check_there());
    return piece;
  }

 private:
  Status check_there() {
    const std::uint64_t count = host_.revocations.count();
    if (count == revocations_) return ok();
    ExpiryView expiry;
    EC_TRY(host_.renew(at_, expiry));
    if (expiry.hides(full_key_) || is_hidden(at_, full_key_, inner_->sequence()))
      return not_found("a value was erased while it was read");
    revocations_ = count;
    return ok();
  }

  VisibleView at_;
  const std::unique_ptr<LargeValue> inner_;
  const ScanHost host_;
  const Bytes full_key_;
  std::uint64_t revocations_;
};

}  // namespace edgecase::engine
