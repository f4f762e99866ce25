#include "query/large_text.h"

#include <algorithm>

#include "wire/reading_key.h"

namespace edgecase::query {

Result<std::unique_ptr<LargeText>> LargeText::open(std::unique_ptr<LargeValue> value,
                                                   Reopen reopen) {
  std::unique_ptr<LargeText> text(new LargeText(std::move(value), std::move(reopen)));
  EC_ASSIGN_OR_RETURN(const ByteView piece, text->value_->next_piece());
  // What stands before the text lies within the first piece.
  wire::Value begin;
  if (!wire::decode_value(piece, begin) ||
      (begin.type != wire::ValueType::Text && begin.type != wire::ValueType::Bytes))
    return corruption("a large value is none of a reading");
  text->type_ = begin.type;
  text->content_type_ = begin.content_type;
  text->rest_ = begin.text;
  text->given_ = piece.size() - begin.text.size();
  text->size_bytes_ = text->value_->size_bytes() - text->given_;
  return text;
}

LargeText::LargeText(const wire::Value& whole)
    : type_(whole.type),
      content_type_(whole.content_type),
      rest_(whole.text),
      size_bytes_(whole.text.size()) {}

wire::Value LargeText::kind() const {
  return type_ == wire::ValueType::Text ? wire::Value::of_text({})
                                        : wire::Value::of_bytes({}, content_type_);
}

Result<std::string_view> LargeText::next_piece() {
  if (reopen_ != nullptr && value_ == nullptr) EC_TRY(come_back());
  if (reopen_ != nullptr && rest_.empty()) {
    EC_ASSIGN_OR_RETURN(rest_, value_->next_piece());
  }
  const std::string_view piece = rest_.substr(0, kLargeValuePieceBytes);
  rest_.remove_prefix(piece.size());
  given_ += piece.size();
  return piece;
}

// To where it was.
Status LargeText::come_back() {
  EC_ASSIGN_OR_RETURN(value_, reopen_());
  if (value_ == nullptr || value_->sequence() != sequence_)
    return unavailable("a value was replaced while it was read");
  rest_ = {};
  for (std::uint64_t at = 0; at < given_;) {
    EC_ASSIGN_OR_RETURN(rest_, value_->next_piece());
    if (rest_.empty()) return corruption("a large value ends early");
    const std::uint64_t more = std::min<std::uint64_t>(rest_.size(), given_ - at);
    at += more;
    rest_.remove_prefix(more);
  }
  return ok();
}

}  // namespace edgecase::query
