// `edgecase export -o DIR`: one file a series, DIR/NAMESPACE/DEVICE/SENSOR.csv.
//
// Each file appears when it is whole and durable, so an export that was stopped is continued by
// leaving out the files that are there. What was asked for is kept in DIR/.edgecase-export.json,
// and continuing something else is refused.
#pragma once

#include <string>
#include <string_view>

#include "connection.h"
#include "edgecase/status.h"
#include "time_arguments.h"
#include "wire/selection.h"

namespace edgecase::cli {

enum class ExportMode : unsigned char { Fresh, Resume };

struct DirectoryExport {
  const ConnectionArguments& connection;
  const NamespaceArguments& namespaces;
  const RangeArguments& range;
  const wire::SelectionTexts& selection;
  const std::string& purpose;
  std::string directory;
  const std::string& format;
  ExportMode mode;
  bool tiers = false;  // windows of tiers, too
};

// Creates it, durably, where there is none; its parent must be there.
Status make_export_directory(std::string directory);

// The exit code: 6 when some series were written and others not.
int export_to_directory(const DirectoryExport& request);

// A name as part of a path: `%` and a leading `.` become %25 and %2E.
// At most 200 bytes: of a longer one a hash stands for what is cut.
std::string file_name_of(std::string_view name);

// Whether others are not to be tried where one thing among many failed of this.
bool ends_all(const Status& status);

}  // namespace edgecase::cli
