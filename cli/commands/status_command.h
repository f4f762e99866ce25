// A summary of the daemon's status as a page for people: what is wrong first, then a line for each
// part of the house; at most kSummaryLinesMax lines. Read without trust: what is missing is not
// said. Pure functions; `status` uses them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace edgecase::cli {

inline constexpr std::size_t kSummaryLinesMax = 14;
inline constexpr std::size_t kProblemLinesMax = 4;

// `status` is the document of /api/v1/status. A sentence for each thing that somebody has to look
// at, the worst first.
std::vector<std::string> status_problems(const nlohmann::ordered_json& status);

// Lines with their ends. Beyond kProblemLinesMax problems the last of these lines counts the rest.
std::string status_summary(const nlohmann::ordered_json& status);

}  // namespace edgecase::cli
