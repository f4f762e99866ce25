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
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "http/lanes.h"
#include "net/channel.h"

namespace edgecase::http {

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

}  // namespace edgecase::http
