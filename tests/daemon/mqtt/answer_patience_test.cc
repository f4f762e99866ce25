#include "mqtt/answer_patience.h"

#include <doctest/doctest.h>

using edgecase::mqtt::AnswerPatience;

TEST_CASE("answer patience: doubles with every silence, up to its limit, until all was answered") {
  AnswerPatience patience(15);
  std::int64_t want_ns = 15;
  for (int i = 0; i < AnswerPatience::kDoublingsMax; ++i) {
    CHECK(patience.now_ns() == want_ns);
    patience.was_silent();
    want_ns *= 2;
  }
  for (int i = 0; i < 100; ++i) {
    CHECK(patience.now_ns() == want_ns);
    patience.was_silent();
  }
  patience.all_answered();
  CHECK(patience.now_ns() == 15);
}
