#include "bench/fleet/fleet.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "edgecase/machine.h"
#include "forward/courier.h"
#include "forward/http_client.h"

namespace edgecase::fleet {
namespace {

using forward::Answer;
using forward::Batch;
using forward::Verdict;

constexpr double kNsPerSecond = 1e9;
constexpr double kSlowness = 10;
constexpr std::int64_t kPeakNs = 10'000'000'000;
// A target that asks for patience does when its queue is longer than this.
constexpr std::int64_t kPatientNs = 1'000'000'000, kRetryAfterNs = 10'000'000'000;
constexpr std::int64_t kDrainMaxNs = 24 * 3600LL * 1'000'000'000;

std::int64_t ns_of(double seconds) {
  return static_cast<std::int64_t>(seconds * kNsPerSecond);
}

class SimulatedTarget final : public forward::Carrier {
 public:
  explicit SimulatedTarget(const FleetOptions& options) : options_(options) {}

  void enter(FleetPhase::Target how) { how_ = how; }
  void begin_figures(std::int64_t begin_ns) {
    figures = {};
    figures.capacity_per_second =
        options_.requests_per_second / (how_ == FleetPhase::Target::Slow ? kSlowness : 1);
    peak_begin_ns_ = begin_ns;
    in_peak_ = 0;
  }

  Answer carry(const std::string&, std::string_view, std::size_t) override {
    const std::int64_t arrives_ns = now_ns + options_.link_ns / 2;
    note_arrival();
    answered_ns = now_ns + options_.link_ns;
    if (how_ == FleetPhase::Target::Away) return {.verdict = Verdict::Away};
    const std::int64_t begins_ns = std::max(free_ns_, arrives_ns);
    if (how_ == FleetPhase::Target::AsksForPatience && begins_ns - arrives_ns > kPatientNs) {
      ++figures.refused;
      return {.verdict = Verdict::Later, .status = 429, .why = {}, .retry_after_ns = kRetryAfterNs};
    }
    double seconds =
        1 / options_.requests_per_second + static_cast<double>(lines) / options_.lines_per_second;
    if (how_ == FleetPhase::Target::Slow) seconds *= kSlowness;
    free_ns_ = begins_ns + ns_of(seconds);
    if (free_ns_ - arrives_ns > forward::HttpClient::kAnswerNs) {
      ++figures.given_up;
      figures.repeated += lines;
      answered_ns = arrives_ns + forward::HttpClient::kAnswerNs;
      return {.verdict = Verdict::Away};
    }
    answered_ns = free_ns_ + options_.link_ns / 2;
    return {};
  }

  std::int64_t now_ns = 0, answered_ns = 0;
  std::size_t lines = 0;  // of the request that is carried
  PhaseFigures figures;

 private:
  void note_arrival() {
    ++figures.requests;
    if (now_ns - peak_begin_ns_ >= kPeakNs) {
      peak_begin_ns_ = now_ns;
      in_peak_ = 0;
    }
    ++in_peak_;
    figures.peak_per_second =
        std::max(figures.peak_per_second, static_cast<double>(in_peak_) * kNsPerSecond / kPeakNs);
  }

  const FleetOptions& options_;
  FleetPhase::Target how_ = FleetPhase::Target::Well;
  std::int64_t free_ns_ = 0;
  std::int64_t peak_begin_ns_ = 0;
  std::uint64_t in_peak_ = 0;
};

// Readings come at an even rate from its first moment on.
struct Board {
  Board(SimulatedTarget& target, Random& random, std::int64_t begins_at_ns)
      : courier(target), pace(random, false, 0), begin_ns(begins_at_ns) {}

