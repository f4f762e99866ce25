// Samples, which functions hand to each other: values of a time, as they come to be. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "influxql/points.h"

namespace edgecase::influxql {

struct Sample {
  std::int64_t time_ns = 0;
  Cell value;                // Null: the window has none
  std::vector<Cell> beside;  // of the chosen point; empty where none was chosen
  bool is_lacking = false;   // its window cannot be answered: nothing stands for it
};

// Bytes that are held of what a statement may hold, until this goes.
class HeldBytes {
 public:
  explicit HeldBytes(Spending& spending) : spending_(spending) {}
  ~HeldBytes() { release_all(); }
  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  Status hold(std::uint64_t bytes);  // LimitReached
  void release(std::uint64_t bytes);
  void release_all() { release(held_); }
  Spending& spending() { return spending_; }

 private:
  Spending& spending_;
  std::uint64_t held_ = 0;
};

std::uint64_t bytes_of(const Sample& sample);

// First in, first out.
class SampleQueue {
 public:
  explicit SampleQueue(Spending& spending) : held_(spending) {}

  Status push(Sample sample);  // LimitReached
  bool pop(Sample& sample);    // false: it is empty

 private:
  HeldBytes held_;
  std::deque<Sample> samples_;
};

enum class Pull : unsigned char {
  Taken,
  Later,  // more points have to be read first
  Ended,
};

class SampleStream {
 public:
  virtual ~SampleStream() = default;
  virtual Result<Pull> pull(Sample& sample) = 0;
};

}  // namespace edgecase::influxql
