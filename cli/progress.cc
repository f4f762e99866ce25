#include "progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "output.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

constexpr std::chrono::milliseconds kDrawInterval{100};
constexpr std::size_t kBarWidth = 24;

}  // namespace

Progress::Progress(std::string what, std::uint64_t total, std::string unit)
    : what_(std::move(what)),
      total_(total),
      unit_(std::move(unit)),
      shown_(is_terminal(stderr)),
      started_(std::chrono::steady_clock::now()),
      last_drawn_(started_) {}

Progress::~Progress() {
  finish();
}

void Progress::add(std::uint64_t done, std::uint64_t bytes) {
  done_ += done;
  bytes_ += bytes;
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_drawn_ < kDrawInterval) return;
  last_drawn_ = now;
  draw();
}

void Progress::draw() {
  const std::chrono::duration<double> elapsed = last_drawn_ - started_;
  std::string line = what_ + " ";
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
    line += "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "] " +
            std::to_string(static_cast<int>(share * 100)) + "% ";
  }
  line += count_text(done_) + " " + unit_ + ", " + wire::format_size(bytes_) + ", " +
          rate_text(static_cast<double>(done_) / std::max(elapsed.count(), 1e-3));
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

}  // namespace edgecase::cli
