// The answer of a handler: status line, headers, and a body that is there as a whole or comes in
// pieces. Used by the router and by refusals; one thread an answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/answer_stream.h"
#include "http/packing.h"
#include "http/request_head.h"
#include "wire/packer.h"

namespace edgecase::http {

// The body of an answer that is not built up as a whole, on its way into the stream.
class PieceWriter {
 public:
  // `packer` may be null: pieces go as they are.
  PieceWriter(AnswerStream& stream, bool is_chunked, wire::Packer* packer = nullptr)
      : stream_(stream), is_chunked_(is_chunked), packer_(packer) {}

  // False: the connection is to be cut.
  bool write(std::string_view piece);
  // Behind the last piece: the end of what was packed, and the last chunk. False: as above.
  bool finish();
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  bool send(std::string_view bytes);

  AnswerStream& stream_;
  const bool is_chunked_;
  wire::Packer* const packer_;
  std::uint64_t written_bytes_ = 0;
};

enum class Sent : unsigned char { More, All, Broken };
// Writes a piece of a body; asked again as long as there is more.
using SendPiece = std::function<Sent(PieceWriter&)>;

struct Response {
  int status = 200;
  // As they are sent. Those of the body's framing and of the connection are added when it is.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  SendPiece pieces = {};                      // in place of `body`
  std::shared_ptr<wire::Packer> packer = {};  // of pieces; null: they go as they are
  // The length of all pieces. None: HTTP/1.1 gets chunks, HTTP/1.0 what comes until the end.
  std::optional<std::uint64_t> pieces_bytes = std::nullopt;

  bool has_header(std::string_view name) const;
  // In place of one of this name. add_header() keeps that one.
  void set_header(std::string_view name, std::string value);
  void add_header(std::string_view name, std::string value);
  void set_pieces(std::string_view content_type, SendPiece send,
                  std::optional<std::uint64_t> bytes = std::nullopt);
};

// The status line and all headers, to the empty line behind them.
std::string head_text(const Response& response, bool is_chunked, bool closes);

// Writes the answer to a request. False: it is incomplete, and the connection is to be cut, as when
// `is_cut` was set meanwhile.
bool send_response(const RequestHead& request, const Response& response, bool closes,
                   AnswerStream& stream, const std::atomic<bool>& is_cut);

}  // namespace edgecase::http
