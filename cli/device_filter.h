// --owner, --purpose, --object and --label: the devices of which all of this is said, instead of a
// selector.
#pragma once

#include <string>
#include <vector>

#include "daemon_client.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

struct DeviceFilterArguments {
  std::string owner, purpose, objection;
  std::vector<std::string> labels;

  bool empty() const {
    return owner.empty() && purpose.empty() && objection.empty() && labels.empty();
  }
};

// Where a plain name means something else, the option begins with `--of-`.
enum class FilterNames : unsigned char {
  Plain,
  OfPurpose,  // that of the purpose alone
  Of,         // all of them
};

void add_device_filter(CLI::App& command, DeviceFilterArguments& filter, FilterNames names);
// As the daemon's parameters, `of_` for `--of-`.
void append_device_filter(const DeviceFilterArguments& filter, FilterNames names,
                          Parameters& parameters);

}  // namespace edgecase::cli
