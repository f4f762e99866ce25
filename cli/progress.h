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
  // How much of all is done, 0 to 1, where that is known otherwise than by `total`.
  void set_share(double share) { share_ = share; }
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
  double share_ = -1;  // not known
  bool drawn_ = false;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point last_drawn_;
};

// "2m 05s": how long the rest takes, if it goes on as it did. Empty: too early to say.
std::string time_left(double share, double seconds_so_far);

// The question before a command destroys: on a terminal in words, elsewhere it needs --yes
// (CONTRACT section 3).

// Whether to go on with `what` ("this erases 12 readings of 2 series for good"). `yes` is --yes.
// On a terminal the user types `word`. Everything else says on stderr what would have been done,
// and is answered false: the command then exits with kExitUsage.
bool confirmed(const std::string& what, bool yes, const std::string& word = "yes");

}  // namespace edgecase::cli
