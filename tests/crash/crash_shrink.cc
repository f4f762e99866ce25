// From a plan that breaks a promise to a short one that does.
#include <algorithm>

#include "crash/crash_life.h"

namespace edgecase::test {
namespace {

constexpr std::size_t kErrorArgument = 2;  // an errno: not one of them is a smaller one

class Shrinking {
 public:
  Shrinking(Plan plan, const WrapDrives& wrap, std::size_t lives_max)
      : best_(std::move(plan)), wrap_(wrap), lives_left_(lives_max) {}

  Plan run() {
    const LifeReport first = live(best_, wrap_);
    if (first.broken.empty()) return best_;
    if (first.step < best_.steps.size()) best_.steps.resize(first.step);
    std::size_t before = 0;
    do {
      before = best_.steps.size();
      for (std::size_t size = std::max<std::size_t>(1, before / 2); size > 0; size /= 2)
        leave_out(size);
    } while (best_.steps.size() < before && lives_left_ > 0);
    make_arguments_small();
    return best_;
  }

 private:
  bool breaks(const Plan& plan) {
    if (lives_left_ == 0) return false;
    --lives_left_;
    return !live(plan, wrap_).broken.empty();
  }

  bool take_if_it_breaks(Plan plan) {
    if (!breaks(plan)) return false;
    best_ = std::move(plan);
    return true;
  }

  // Any `size` steps in a row; from the end, where what came before still has its effect.
  void leave_out(std::size_t size) {
    for (std::size_t end = best_.steps.size(); end > 0;) {
      const std::size_t begin = end > size ? end - size : 0;
      Plan plan = best_;
      plan.steps.erase(plan.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                       plan.steps.begin() + static_cast<std::ptrdiff_t>(end));
      take_if_it_breaks(std::move(plan));
      end = begin;
    }
  }

  void make_arguments_small() {
    for (std::size_t step = 0; step < best_.steps.size(); ++step) {
      for (std::size_t i = 0; i < best_.steps[step].arguments.size(); ++i) {
        if (best_.steps[step].kind == StepKind::Fail && i == kErrorArgument) continue;
        for (const std::uint64_t smaller : {0u, 1u, 2u, 4u, 8u}) {
          if (smaller >= best_.steps[step].arguments[i]) break;
          Plan plan = best_;
          plan.steps[step].arguments[i] = smaller;
          if (take_if_it_breaks(std::move(plan))) break;
        }
      }
    }
  }

  Plan best_;
  const WrapDrives& wrap_;
  std::size_t lives_left_;
};

}  // namespace

Plan shrink(const Plan& plan, const WrapDrives& wrap, std::size_t lives_max) {
  return Shrinking(plan, wrap, lives_max).run();
}

}  // namespace edgecase::test
