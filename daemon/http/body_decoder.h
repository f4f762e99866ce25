// Request bodies as they are sent: in chunks, and compressed. Both refuse what is malformed, and
// stop at a limit before memory is taken for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/request_head.h"
#include "net/byte_budget.h"

namespace edgecase::http {

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

}  // namespace edgecase::http
