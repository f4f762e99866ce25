#include "selection.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "mended_line.h"
#include "output.h"
#include "wire/contract.h"
#include "wire/names.h"

namespace edgecase::cli {
namespace {

using SeriesNames = std::vector<wire::SeriesName>;

// Series whose names hold the text, in any case; the first ones there are for an empty one.
SeriesNames find_series(DaemonClient& client, const std::string& ns, const std::string& text) {
  constexpr char kFoundMax[] = "500";
  SeriesNames names;
  const Result<std::string> body = client.get_small(
      path_with(wire::routes::kFind, {{"ns", ns}, {"q", text}, {"limit", kFoundMax}}));
  if (!body.ok()) return names;
  const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
  if (!document.is_object()) return names;
  for (const nlohmann::json& each : document.value("found", nlohmann::json::array()))
    names.push_back({text_field(each, "device"), text_field(each, "sensor")});
  return names;
}

// Letters and digits alone: "Kitchen.Temp" and "kitchen/temp" are the same.
std::string bare(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0) out += c;
  }
  return out;
}

std::string nearest_name(const std::string& word, const SeriesNames& names,
                         std::string wire::SeriesName::*part) {
  const std::string typed = bare(word);
  std::vector<std::string> known;
  for (const wire::SeriesName& name : names) {
    known.push_back(bare(name.*part));
    if (!typed.empty() && known.back() == typed) return name.*part;
  }
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view near = wire::nearest_word(typed, views);
  for (std::size_t i = 0; i < names.size() && !near.empty(); ++i) {
    if (known[i] == near) return names[i].*part;
  }
  return {};
}

std::string as_selector(const std::string& device, const std::string& sensor) {
  return wire::escape_name(device) + "/" + (sensor == "*" ? sensor : wire::escape_name(sensor));
}

}  // namespace

std::string near_selector(DaemonClient& client, const std::string& ns, const std::string& text) {
  const Result<wire::Selector> selector = wire::parse_selector(text);
  if (!selector.ok() || !wire::is_literal(selector->device)) return {};
  const std::string device = wire::unescape_name(selector->device);
  const bool is_whole = !wire::is_literal(selector->sensor);
  const std::string sensor = is_whole ? "*" : wire::unescape_name(selector->sensor);
  const auto of_device = [](const SeriesNames& names, const std::string& wanted) {
    SeriesNames found;
    std::copy_if(names.begin(), names.end(), std::back_inserter(found),
                 [&wanted](const wire::SeriesName& name) { return name.device == wanted; });
    return found;
  };
  const SeriesNames same = of_device(find_series(client, ns, device), device);
  if (!same.empty()) {
    if (is_whole) return {};
    const std::string near = nearest_name(sensor, same, &wire::SeriesName::sensor);
    return near == sensor ? std::string() : as_selector(device, near.empty() ? "*" : near);
  }
  // Either half may be typed right.
  const std::size_t half = device.size() / 2;
  SeriesNames names;
  for (const std::string& part : {device.substr(0, half), device.substr(half), std::string()}) {
    if (part.size() == 1) continue;
    const SeriesNames found = find_series(client, ns, part);
    names.insert(names.end(), found.begin(), found.end());
  }
  for (const wire::SeriesName& name : names) {
    if (bare(name.device + name.sensor) == bare(text)) return as_selector(name.device, name.sensor);
  }
  if (const std::string near = nearest_name(device, names, &wire::SeriesName::device);
      !near.empty()) {
    const SeriesNames sensors = of_device(names, near);
    const std::string near_sensor = nearest_name(sensor, sensors, &wire::SeriesName::sensor);
    return as_selector(near, is_whole || near_sensor.empty() ? "*" : near_sensor);
  }
  // A sensor alone.
  const bool is_sensor = std::any_of(names.begin(), names.end(),
                                     [&](const auto& name) { return name.sensor == device; });
  return is_whole && is_sensor ? "*/" + wire::escape_name(device) : std::string();
}

void look_for_names(DaemonClient& client, const Parameters& parameters) {
  note_nothing_found();
  std::string ns;
  for (const auto& [name, value] : parameters) {
    if (name == "ns") ns = value;
  }
  std::size_t looked_for = 0;
  for (const auto& [name, value] : parameters) {
    if (name != "select" && name != "device") continue;
    if (++looked_for > kNamesLookedFor) return;
    if (std::string meant = near_selector(client, ns, value); !meant.empty()) {
      if (name == "device") meant.resize(meant.rfind('/'));
      suggest_name(value, std::move(meant));
    }
  }
}

