#include "answers.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "output.h"
#include "wire/contract.h"
#include "wire/time_text.h"

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

namespace {

using Document = nlohmann::ordered_json;

constexpr std::size_t kPartColumn = 10;

const Document& at(const Document& json, const char* path) {
  static const Document kNothing;
  const Document::json_pointer pointer(path);
  return json.contains(pointer) ? json.at(pointer) : kNothing;
}

std::string text(const Document& json, const char* path) {
  const Document& found = at(json, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::uint64_t count(const Document& json, const char* path) {
  const Document& found = at(json, path);
  return found.is_number_unsigned() ? found.get<std::uint64_t>() : 0;
}

double number(const Document& json, const char* path) {
  const Document& found = at(json, path);
  return found.is_number() ? found.get<double>() : 0;
}

bool is(const Document& json, const char* path, bool wanted) {
  const Document& found = at(json, path);
  return found.is_boolean() && found.get<bool>() == wanted;
}

// "21.5" as 21; an age that is no number, or is beyond all time, as none.
std::string age(double seconds) {
  return age_text(static_cast<std::int64_t>(std::clamp(seconds, 0.0, 9e9) * 1e9));
}

void add_drive_problems(const Document& status, const std::string& name,
                        std::vector<std::string>& problems) {
  const std::string base = "/drives/" + name;
  const std::string reason = text(status, (base + "/degraded").c_str());
  if (reason.empty()) return;
  const std::string since = text(status, (base + "/degraded_since").c_str());
  problems.push_back("the " + name + " drive is degraded" +
                     (since.empty() ? "" : " since " + since) + ": " + reason);
}

void add_damage(const Document& status, std::vector<std::string>& problems) {
  const Document& damaged = at(status, "/scrub/damaged");
  if (!damaged.is_array()) return;
  for (const Document& file : damaged) {
    if (!file.is_object()) continue;
    std::string line = "damaged: " + text(file, "/path") + ": " + text(file, "/problem");
    const Document& lost = at(file, "/lost");
    if (lost.is_array() && !lost.empty() && lost.front().is_object()) {
      const Document& first = lost.front();
      line += "; lost " + text(first, "/device") + "/" + text(first, "/sensor") + " from " +
              text(first, "/from") + " to " + text(first, "/to");
      const bool is_more = lost.size() > 1 || is(file, "/lost_more", true);
      if (is_more) line += " and others";
    }
    problems.push_back(std::move(line));
  }
}

void add_clock_problems(const Document& status, std::vector<std::string>& problems) {
  if (is(status, "/clock/trusted", false)) {
    problems.push_back("the clock is not trusted: nothing expires, readings are dated later");
  } else if (text(status, "/clock/expiry_waits") == "jump") {
    problems.push_back("the clock leapt: nothing expires until it has been steady (" +
                       age(number(status, "/clock/expiry_waits_seconds")) + " so far)");
  }
}

void add_mqtt_problems(const Document& status, std::vector<std::string>& problems) {
  const std::string broker = text(status, "/mqtt/broker");
  if (!broker.empty() && is(status, "/mqtt/connected", false)) {
    const std::string why = text(status, "/mqtt/last_error");
    problems.push_back("not connected to the broker " + broker + (why.empty() ? "" : ": " + why));
  }
  const std::uint64_t refused = count(status, "/mqtt/subscriptions_refused");
  if (refused > 0) {
    problems.push_back("the broker refuses " + count_of(refused, "subscription") +
                       ": what these would bring does not come");
  }
  const std::uint64_t rejected =
      count(status, "/mqtt/rejected") + count(status, "/mqtt/listener/rejected");
  if (rejected > 0) problems.push_back(rejected_text(rejected));
}

void add_forward_problems(const Document& status, std::vector<std::string>& problems) {
  const auto targets = status.find("forward");
  if (targets == status.end() || !targets->is_array()) return;
  for (const Document& target : *targets) {
    const std::string name = text(target, "/name");
    const std::string why = text(target, "/why");
    if (!why.empty())
      problems.push_back("readings for " + name + " wait here, it is " + text(target, "/state") +
                         ": " + why);
    if (target.contains("apart") && target["apart"] == true)
      problems.push_back(name +
                         " knows another copy of this store, so what goes there is kept apart");
    std::string unsent;
    for (const char* const reason : {"expired", "evicted", "erased", "thinned"}) {
      std::uint64_t many = count(target, (std::string("/unsent/") + reason).c_str());
      // It has their windows.
      if (reason == std::string_view("thinned"))
        many -= std::min(many, count(target, "/thinned_sent"));
      if (many > 0) unsent += (unsent.empty() ? "" : ", ") + count_text(many) + " " + reason;
    }
    if (!unsent.empty()) problems.push_back(name + " never got: " + unsent);
    if (const std::uint64_t refused = count(target, "/undelivered"); refused > 0)
      problems.push_back(name + " refused " + count_of(refused, "reading") +
                         ": edgecase forward status " + name);
  }
}

// What was acknowledged and is not there as it was sent, by cause; empty: nothing.
std::string losses(const Document& status) {
  std::uint64_t all = 0;
  std::string causes;
  for (const char* const cause : {"expired", "replaced", "erased", "evicted"}) {
    const std::uint64_t many = count(status, (std::string("/rates/not_stored/") + cause).c_str());
    if (many == 0) continue;
    all += many;
    causes += (causes.empty() ? "" : ", ") + std::string(cause) + " " + count_text(many);
  }
  return all == 0 ? "" : count_text(all) + " not kept (" + causes + ")";
}

std::string drive(const Document& status, const std::string& name) {
  const std::string base = "/drives/" + name;
  const std::uint64_t total = count(status, (base + "/total_bytes").c_str());
  std::string line = text(status, (base + "/path").c_str());
  if (total > 0) {
    line += ": " + wire::format_size(count(status, (base + "/free_bytes").c_str())) + " free of " +
            wire::format_size(total);
  }
  return line + ", " + wire::format_size(count(status, (base + "/live_bytes").c_str())) +
         " in use, " + text(status, (base + "/file_system").c_str());
}

std::string mqtt(const Document& status) {
  std::string line;
  if (const std::string broker = text(status, "/mqtt/broker"); !broker.empty()) {
    line = broker + (is(status, "/mqtt/connected", true) ? " connected, " : " away, ") +
           count_of(count(status, "/mqtt/messages"), "message");
  }
  if (const std::string address = text(status, "/mqtt/listener/address"); !address.empty()) {
    line += (line.empty() ? "" : "; ") + address + ": " +
            count_of(count(status, "/mqtt/listener/connections"), "connection") + ", " +
            count_of(count(status, "/mqtt/listener/messages"), "message");
  }
  return line.empty() ? "no broker, no listener" : line;
}

std::string erasing(const Document& status) {
  const std::string why = text(status, "/erasure/level_why");
  return text(status, "/erasure/level") + (why.empty() ? "" : ": " + why);
}

}  // namespace

std::vector<std::string> status_problems(const Document& status) {
  std::vector<std::string> problems;
  if (is(status, "/ready", false)) {
    problems.push_back("takes no writes: " + or_dash(text(status, "/reason")));
  }
  add_drive_problems(status, "metadata", problems);
  add_drive_problems(status, "values", problems);
  add_damage(status, problems);
  if (const std::string why = text(status, "/audit/failure"); !why.empty()) {
    problems.push_back("the audit log fails: " + why);
  }
  if (const std::uint64_t lost = count(status, "/audit/lost"); lost > 0) {
    problems.push_back(count_of(lost, "record") + " of the audit log could not be kept");
  }
  if (const std::string why = text(status, "/eviction/blocked"); !why.empty()) {
    problems.push_back("no room can be made: " + why);
  }
  add_clock_problems(status, problems);
  add_mqtt_problems(status, problems);
  add_forward_problems(status, problems);
  return problems;
}

std::string status_summary(const Document& status) {
  const std::vector<std::string> problems = status_problems(status);
  std::string page = "EdgeCase " + text(status, "/version") + ", up " +
                     age(number(status, "/uptime_seconds")) +
                     (is(status, "/ready", true) ? ", ready" : ", not ready") +
                     (problems.empty() ? ", all is well\n" : "\n");
  const bool fits = problems.size() <= kProblemLinesMax;
  const std::size_t shown = fits ? problems.size() : kProblemLinesMax - 1;
  for (std::size_t i = 0; i < shown; ++i) page += "! " + printable(problems[i]) + "\n";
  if (!fits) {
    page += "! and " + count_text(problems.size() - shown) + " more: edgecase status -v\n";
  }
  const auto line = [&page](std::string name, const std::string& what) {
    name.resize(kPartColumn, ' ');
    page += name + printable(what) + "\n";
  };
  line("stored", count_of(count(status, "/catalog/series"), "series", "series") + " of " +
                     count_of(count(status, "/catalog/devices"), "device") + " in " +
                     count_of(count(status, "/catalog/namespaces"), "namespace"));
  const std::string lost = losses(status);
  line("taken in", rate_text(number(status, "/rates/readings_per_second")) + ", " +
                       count_of(count(status, "/rates/readings"), "reading") + " since the start" +
                       (lost.empty() ? "" : ", " + lost));
  line("metadata", drive(status, "metadata"));
  line("values", drive(status, "values"));
  line("memory", wire::format_size(count(status, "/memory/resident_bytes")) + " of " +
                     wire::format_size(count(status, "/memory/limit_bytes")) + "; log " +
                     wire::format_size(count(status, "/wal/bytes")) + " of " +
                     wire::format_size(count(status, "/wal/limit_bytes")));
  line("kept", text(status, "/expiry/default") + ", " +
                   count_of(count(status, "/expiry/rules"), "rule") +
                   "; when full: " + text(status, "/eviction/on_full"));
  line("erasing", erasing(status));
  line("mqtt", mqtt(status));
  line("clock", text(status, "/clock/now") +
                    (is(status, "/clock/synchronised", true) ? ", synchronised" : ""));
  return page;
}

}  // namespace edgecase::cli
