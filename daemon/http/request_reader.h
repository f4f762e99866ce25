// Bytes of one connection to requests, one after another (RequestReader); bodies that come in
// chunks or compressed. Owned by one thread at a time; does no I/O, so that tests and fuzzers can
// drive it.
//
//   progress = reader.feed(bytes) until Complete or Refused; take(); then next() for what has
//   already been received of the following request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/request_head.h"
#include "net/budgets.h"

namespace edgecase::http {

// Bodies refuse what is malformed, and stop at a limit before memory is taken for more.

// Decodes Transfer-Encoding: chunked as bytes come. Chunk extensions and trailers are skipped, each
// at most kChunkLineMaxBytes long.
class ChunkedDecoder {
 public:
  static constexpr std::size_t kChunkLineMaxBytes = 256;
  static constexpr std::size_t kTrailersMaxBytes = 4'096;

  enum class Progress : unsigned char { NeedMore, Done, Malformed, TooLarge, OverBudget };

  // Appends the payload to `body`, which may reach `limit_bytes`, and takes it from the budget.
  // `used` tells how much of `bytes` belonged to this body.
  Progress feed(std::string_view bytes, std::size_t limit_bytes, net::BudgetShare& share,
                std::string& body, std::size_t& used);

 private:
  enum class Stage : unsigned char { SizeLine, Payload, PayloadEnd, Trailers, Done };

  Progress size_line(std::string_view line, std::size_t room);

  Stage stage_ = Stage::SizeLine;
  std::uint64_t left_in_chunk_ = 0;
  std::string line_;  // an unfinished one
  std::size_t trailer_bytes_ = 0;
};

// Frames of zstd in one body, and how far back one may look: what RFC 9659 has clients keep to.
inline constexpr std::size_t kZstdFramesMax = 4'096;
inline constexpr std::size_t kZstdWindowMaxBytes = 8u << 20;

// Undoes `coding`; gzip may have several members, zstd several frames, deflate comes with zlib's
// wrapper or without, as clients differ. The result is at most `limit_bytes` long and taken from
// the budget while it grows, as is what zstd looks back on. Refuses: 400 truncated, damaged or
// followed by something else; 413; 503 over budget.
Refusal inflate_body(std::string_view compressed, wire::Coding coding, std::size_t limit_bytes,
                     net::BudgetShare& share, std::string& body);

// A complete request; its body still compressed as head.coding says.
struct ReceivedRequest {
  RequestHead head;
  std::string body;
  net::BudgetShare share;  // of the body's bytes
};

class RequestReader {
 public:
  enum class Progress : unsigned char { NeedMore, Complete, Refused };

  RequestReader(net::ByteBudget& budget, std::size_t body_limit_bytes,
                const HeadLimits& head_limits = {})
      : body_limit_bytes_(body_limit_bytes),
        head_limits_(head_limits),
        request_{{}, {}, net::BudgetShare(budget)},
        budget_(budget) {}

  Progress feed(std::string_view bytes);
  // After Complete, until take().
  const RequestHead& head() const { return request_.head; }
  // After Complete. next() may be called then.
  ReceivedRequest take();
  Progress next() { return feed({}); }

  // After Refused.
  const Refusal& refusal() const { return refusal_; }
  const std::string& target() const { return request_.head.target; }

  // Nothing of a request has come yet.
  bool is_idle() const { return stage_ == Stage::Head && input_.empty(); }
  bool in_body() const { return stage_ == Stage::Body; }
  // The client waits for "100 Continue"; asked for once.
  bool claim_continue();
  // How much to receive at once: never far beyond this request's end.
  std::size_t wanted_bytes() const;
  std::uint64_t body_bytes() const { return request_.body.size(); }

 private:
  enum class Stage : unsigned char { Head, Body, Complete };

  Progress begin_body();
  Progress continue_body(std::string_view bytes, std::size_t& used);
  Progress refuse(Refusal refusal);

  const std::size_t body_limit_bytes_;
  const HeadLimits head_limits_;
  Stage stage_ = Stage::Head;
  std::string input_;  // received, not yet understood
  ReceivedRequest request_;
  ChunkedDecoder chunks_;
  bool owes_continue_ = false;
  Refusal refusal_;
  net::ByteBudget& budget_;
};

}  // namespace edgecase::http
