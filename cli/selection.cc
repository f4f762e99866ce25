#include "selection.h"

#include <CLI/CLI.hpp>

namespace edgecase::cli {

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
      "Of these the series with this measurement, with globs; may come often: any", "GLOB");
  add("--tag", selection.tags, "Of these the series with this tag; may come often: all of them",
      "KEY=GLOB");
  add("--field", selection.fields, "Of these the series with this field; may come often: any",
      "GLOB");
}

Status check_selection(const wire::SelectionTexts& selection, WithoutSelection without) {
  if (without == WithoutSelection::Refused && selection.empty()) {
    return invalid_argument(
        "say which series: a selector, as in kitchen/temp or '*/*', or --measurement, --tag, "
        "--field");
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

}  // namespace edgecase::cli
