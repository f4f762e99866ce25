#include "influxql/samples.h"

#include <utility>

namespace edgecase::influxql {

Status HeldBytes::hold(std::uint64_t bytes) {
  EC_TRY(spending_.hold(bytes));
  held_ += bytes;
  return ok();
}

void HeldBytes::release(std::uint64_t bytes) {
  spending_.release(bytes);
  held_ -= bytes;
}

std::uint64_t bytes_of(const Sample& sample) {
  std::uint64_t bytes = sizeof(Sample) + sample.value.text.size();
  for (const Cell& cell : sample.beside) bytes += sizeof(Cell) + cell.text.size();
  return bytes;
}

Status SampleQueue::push(Sample sample) {
  EC_TRY(held_.hold(bytes_of(sample)));
  samples_.push_back(std::move(sample));
  return ok();
}

bool SampleQueue::pop(Sample& sample) {
  if (samples_.empty()) return false;
  held_.release(bytes_of(samples_.front()));
  sample = std::move(samples_.front());
  samples_.pop_front();
  return true;
}

}  // namespace edgecase::influxql
