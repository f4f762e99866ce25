// Options that select series: `selector ...` and --measurement, --tag, --field. All commands that
// take selectors have them (wire/selection.h).
#pragma once

#include <string>

#include "daemon_client.h"
#include "wire/selection.h"

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

}  // namespace edgecase::cli
