#include "device_filter.h"

#include <CLI/CLI.hpp>

namespace edgecase::cli {
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
