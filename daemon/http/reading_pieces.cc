#include "http/reading_pieces.h"

#include <algorithm>

#include "edgecase/clock.h"

namespace edgecase::http {
namespace {

// Looking at the clock for every reading would cost as much as formatting one.
constexpr int kReadingsPerClockLook = 8;
// How much of a large text goes at once: escaped it may be six times as long.
constexpr std::size_t kTextSliceBytes = 8u << 10;

}  // namespace

bool asks_for_tiers(const Call& call) {
  const auto asked = flag_parameter(call, "tiers");
  return asked.ok() && *asked;
}

wire::ReadingFormatter formatter_for(const Call& call, wire::ReadingFormat format) {
  const bool of_all = namespace_parameter(call).empty();
  return wire::ReadingFormatter(
      format, of_all ? wire::LineNamespaces::Told : wire::LineNamespaces::NotTold,
      asks_for_tiers(call) ? wire::WindowColumns::Told : wire::WindowColumns::NotTold);
}

Result<bool> ReadingPieces::fill(std::string& piece) {
  // The rest of a large text may lie here.
  if (cursor_->is_given_revoked()) return not_found("a reading was erased while it was sent");
  if (!begun_ && frame_ == Frame::Whole) formatter_.begin(piece);
  begun_ = true;
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (int i = 1; piece.size() < kPieceBytes; ++i) {
    if (text_ != nullptr) {
      EC_TRY(fill_text(piece));
      continue;
    }
    EC_ASSIGN_OR_RETURN(const bool more, cursor_->next(reading_));
    if (!more) {
      if (frame_ == Frame::Whole) formatter_.end(piece);
      return false;
    }
    text_ = cursor_->large_text();
    if (text_ == nullptr) {
      const std::size_t before = piece.size();
      formatter_.reading(reading_, piece);
      const std::size_t room = kPieceBytes - std::min(piece.size(), kPieceBytes);
      const wire::Numbers behind = cursor_->take_numbers(room / (piece.size() - before + 1));
      formatter_.numbers(reading_, behind, piece);
      if (!behind.empty()) i = kReadingsPerClockLook;
    } else if (!formatter_.begin_text(reading_, piece)) {
      text_ = nullptr;
    }
    const bool look = i % kReadingsPerClockLook == 0;
    if (look && system_clock().boot_ns() - begin_ns > kPieceNs) break;
  }
  return true;
}

// A slice more, or what stands behind the last one.
Status ReadingPieces::fill_text(std::string& piece) {
  if (text_rest_.empty()) {
    EC_ASSIGN_OR_RETURN(text_rest_, text_->next_piece());
  }
  if (text_rest_.empty()) {
    formatter_.end_text(reading_, piece);
    text_ = nullptr;
    return ok();
  }
  const std::string_view slice = text_rest_.substr(0, kTextSliceBytes);
  formatter_.text(reading_, slice, piece);
  text_rest_.remove_prefix(slice.size());
  return ok();
}

void ReadingPieces::let_go() {
  if (!text_rest_.empty()) {
    // It may lie in what goes.
    std::string rest(text_rest_);
    kept_rest_ = std::move(rest);
    text_rest_ = kept_rest_;
  }
  cursor_->let_go();
}

}  // namespace edgecase::http
