// The answer of a handler on its way to the client: status line, headers, a body that is there as a
// whole or comes in pieces (Response); its packing; the stream that it is written to
// (AnswerStream). Used by the router and by refusals; one thread an answer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/lanes.h"
#include "http/request_head.h"
#include "net/channel.h"
#include "wire/packer.h"

namespace edgecase::http {

// Answers in gzip or zstd, for clients that take it (Accept-Encoding).
//
// Text and JSON are packed: whole bodies from kPackedMinBytes on, and what is sent in pieces. Each
// piece leaves whole with its part of the stream: nothing of it waits in the packer, so that what
// is erased meanwhile can still be dropped (AnswerStream), and a reader sees it at once. A cut
// answer lacks the end of its coding, as it has no last chunk.
struct Response;

// Below this the head grows by as much as the body shrinks.
inline constexpr std::size_t kPackedMinBytes = 1'024;

// Packs the body, or has the pieces packed when they are sent, where the client takes it and it
// pays; says in the head what depends on Accept-Encoding.
void pack_response(const RequestHead& request, Response& response);

// The stream that an answer is written to: a connection's channel.
//
// Little that the channel does not take at once is kept in `output` for the poller to send, so that
// a small answer never waits for its reader. Beyond kOutputKeptBytes write() waits, but never
// longer than `grace_ns` for the channel to take more, and in all `grace_ns` and a second for every
// kReadBytesPerSecondMin that were taken.
//
// What waits here of readings that are erased meanwhile is dropped, and the answer with it
// (begin_part()): the client sees a connection that was reset.
// One worker thread.
inline constexpr std::size_t kOutputKeptBytes = 64u << 10;
inline constexpr std::uint64_t kReadBytesPerSecondMin = 16u << 10;

// As net::send_some(); gives up the memory that one large answer took.
net::Outcome send_output(net::Channel& channel, std::string& output);

// Whether a part of an answer that waits to be sent must not be sent any more. Cheap where nothing
// was revoked.
using RevokedTest = std::function<bool()>;
// Parts of what waits in `output`, the oldest first.
struct WatchedPart {
  std::uint64_t end_bytes = UINT64_MAX;  // of what was written of the answer
  RevokedTest is_revoked;
};
bool is_any_revoked(const std::deque<WatchedPart>& parts);

class AnswerStream {
 public:
  // `output` is borrowed and may hold what an earlier answer left.
  AnswerStream(net::Channel& channel, std::string& output, std::int64_t grace_ns)
      : channel_(channel), output_(output), grace_ns_(grace_ns) {}

  // False: failed.
  bool write(std::string_view bytes);
  // Sends what is buffered, waiting only while more than kOutputKeptBytes are left. False: failed.
  bool flush();
  bool failed() const { return failed_; }
  // Both may be null: whose turn ends while it waits, and who is told what was sent.
  void waits_in(ReadTurn* turn, LeavingClient* client) {
    turn_ = turn;
    client_ = client;
  }
  // What is written from here to end_part(), or to the end, is dropped once `is_revoked` tells so.
  void begin_part(RevokedTest is_revoked) { parts_.push_back({UINT64_MAX, std::move(is_revoked)}); }
  void end_part() {
    if (!parts_.empty()) parts_.back().end_bytes = written_bytes_;
  }
  // The parts that are left in `output`; the caller asks from now on.
  std::deque<WatchedPart> take_parts();
  // Told now and then while it waits for its reader.
  void on_slow(std::function<void()> told) { told_ = std::move(told); }

 private:
  bool wait_for_reader();
  bool drop_revoked();
  int await(std::int64_t most_ns);

  net::Channel& channel_;
  std::string& output_;
  const std::int64_t grace_ns_;
  std::uint64_t written_bytes_ = 0;
  std::int64_t waited_ns_ = 0;
  bool failed_ = false;
  std::function<void()> told_;
  ReadTurn* turn_ = nullptr;
  LeavingClient* client_ = nullptr;
  std::deque<WatchedPart> parts_;
};

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
