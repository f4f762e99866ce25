// The time or duration that a text was meant to be which is none: as people write dates, clocks and
// units. mended_line.cc offers it. Values without state.
#pragma once

#include <string>
#include <string_view>

namespace edgecase::cli {

bool all_digits(std::string_view text);
bool is_number(std::string_view text);  // with either decimal mark
// "5m" of "5 min", "2h" of "2hours", "1h" of "-1h" and "1h ago", "90s" of "90"; empty: nothing that
// can be told.
std::string duration_meant(std::string_view given);
// "2026-11-20" of "20.11.2026", "11/20/2026", "2026/11/20"; empty: none, or it could be two.
std::string date_meant(std::string_view text);
// "09:30" of "9:30"; empty: no clock shows it.
std::string clock_meant(std::string_view text);
// What parse_time_ns() takes; empty: nothing, or it takes `text`. `is_local` is set where it is a
// local clock's, which has to be said.
std::string time_meant(const std::string& text, bool& is_local);

}  // namespace edgecase::cli
