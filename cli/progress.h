// One line on stderr that tells how far long work is. Silent unless stderr is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace edgecase::cli {

class Progress {
 public:
  // `total` 0: unknown. `unit` as in "readings".
  Progress(std::string what, std::uint64_t total, std::string unit);
  ~Progress();  // as finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool shown() const { return shown_; }
  void add(std::uint64_t done, std::uint64_t bytes);
  // Removes the line.
  void finish();

 private:
  void draw();

  const std::string what_;
  const std::uint64_t total_;
  const std::string unit_;
  const bool shown_;
  std::uint64_t done_ = 0;
  std::uint64_t bytes_ = 0;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace edgecase::cli
