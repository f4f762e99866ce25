// Answers of the daemon, as people are told of them. Beside the body: readings that an answer
// leaves out or does not tell, a report behind it, what was taken and is not there; DaemonClient
// tells it of each answer, on stderr, and it decides the exit code of a command that is done but
// for that. And the page that `status` makes of the daemon's. A command is one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace edgecase::cli {

// Called with each piece of a good answer's body; false stops the transfer (Cancelled).
using Receive = std::function<bool(std::string_view piece)>;

// Hands on a body but for the report behind it, which is of wire::routes::kReportMaxBytes at most.
class BodyWithReport {
 public:
  // `receive` must outlive it.
  explicit BodyWithReport(const Receive& receive) : receive_(receive) {}

  // False: `receive` stopped it.
  bool push(std::string_view piece);
  // At the end. False: there is no report.
  bool finish(std::string& report, bool& goes_on);

 private:
  const Receive& receive_;
  std::string held_;
};

// Says on stderr what headers tell: devices that a purpose may not read, series that CSV has no
// place for, windows in place of readings. `header` answers "" where there is none.
void say_beside(const std::function<std::string(const char* name)>& header);

// Names on stderr what an answer leaves out; each thing once. `text`: an array as
// X-EdgeCase-Left-Out has it (daemon/query/left_out.h).
void name_left_out(const std::string& text);

// Whether anything was, since take_exit_code_of_answers().
bool has_left_out();
// What was not there so far decides no exit code: the command waits for it.
void expect_what_is_not_there();
// 0, or the code of a command that is done but for that: 7 where it is damaged, else 6. Once.
int take_exit_code_of_answers();

// "2 messages were not understood, …": what `mqtt/rejected` of the status means.
std::string rejected_text(std::uint64_t messages);

// What answers say was taken and is not there as it was sent.
struct Losses {
  std::uint64_t expired = 0, replaced = 0, erased = 0, evicted = 0;

  // Adds what one answer tells; returns how many it adds.
  std::uint64_t add(const std::string& answer);
  // "3 are older than their rule keeps", a line each; empty where there are none.
  std::vector<std::string> texts() const;
};

// A summary of the daemon's status as a page for people: what is wrong first, then a line for each
// part of the house; at most kSummaryLinesMax lines. Read without trust: what is missing is not
// said. Pure functions; `status` uses them.

inline constexpr std::size_t kSummaryLinesMax = 14;
inline constexpr std::size_t kProblemLinesMax = 4;

// `status` is the document of /api/v1/status. A sentence for each thing that somebody has to look
// at, the worst first.
std::vector<std::string> status_problems(const nlohmann::ordered_json& status);

// Lines with their ends. Beyond kProblemLinesMax problems the last of these lines counts the rest.
std::string status_summary(const nlohmann::ordered_json& status);

}  // namespace edgecase::cli