int report_failure(DaemonClient& client, const Parameters& parameters, const Status& status) {
  if (status.code() == StatusCode::NotFound) look_for_names(client, parameters);
  return report_failure(status);
}

void add_selection(CLI::App& command, wire::SelectionTexts& selection, WithoutSelection without,
                   const std::string& rest) {
  std::string says =
      "device/sensor with globs * and ?; kitchen alone means kitchen/*; of several\n"
      "what any of them matches";
  if (without == WithoutSelection::Everything) says += "; else everything";
  command.add_option("selector", selection.selectors, says + rest)->type_name("TEXT");
  const auto add = [&command](const char* name, std::vector<std::string>& texts, const char* help,
                              const char* type) {
    command.add_option(name, texts, help)->type_name(type)->allow_extra_args(false);
  };
  add("--measurement", selection.measurements,
      "Only series with this measurement, with globs; may come often: any of them.\n"
      "Default: every series",
      "GLOB");
  add("--tag", selection.tags,
      "Only series with this tag; may come often: all of them. Default: every series", "KEY=GLOB");
  add("--field", selection.fields,
      "Only series with this field; may come often: any of them. Default: every series", "GLOB");
}

Status check_selection(const wire::SelectionTexts& selection, WithoutSelection without) {
  if (without == WithoutSelection::Refused && selection.empty()) {
    return invalid_argument(
        "say which series: a selector, as in kitchen/temp or '*/*', or --measurement, --tag, "
        "--field");
  }
  if (std::any_of(selection.selectors.begin(), selection.selectors.end(), is_sql)) {
    return invalid_argument(
        "a selector names series, as in kitchen/temp; SELECT is understood over HTTP");
  }
  return wire::parse_selection(selection).status();
}

void append_selection(const wire::SelectionTexts& selection, Parameters& parameters) {
  for (const std::string& text : selection.selectors) parameters.emplace_back("select", text);
  for (const std::string& text : selection.measurements)
    parameters.emplace_back("measurement", text);
  for (const std::string& text : selection.tags) parameters.emplace_back("tag", text);
  for (const std::string& text : selection.fields) parameters.emplace_back("field", text);
}

namespace {

// How one condition is called; both stay, as Parameters hold no names of their own.
struct Name {
  const char* option;
  const char* parameter;
};
struct Names {
  Name owner, purpose, objection, label;
};
constexpr Name kOfPurpose{"--of-purpose", "of_purpose"};
constexpr Names kPlain{
    {"--owner", "owner"}, {"--purpose", "purpose"}, {"--object", "object"}, {"--label", "label"}};
constexpr Names kWithOfPurpose{kPlain.owner, kOfPurpose, kPlain.objection, kPlain.label};
constexpr Names kOf{{"--of-owner", "of_owner"},
                    kOfPurpose,
                    {"--of-object", "of_object"},
                    {"--of-label", "of_label"}};

const Names& list_of(FilterNames names) {
  switch (names) {
    case FilterNames::Plain: return kPlain;
    case FilterNames::OfPurpose: return kWithOfPurpose;
    case FilterNames::Of: break;
  }
  return kOf;
}

}  // namespace

void add_device_filter(CLI::App& command, DeviceFilterArguments& filter, FilterNames names) {
  const Names& list = list_of(names);
  command.add_option(list.owner.option, filter.owner,
                     "Only devices of this owner. Default: of anybody");
  command.add_option(list.purpose.option, filter.purpose,
                     "Only devices that are there for this purpose. Default: for any");
  command.add_option(list.objection.option, filter.objection,
                     "Only devices with this objection. Default: with or without");
  command
      .add_option(list.label.option, filter.labels,
                  "Only devices with this label; may come often: all of them. Default: any")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void append_device_filter(const DeviceFilterArguments& filter, FilterNames names,
                          Parameters& parameters) {
  const Names& list = list_of(names);
  const auto add = [&parameters](const Name& name, const std::string& value) {
    if (!value.empty()) parameters.emplace_back(name.parameter, value);
  };
  add(list.owner, filter.owner);
  add(list.purpose, filter.purpose);
  add(list.objection, filter.objection);
  for (const std::string& label : filter.labels) add(list.label, label);
}

}  // namespace edgecase::cli
