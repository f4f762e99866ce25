// Findings counts what a check or a repair finds, and hands it on. Used by one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "edgecase/store_check.h"

namespace edgecase::engine {

class Findings {
 public:
  explicit Findings(CheckObserver& observer) : observer_(observer) {}

  void note(std::string message) { add(CheckFinding::Kind::Note, report_.notes, message); }
  void problem(std::string message) { add(CheckFinding::Kind::Problem, report_.problems, message); }
  void repair(std::string message) { add(CheckFinding::Kind::Repair, report_.repairs, message); }
  void loss(std::string message, std::vector<LostEntries> lost = {}) {
    add(CheckFinding::Kind::Loss, report_.losses, message, std::move(lost));
  }
  // Whether there was none.
  bool accept(const Status& status) {
    if (!status.ok()) problem(status.message());
    return status.ok();
  }

  void expect_bytes(std::uint64_t total) { total_bytes_ += total; }
  // Cancelled when the observer wants no more.
  Status read_bytes(std::uint64_t bytes) {
    report_.bytes += bytes;
    observer_.on_progress(report_.bytes, total_bytes_);
    return observer_.stop() ? cancelled("stopped") : ok();
  }

  CheckReport& report() { return report_; }

 private:
  void add(CheckFinding::Kind kind, std::uint64_t& count, std::string& message,
           std::vector<LostEntries> lost = {}) {
    ++count;
    observer_.on_finding({kind, std::move(message), std::move(lost)});
  }

  CheckObserver& observer_;
  CheckReport report_;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace edgecase::engine
