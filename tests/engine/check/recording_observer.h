// Keeps what a check or a repair finds.
#pragma once

#include <string>
#include <vector>

#include "edgecase/store_check.h"

namespace edgecase::test {

class RecordingObserver final : public CheckObserver {
 public:
  void on_finding(const CheckFinding& finding) override {
    switch (finding.kind) {
      case CheckFinding::Kind::Note: notes.push_back(finding.message); break;
      case CheckFinding::Kind::Problem: problems.push_back(finding.message); break;
      case CheckFinding::Kind::Repair: repairs.push_back(finding.message); break;
      case CheckFinding::Kind::Loss: losses.push_back(finding.message); break;
    }
  }
  void on_progress(std::uint64_t done_bytes, std::uint64_t total_bytes) override {
    done = done_bytes;
    total = total_bytes;
  }
  bool stop() override { return stop_after-- == 0; }

  bool found_anything() const { return !notes.empty() || !problems.empty(); }
  std::string all() const {
    std::string text;
    for (const auto* list : {&notes, &problems, &repairs, &losses})
      for (const std::string& each : *list) text += each + "\n";
    return text;
  }

  std::vector<std::string> notes, problems, repairs, losses;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t stop_after = UINT64_MAX;
};

}  // namespace edgecase::test
