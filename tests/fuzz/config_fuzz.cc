// Any bytes as the configuration file: settings that hold together, or one line that says where it
// is wrong; and what is shown of good settings is taken again.
#include <nlohmann/json.hpp>
#include <string>

#include "config/configuration.h"
#include "fuzz/fuzz_targets.h"

namespace edgecase::test {
namespace {

constexpr const char* kConfigName = "edgecase.toml";

Status read_config(std::string_view text, config::Configuration& configuration) {
  EC_TRY(config::apply_file(text, kConfigName, configuration));
  return config::validate(configuration);
}

// Without where they came from.
std::string values_of(const config::Configuration& configuration) {
  auto shown = nlohmann::json::parse(config::effective_json(configuration));
  for (auto& rule : shown["rules"]) rule.erase("where");
  std::string values = shown["rules"].dump();
  for (const auto& setting : shown["settings"]) {
    values += setting["key"].dump() + setting["value"].dump();
  }
  return values;
}

}  // namespace

void take_config(std::string_view bytes) {
  config::Configuration configuration;
  const Status status = read_config(bytes, configuration);
  if (!status.ok()) {
    demand(status.code() == StatusCode::InvalidArgument && !status.message().empty());
    demand(status.message().find('\n') == std::string::npos);
    return;
  }
  config::Configuration again;
  demand(read_config(config::effective_text(configuration), again).ok());
  demand(values_of(again) == values_of(configuration));
}

}  // namespace edgecase::test
