// Readings of a cursor as the pieces of an answer. Inside daemon/http only. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/http_routes.h"
#include "query/query_service.h"
#include "wire/reading_format.h"

namespace edgecase::http {

// What a format has around its readings.
enum class Frame : unsigned char { Whole, None };

// Whether `tiers` is asked for: windows as they are kept come, too.
bool asks_for_tiers(const Call& call);
// A formatter; for readings of all namespaces line protocol tells which is whose.
wire::ReadingFormatter formatter_for(const Call& call, wire::ReadingFormat format);

class ReadingPieces final : public PieceSource {
 public:
  ReadingPieces(std::unique_ptr<query::ReadingCursor> cursor, wire::ReadingFormatter formatter,
                Frame frame = Frame::Whole)
      : cursor_(std::move(cursor)), formatter_(std::move(formatter)), frame_(frame) {}

  Result<bool> fill(std::string& piece) override;
  void let_go() override;
  query::GivenReadings take_given() override { return cursor_->take_given(); }
  const query::LeftOut* left_out() const override { return cursor_->left_out(); }
  bool names_left_out() const override { return names_lacks_; }
  // Rows say by themselves what they lack.
  void names_lacks() { names_lacks_ = true; }

 private:
  Status fill_text(std::string& piece);

  const std::unique_ptr<query::ReadingCursor> cursor_;
  wire::ReadingFormatter formatter_;
  const Frame frame_;
  wire::Reading reading_;
  query::LargeText* text_ = nullptr;  // of reading_, as far as it is not formatted
  std::string_view text_rest_;        // of the piece at hand
  std::string kept_rest_;             // that after let_go()
  bool begun_ = false;
  bool names_lacks_ = false;
};

}  // namespace edgecase::http
