// "did you mean": the known word that a mistyped one was probably meant to be.
#pragma once

#include <span>
#include <string_view>

namespace edgecase::wire {

// Empty when none is near: at most two letters and half of `word` differ, or `word` is the
// beginning of one.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);

}  // namespace edgecase::wire