  forward::Courier courier;
  forward::Pace pace;
  std::int64_t begin_ns = 0;
  std::uint64_t sent = 0, sent_in_phase = 0;
};

class Fleet {
 public:
  explicit Fleet(const FleetOptions& options)
      : options_(options),
        lines_max_(static_cast<std::size_t>(static_cast<double>(Batch::kTextMaxBytes) /
                                            options.line_bytes)),
        random_(options.seed),
        target_(options) {
    // One batch serves all, its only line stands for as many as a board has: what they say costs
    // time and is all the same.
    batch_.text = "x";
    batch_.lines.push_back({.end = 1, .namespace_id = 1, .key = {}});
    batch_.parts.push_back({"", 0, 1});
    for (std::size_t i = 0; i < options.boards; ++i) {
      const auto begin_ns = static_cast<std::int64_t>(random_.below(1'000'000'000));
      boards_.push_back(std::make_unique<Board>(target_, random_, begin_ns));
      turns_.push({begin_ns, i});
    }
  }

  PhaseFigures run(const char* name, FleetPhase::Target how, std::int64_t duration_ns,
                   bool is_drain) {
    const std::int64_t begin_ns = now_ns_, end_ns = now_ns_ + duration_ns;
    target_.enter(how);
    target_.begin_figures(now_ns_);
    for (const auto& board : boards_) board->sent_in_phase = 0;
    behind_ = boards_.size();
    std::vector<bool> is_behind(boards_.size(), true);
    while (turns_.top().at_ns < end_ns && (!is_drain || behind_ > 0)) {
      const Turn turn = turns_.top();
      turns_.pop();
      now_ns_ = turn.at_ns;
      const std::int64_t next_ns = take_turn(*boards_[turn.board]);
      turns_.push({next_ns, turn.board});
      // It has everything but what came in the last second.
      if (is_behind[turn.board] && waiting(*boards_[turn.board]) <= options_.readings_per_second) {
        is_behind[turn.board] = false;
        --behind_;
      }
    }
    if (!is_drain) now_ns_ = end_ns;
    return figures_of(name, static_cast<double>(now_ns_ - begin_ns) / kNsPerSecond);
  }

 private:
  struct Turn {
    std::int64_t at_ns = 0;
    std::size_t board = 0;
    friend bool operator<(const Turn& a, const Turn& b) { return a.at_ns > b.at_ns; }
  };

  double waiting(const Board& board) const {
    const double made =
        static_cast<double>(now_ns_ - board.begin_ns) / kNsPerSecond * options_.readings_per_second;
    return std::max(0.0, made - static_cast<double>(board.sent));
  }

  // When it has its next one.
  std::int64_t take_turn(Board& board) {
    const double have = std::floor(waiting(board));
    if (have < 1) return now_ns_ + ns_of(1 / options_.readings_per_second);
    const std::size_t most = std::min(board.pace.lines_max(), lines_max_);
    const std::size_t count =
        have < static_cast<double>(most) ? static_cast<std::size_t>(have) : most;
    target_.lines = count;
    target_.now_ns = now_ns_;
    const forward::Delivery delivery = board.courier.deliver(batch_, [] { return true; });
    const std::int64_t answered_ns = target_.answered_ns, took_ns = answered_ns - now_ns_;
    board.pace.sent(
        answered_ns, took_ns,
        static_cast<std::uint64_t>(static_cast<double>(count) * options_.packed_line_bytes));
    if (delivery.last.verdict != Verdict::Taken)
      return answered_ns + board.pace.rest_ns(delivery.last);
    board.pace.taken(took_ns);
    board.sent += count;
    board.sent_in_phase += count;
    return answered_ns + (count == most ? 0 : board.pace.gather_ns());
  }

  PhaseFigures figures_of(const char* name, double seconds) {
    PhaseFigures figures = target_.figures;
    figures.name = name;
    figures.seconds = seconds;
    std::vector<std::uint64_t> sent;
    for (const auto& board : boards_) {
      sent.push_back(board->sent_in_phase);
      figures.waiting += waiting(*board);
    }
    std::sort(sent.begin(), sent.end());
    const auto all =
        static_cast<double>(std::accumulate(sent.begin(), sent.end(), std::uint64_t{0}));
    if (all == 0) return figures;
    const double average = all / static_cast<double>(sent.size());
    const std::size_t twentieth = sent.size() / 20;
    figures.lines_per_second = seconds > 0 ? all / seconds : 0;
    figures.low_share = static_cast<double>(sent[twentieth]) / average;
    figures.high_share = static_cast<double>(sent[sent.size() - 1 - twentieth]) / average;
    return figures;
  }

  const FleetOptions options_;
  const std::size_t lines_max_;  // that a batch has room for
  SeededRandom random_;
  SimulatedTarget target_;
  Batch batch_;
  std::vector<std::unique_ptr<Board>> boards_;
  std::priority_queue<Turn> turns_;
  std::int64_t now_ns_ = 0;
  std::size_t behind_ = 0;
};

}  // namespace

std::vector<FleetPhase> usual_phases() {
  constexpr std::int64_t kMinuteNs = 60'000'000'000;
  using enum FleetPhase::Target;
  return {{"well", Well, kMinuteNs},
          {"away", Away, 60 * kMinuteNs},
          {"back", Well, 10 * kMinuteNs},
          {"slow", Slow, 10 * kMinuteNs},
          {"429", AsksForPatience, 10 * kMinuteNs}};
}

std::vector<PhaseFigures> run_fleet(const FleetOptions& options,
                                    const std::vector<FleetPhase>& phases) {
  Fleet fleet(options);
  std::vector<PhaseFigures> figures;
  for (const FleetPhase& each : phases)
    figures.push_back(fleet.run(each.name, each.target, each.duration_ns, false));
  figures.push_back(fleet.run("drained", FleetPhase::Target::Well, kDrainMaxNs, true));
  return figures;
}

}  // namespace edgecase::fleet
