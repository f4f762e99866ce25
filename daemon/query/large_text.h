// A text or bytes of a reading that are too large to lie in memory, in pieces. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "edgecase/iterator.h"
#include "wire/reading.h"

namespace edgecase::query {

// From here on texts and bytes of readings are read in pieces.
inline constexpr std::uint64_t kLargeTextBytes = 256u << 10;

class LargeText {
 public:
  // What open() is given, once more.
  using Reopen = std::function<Result<std::unique_ptr<LargeValue>>()>;

  // `reopen` may be called as long as this is there. Corruption: `value` is none of a text or
  // bytes. Other errors: those of the value.
  static Result<std::unique_ptr<LargeText>> open(std::unique_ptr<LargeValue> value, Reopen reopen);
  // Views a text or bytes that lie in memory for as long.
  explicit LargeText(const wire::Value& whole);

  // Text or Bytes, with the content type; its text is empty. Valid as long as this is.
  wire::Value kind() const;
  std::uint64_t size_bytes() const { return size_bytes_; }
  // What comes next, valid until the next call; empty at the end. Unavailable: another value was
  // stored in its place since let_go().
  Result<std::string_view> next_piece();
  // Keeps nothing alive until the next piece is asked for. The last piece is valid no more.
  void let_go() { value_.reset(); }

 private:
  LargeText(std::unique_ptr<LargeValue> value, Reopen reopen)
      : value_(std::move(value)), reopen_(std::move(reopen)), sequence_(value_->sequence()) {}
  Status come_back();

  std::unique_ptr<LargeValue> value_;  // null: it was let go of, or lies in memory
  Reopen reopen_;                      // null: it lies in memory
  std::uint64_t sequence_ = 0;
  wire::ValueType type_ = wire::ValueType::Text;
  std::string content_type_;
  std::string_view rest_;    // of the piece at hand, before it is given out; all, in memory
  std::uint64_t given_ = 0;  // bytes of the value
  std::uint64_t size_bytes_ = 0;
};

}  // namespace edgecase::query
