#include "left_out.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "json_text.h"
#include "output.h"
#include "wire/errors.h"

namespace edgecase::cli {
namespace {

// What all answers of this process left out.
int left_out_code = wire::kExitOk;
std::set<std::string> named;
constexpr std::size_t kNamedOnceMax = 10'000;

}  // namespace

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

}  // namespace edgecase::cli
