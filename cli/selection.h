// Options that select series: `selector ...` and --measurement, --tag, --field. All commands that
// take selectors have them (wire/selector.h).
#pragma once

#include <string>
#include <vector>

#include "daemon_client.h"
#include "wire/selector.h"

namespace CLI {
class App;
}

namespace edgecase::cli {

// What a command means where none of them is given.
enum class WithoutSelection : unsigned char {
  Everything,
  Refused,
  Other,  // the command says it itself
};

// `rest`: what else the words without a name may be, for --help.
void add_selection(CLI::App& command, wire::SelectionTexts& selection, WithoutSelection without,
                   const std::string& rest = {});
// What the daemon would refuse is said before it is asked.
Status check_selection(const wire::SelectionTexts& selection,
                       WithoutSelection without = WithoutSelection::Everything);
// As the daemon's parameters.
void append_selection(const wire::SelectionTexts& selection, Parameters& parameters);

// What a selector was meant to be, by the daemon's names; empty: nothing is near, or it names
// something.
std::string near_selector(DaemonClient& client, const std::string& ns, const std::string& text);

// Asks the daemon for names near those of selectors that name nothing, and suggests them
// (mended_line.h). At most kNamesLookedFor of them; a daemon that does not answer suggests nothing.
// `parameters`: what was asked, with `ns` and `select`.
inline constexpr std::size_t kNamesLookedFor = 5;
void look_for_names(DaemonClient& client, const Parameters& parameters);

// report_failure(), and look_for_names() where a name was not found.
int report_failure(DaemonClient& client, const Parameters& parameters, const Status& status);

inline bool has_identity(const wire::SelectionTexts& selection) {
  return !selection.measurements.empty() || !selection.tags.empty() || !selection.fields.empty();
}

// --owner, --purpose, --object and --label: the devices of which all of this is said, instead of a
// selector.

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
