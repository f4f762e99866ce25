#include "answers.h"

#include <atomic>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "output.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

// Once, however many answers a command asks for.
void say_not_told() {
  static std::atomic_flag is_said;
  if (is_said.test_and_set()) return;
  print_error(
      "edgecase: CSV has no place for measurement, tags and field of some series; --format ndjson "
      "and --format line do\n");
}

// What all answers of this process left out.
int left_out_code = wire::kExitOk;
std::set<std::string> named;
constexpr std::size_t kNamedOnceMax = 10'000;

}  // namespace

bool BodyWithReport::push(std::string_view piece) {
  held_ += piece;
  constexpr std::size_t kHeldBytes =
      wire::routes::kReportMaxBytes + wire::routes::kReportLengthDigits;
  if (held_.size() < 2 * kHeldBytes) return true;
  const std::size_t size = held_.size() - kHeldBytes;
  const bool goes_on = receive_(std::string_view(held_).substr(0, size));
  held_.erase(0, size);
  return goes_on;
}

bool BodyWithReport::finish(std::string& report, bool& goes_on) {
  constexpr std::size_t kDigits = wire::routes::kReportLengthDigits;
  if (held_.size() < kDigits) return false;
  const std::string_view digits = std::string_view(held_).substr(held_.size() - kDigits);
  std::size_t size = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    size = size * 10 + static_cast<std::size_t>(c - '0');
  }
  if (size > held_.size() - kDigits) return false;
  report = held_.substr(held_.size() - kDigits - size, size);
  held_.resize(held_.size() - kDigits - size);
  goes_on = held_.empty() || receive_(held_);
  return true;
}

void say_beside(const std::function<std::string(const char* name)>& header) {
  const std::string withheld = header(wire::routes::kWithheldHeader);
  if (!withheld.empty()) {
    print_error("edgecase: %s left out, for this purpose (--purpose) they may not be read\n",
                withheld == "1" ? "1 device was" : (withheld + " devices were").c_str());
  }
  if (!header(wire::routes::kNotToldHeader).empty()) say_not_told();
  const std::string tiers = header(wire::routes::kTiersHeader);
  if (!tiers.empty())
    print_error("edgecase: windows of tiers in place of readings: %s\n", printable(tiers).c_str());
}

void name_left_out(const std::string& text) {
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array() || list.empty()) return;
  for (const nlohmann::json& each : list) {
    if (!each.is_object()) continue;
    // What is damaged weighs more than what is not there.
    const std::string code = text_field(each, "code");
    const bool is_damaged = code.empty() ? !each.contains("more") || list.size() == 1
                                         : wire::status_code_of(code) == StatusCode::Corruption;
    if (left_out_code != wire::kExitCorruption)
      left_out_code = is_damaged ? wire::kExitCorruption : wire::kExitPartly;
    if (each.contains("more")) {
      print_error("edgecase: and %llu more\n",
                  static_cast<unsigned long long>(count_field(each, "more")));
      continue;
    }
    const std::string from = text_field(each, "from");
    const std::string to = text_field(each, "to");
    std::string name = text_field(each, "device") + "/" + text_field(each, "sensor");
    name = text_field(each, "namespace") + " " + name;
    if (!from.empty()) name += " from " + from;
    if (!to.empty()) name += " to " + to;
    // A command may ask for the same several times.
    if (named.size() < kNamedOnceMax && !named.insert(name).second) continue;
    print_error("edgecase: left out%s: %s (%s)\n", is_damaged ? ", since it is damaged" : "",
                printable(name).c_str(), printable(text_field(each, "reason")).c_str());
  }
}

bool has_left_out() {
  return left_out_code != wire::kExitOk;
}

void expect_what_is_not_there() {
  if (left_out_code == wire::kExitPartly) left_out_code = wire::kExitOk;
}

int take_exit_code_of_answers() {
  named.clear();
  return std::exchange(left_out_code, wire::kExitOk);
}

std::string rejected_text(std::uint64_t messages) {
  return count_of(messages, "message was", "messages were") +
         " not understood, and kept: edgecase query -n _rejected '*/*'";
}

std::uint64_t Losses::add(const std::string& answer) {
  const nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object()) return 0;
  std::uint64_t all = 0;
  const auto take = [&](const char* name, std::uint64_t& sum) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_unsigned()) return;
    sum += found->get<std::uint64_t>();
    all += found->get<std::uint64_t>();
  };
  take("expired", expired);
  take("replaced", replaced);
  take("erased", erased);
  take("evicted", evicted);
  return all;
}

std::vector<std::string> Losses::texts() const {
  std::vector<std::string> all;
  const auto say = [&all](std::uint64_t count, const char* what) {
    if (count > 0) all.push_back(std::to_string(count) + " " + what);
  };
  say(expired, "not kept: older than the retention rule of their series keeps");
  say(replaced, "replaced by a later one of the same series and time");
  say(erased, "not kept: their time was erased");
  say(evicted, "not kept: their time was evicted to make room");
  return all;
}

}  // namespace edgecase::cli
