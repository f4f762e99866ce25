#include "http/answer_stream.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "edgecase/clock.h"

namespace edgecase::http {
namespace {

constexpr std::int64_t kMillisecondNs = 1'000'000;
constexpr std::int64_t kWholeSecondNs = 1'000'000'000;
constexpr std::int64_t kToldEveryNs = 50 * kMillisecondNs;

}  // namespace

net::Outcome send_output(net::Channel& channel, std::string& output) {
  const net::Outcome outcome = net::send_some(channel, output);
  if (output.empty() && output.capacity() > kOutputKeptBytes) output = std::string();
  return outcome;
}

bool AnswerStream::write(std::string_view bytes) {
  if (failed_) return false;
  output_.append(bytes);
  written_bytes_ += bytes.size();
  // Head and body of a small answer leave together, when the worker is done with it.
  return output_.size() <= kOutputKeptBytes || flush();
}

bool is_any_revoked(const std::deque<WatchedPart>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [](const WatchedPart& part) { return part.is_revoked(); });
}

std::deque<WatchedPart> AnswerStream::take_parts() {
  if (output_.empty()) return {};
  return std::exchange(parts_, {});
}

// What was sent is not asked about.
bool AnswerStream::drop_revoked() {
  const std::uint64_t sent_bytes =
      written_bytes_ - std::min<std::uint64_t>(written_bytes_, output_.size());
  while (!parts_.empty() && parts_.front().end_bytes <= sent_bytes) parts_.pop_front();
  if (!is_any_revoked(parts_)) return false;
  output_ = std::string();
  parts_.clear();
  failed_ = true;
  return true;
}

bool AnswerStream::flush() {
  while (!failed_) {
    if (!parts_.empty() && drop_revoked()) break;
    const std::size_t before = output_.size();
    const net::Outcome outcome = send_output(channel_, output_);
    if (outcome == net::Outcome::Failed) break;
    if (client_ != nullptr) client_->sent(before - output_.size());
    if (outcome == net::Outcome::Done || output_.size() <= kOutputKeptBytes) return true;
    if (!wait_for_reader()) break;
  }
  failed_ = true;
  return false;
}

// Only time spent waiting counts: a query that computes for long is no slow reader.
bool AnswerStream::wait_for_reader() {
  const std::uint64_t sent_bytes =
      written_bytes_ - std::min<std::uint64_t>(written_bytes_, output_.size());
  const std::int64_t allowed_ns =
      grace_ns_ + static_cast<std::int64_t>(sent_bytes / kReadBytesPerSecondMin) * kWholeSecondNs;
  const std::int64_t left_ns = std::min(grace_ns_, allowed_ns - waited_ns_);
  if (left_ns <= 0) return false;
  if (turn_ != nullptr) turn_->rest();
  const std::int64_t begin_ns = system_clock().boot_ns();
  std::int64_t passed_ns = 0;
  int outcome = 0;
  while (outcome == 0 && passed_ns < left_ns) {
    outcome = await(std::min(left_ns - passed_ns, kToldEveryNs));
    if (outcome == 0 && told_) told_();
    if (outcome == 0 && !parts_.empty() && drop_revoked()) return false;
    passed_ns = system_clock().boot_ns() - begin_ns;
  }
  waited_ns_ += passed_ns;
  if (turn_ != nullptr) turn_->resume();
  return outcome > 0 || (outcome < 0 && errno == EINTR);
}

int AnswerStream::await(std::int64_t most_ns) {
  const short awaited = channel_.send_awaits_receive() ? POLLIN : POLLOUT;
  pollfd ready{channel_.descriptor(), awaited, 0};
  return poll(&ready, 1, static_cast<int>(most_ns / kMillisecondNs + 1));
}

}  // namespace edgecase::http
