// How long a broker may leave a question (SUBSCRIBE, UNSUBSCRIBE) unanswered, with nothing else
// coming, before its connection is given up. It doubles with each that was given up, so that a
// broker or a board that is slow gets its answer through in the end, and begins anew once all was
// answered. Not thread-safe.
#pragma once

#include <cstdint>

namespace edgecase::mqtt {

class AnswerPatience {
 public:
  static constexpr int kDoublingsMax = 4;  // of 15 s: 4 minutes

  explicit AnswerPatience(std::int64_t first_ns) : first_ns_(first_ns) {}

  std::int64_t now_ns() const { return first_ns_ << doublings_; }
  void was_silent() { doublings_ += doublings_ < kDoublingsMax ? 1 : 0; }
  void all_answered() { doublings_ = 0; }

 private:
  const std::int64_t first_ns_;
  int doublings_ = 0;
};

}  // namespace edgecase::mqtt
