#include "http/influx_answer.h"

#include <algorithm>
#include <utility>

#include "edgecase/clock.h"

namespace edgecase::http {
namespace {

// Looking at the clock for every row would cost as much as writing one.
constexpr int kStepsPerClockLook = 8;
// Rows that one step writes, where they are at hand.
constexpr std::size_t kRowsAtOnce = 64;

}  // namespace

Result<bool> InfluxAnswer::fill(std::string& piece) {
  if (is_in_rows_ && (rows().is_given_revoked() || of_many_.is_revoked()))
    return not_found("a reading was erased while it was sent");
  if (is_in_rows_) {
    const Status asked = query_->go_on();
    if (!asked.ok()) {
      text_->end_series(false, false, piece);
      end_statement(asked, piece);
    }
  }
  const std::int64_t begin_ns = system_clock().boot_ns();
  for (int i = 1; piece.size() < kPieceBytes; ++i) {
    if (!step(piece)) return false;
    // What is given of one statement is taken before that of the next.
    if (!given_.empty() && statement_ < statements_.size()) break;
    const bool looks = i % kStepsPerClockLook == 0;
    if (looks && system_clock().boot_ns() - begin_ns > kPieceNs) break;
  }
  return true;
}

void InfluxAnswer::let_go() {
  for (PlannedStatement& each : statements_) {
    if (each.rows != nullptr) each.rows->let_go();
  }
}

query::GivenReadings InfluxAnswer::take_given() {
  if (given_.empty() && is_in_rows_) {
    query::GivenReadings given = rows().take_given();
    given.add(of_many_);
    // What is not written yet is given with the next piece as well.
    of_many_ = next_of_many_ < many_.size() ? given : query::GivenReadings();
    return given;
  }
  return std::exchange(given_, {});
}

// False: that was all.
bool InfluxAnswer::step(std::string& piece) {
  if (is_in_rows_) {
    next_row(piece);
  } else if (statement_ < statements_.size()) {
    begin_statement(piece);
  } else {
    text_->end(piece);
    return false;
  }
  return true;
}

void InfluxAnswer::begin_statement(std::string& piece) {
  const PlannedStatement& planned = statements_[statement_];
  if (has_failed_) return end_statement(busy("not executed"), piece);
  if (!planned.status.ok() || planned.rows == nullptr) return end_statement(planned.status, piece);
  if (const Status asked = query_->go_on(); !asked.ok()) return end_statement(asked, piece);
  const auto has_series = rows().next_series(head_);
  if (!has_series.ok() || !*has_series) return end_statement(has_series.status(), piece);
  begin_series(piece);
}

void InfluxAnswer::begin_series(std::string& piece) {
  is_in_rows_ = true;
  rows_in_chunk_ = 0;
  text_->begin_series(statement_, head_, piece);
}

// The next rows, of which many are at hand. False: there are none, or something has failed.
Result<bool> InfluxAnswer::next_rows(std::string& piece) {
  if (next_of_many_ == many_.size()) {
    next_of_many_ = 0;
    many_.clear();
    EC_ASSIGN_OR_RETURN(const bool has_any, rows().next_rows(many_));
    if (!has_any) return false;
  }
  end_full_chunk(piece);
  std::size_t count = std::min(kRowsAtOnce, many_.size() - next_of_many_);
  if (chunk_rows_ > 0) count = std::min(count, chunk_rows_ - rows_in_chunk_);
  text_->rows(many_, next_of_many_, next_of_many_ + count, rows(), piece);
  next_of_many_ += count;
  rows_in_chunk_ += count;
  return true;
}

void InfluxAnswer::end_full_chunk(std::string& piece) {
  if (chunk_rows_ == 0 || rows_in_chunk_ < chunk_rows_) return;
  text_->end_series(true, true, piece);
  begin_series(piece);
}

void InfluxAnswer::next_row(std::string& piece) {
  auto has_row = next_rows(piece);
  if (has_row.ok() && *has_row) return;
  if (has_row.ok()) has_row = rows().next_row(row_);
  if (has_row.ok() && *has_row) {
    end_full_chunk(piece);
    ++rows_in_chunk_;
    return text_->row(row_, rows(), piece);
  }
  // What ends a chunk says whether another one follows.
  const auto has_series = has_row.ok() ? rows().next_series(head_) : has_row;
  const bool more = has_series.ok() && *has_series;
  text_->end_series(false, more, piece);
  if (more) return begin_series(piece);
  end_statement(has_series.status(), piece);
}

void InfluxAnswer::end_statement(const Status& status, std::string& piece) {
  PlannedStatement& ended = statements_[statement_];
  const std::string notice = ended.rows == nullptr ? std::string() : ended.rows->notice();
  const std::string error = status.ok() ? std::string() : status.message();
  text_->end_statement(statement_, error, notice, piece);
  has_failed_ = has_failed_ || !status.ok();
  is_in_rows_ = false;
  ++statement_;
  if (ended.rows != nullptr) given_ = ended.rows->take_given();
  given_.add(std::exchange(of_many_, {}));
  ended.rows = nullptr;
}

}  // namespace edgecase::http
