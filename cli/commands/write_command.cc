#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "application.h"
#include "command_options.h"
#include "daemon_client.h"
#include "edgecase/machine.h"
#include "edgecase/options.h"
#include "import/importer.h"
#include "output.h"
#include "wire/contract.h"
#include "wire/decimal.h"
#include "wire/encoding.h"
#include "wire/reading_format.h"
#include "wire/selector.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

struct WriteArguments {
  ConnectionArguments connection;
  NamespaceArguments namespaces;
  std::string series;
  std::optional<std::string> value;
  std::string time;
  std::string type;
  std::string file;
  std::string content_type;
  Zone zone;
};

// All of `path`, or of stdin for "-". Refuses what the store would refuse before reading on.
Result<std::string> read_all(const std::string& path) {
  const bool standard_input = path == "-";
  std::FILE* file = standard_input ? stdin : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return not_found(path + ": " + std::strerror(errno));
  std::string bytes;
  char buffer[65536];
  std::size_t got = 0;
  while (bytes.size() <= kValueSizeMaxBytes &&
         (got = std::fread(buffer, 1, sizeof buffer, file)) > 0) {
    bytes.append(buffer, got);
  }
  const bool failed = std::ferror(file) != 0;
  const int error = errno;
  if (!standard_input) std::fclose(file);
  if (failed) return io_error(path + ": " + std::strerror(error));
  if (bytes.size() > kValueSizeMaxBytes) {
    return invalid_argument(path + ": larger than " + wire::format_size(kValueSizeMaxBytes) +
                            ", the largest value there is");
  }
  return bytes;
}

Status check(const WriteArguments& arguments) {
  if (arguments.value.has_value() != arguments.file.empty()) {
    return invalid_argument("give either a VALUE or --file");
  }
  // More often a variable that was never set than what somebody means.
  if (arguments.value == "" && arguments.type.empty()) {
    return invalid_argument("the value is empty; a text of no letters needs --type text");
  }
  if (!arguments.content_type.empty() && arguments.type != "bytes" && arguments.file.empty()) {
    return invalid_argument("--content-type belongs to bytes, add --type bytes");
  }
  if (!arguments.file.empty() && !arguments.type.empty() && arguments.type != "bytes" &&
      arguments.type != "text") {
    return invalid_argument("--file holds bytes or text, use --type bytes");
  }
  return ok();
}

// The exit code. What was taken and is not there as it was sent is said: whoever writes one reading
// means that one.
Result<int> told(const Result<std::string>& answer) {
  if (!answer.ok()) return answer.status();
  Losses losses;
  const bool is_there = losses.add(*answer) == 0;
  for (const std::string& text : losses.texts()) print_error("edgecase: %s\n", text.c_str());
  return is_there ? wire::kExitOk : wire::kExitPartly;
}

Result<int> write_value(const WriteArguments& arguments) {
  EC_TRY(check(arguments));
  EC_ASSIGN_OR_RETURN(const wire::SeriesName series, wire::parse_series_name(arguments.series));
  // Absolute, so that "now" means the moment of the command.
  EC_ASSIGN_OR_RETURN(const std::string time, absolute_time(arguments.time, arguments.zone));

  std::string text = arguments.value.value_or("");
  std::string type = arguments.type;
  std::string content_type = arguments.content_type;
  if (!arguments.file.empty()) {
    EC_ASSIGN_OR_RETURN(text, read_all(arguments.file));
    if (type.empty()) type = "bytes";
    if (content_type.empty()) content_type = content_type_of_file(arguments.file);
  } else if (arguments.value == "-") {
    EC_ASSIGN_OR_RETURN(text, read_all("-"));
    if (type != "bytes" && text.ends_with('\n')) text.pop_back();
  }
  EC_ASSIGN_OR_RETURN(const std::optional<wire::Value> given, parse_value(text, type));
  if (!given) {
    return invalid_argument(wire::number_problem(text) + "; --type text stores it as a text");
  }
  const wire::Value& value = *given;

  DaemonClient client(arguments.connection);
  if (value.type == wire::ValueType::Bytes) {
    std::string path = std::string(wire::routes::kBlob) + "/" +
                       percent_encode(arguments.namespaces.name) + "/" +
                       percent_encode(series.device) + "/" + percent_encode(series.sensor);
    if (!time.empty()) path = path_with(path, {{"time", time}});
    if (content_type.empty()) content_type = "application/octet-stream";
    return told(client.put(path, text, content_type));
  }
  const std::string body =
      reading_json(arguments.namespaces.name, series.device, series.sensor, time, value);
  return told(client.post(wire::routes::kReadings, body, "application/json"));
}

int run_write(const WriteArguments& arguments) {
  const Result<int> written = write_value(arguments);
  return written.ok() ? *written : report_failure(written.status());
}

}  // namespace

void add_write_command(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<WriteArguments>();
  CLI::App* command =
      app.add_subcommand("write", "Store one reading; returns when it is on the drive");
  command->add_option("series", arguments->series, "device/sensor")->required();
  command->add_option("value", arguments->value,
                      "A number is a float, true and false are bools, the rest is text;\n"
                      "- reads it from stdin");
  command->add_option("--time", arguments->time,
                      "2026-11-20T14:00:00Z, @1763647200, -15m. Default: the moment of arrival");
  command
      ->add_option("--type", arguments->type,
                   "float, int, bool, text or bytes. Default: as value tells")
      ->check(CLI::IsMember({"float", "int", "bool", "text", "bytes"}));
  command
      ->add_option("--file", arguments->file,
                   "Store a file's contents, as bytes; - is stdin. Default: value is stored")
      ->type_name("FILE");
  command->add_option(
      "--content-type", arguments->content_type,
      "What the bytes are, as in image/jpeg. Default: guessed from the file's name");
  add_zone_options(*command, arguments->zone);
  add_namespace_options(*command, arguments->namespaces, AllNamespaces::NotAllowed);
  add_connection_options(*command, arguments->connection);
  command->footer(help_footer({"edgecase write kitchen/temp 21.5",
                               "edgecase write door/photo --file front.jpg --time -2m"}));
  command->callback(
      [arguments, &action] { action = [arguments] { return run_write(*arguments); }; });
}

namespace {

// As a shell's user writes it, who has no key for it.
bool is_tab(std::string_view text) {
  return text == "tab" || text == "\t" || text == "\\t";
}

// Empty: it is one of them.
std::string none_of_characters(const std::string& text, std::string_view characters,
                               std::string_view said) {
  if (text.size() == 1 && characters.find(text) != std::string_view::npos) return {};
  return "'" + text + "' is none of " + std::string(said);
}

// Which columns of a CSV that export did not write are what, and whose clock its times are.
void add_column_options(CLI::App& command, CsvForm& csv) {
  const auto column = [&command](const char* name, auto& member, const char* help) {
    return command.add_option(name, member, help)->type_name("COLUMN")->group("CSV of others");
  };
  column("--time-column", csv.time_columns,
         "The column of times; several are read together, with a blank between them.\n"
         "Default: time")
      ->delimiter(',');
  CLI::Option* const device_column =
      column("--device-column", csv.device_column, "The column of devices. Default: device");
  column("--device", csv.device, "The device of all readings. Default: --device-column")
      ->type_name("NAME")
      ->excludes(device_column);
  column("--value-columns", csv.value_columns,
         "The columns of values, each a sensor of its name; '*', and the default: all others")
      ->delimiter(',');
  column("--sensor-column", csv.sensor_column,
         "The column of sensors, where a line is one reading; --value-columns names its value.\n"
         "Default: sensor in files of export, else each column of values is one");
  add_zone_options(command, csv.zone);
  command.get_option("--tz")->description(
      "Whose clock times of CSV without an offset are: Europe/Berlin, +02:00");
}

}  // namespace

void add_import_command(CLI::App& app, Action& action) {
  auto request = std::make_shared<ImportRequest>();
  auto namespaces = std::make_shared<NamespaceArguments>();
  CLI::App* command = app.add_subcommand(
      "import", "Store the readings of files; returns when they are on the drive");
  command
      ->add_option("file", request->paths,
                   "What export wrote: files, or directories of them; - is stdin")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--format", request->format,
                   "csv, ndjson or line (Influx line protocol). Default: by the name's ending")
      ->check(CLI::IsMember({"csv", "ndjson", "line"}));
  command
      ->add_option_function<std::string>(
          "--delimiter",
          [request](const std::string& text) {
            request->csv.delimiter = is_tab(text) ? '\t' : text[0];
          },
          "What separates the columns of CSV: , (default) ; | : tab")
      ->type_name("CHARACTER")
      ->check([](const std::string& text) {
        return is_tab(text) ? std::string() : none_of_characters(text, ",;|:", ", ; | : tab");
      });
  command
      ->add_option_function<std::string>(
          "--decimal", [request](const std::string& text) { request->csv.decimal_mark = text[0]; },
          "What CSV writes between a number's whole part and its decimals: . (default) or ,")
      ->type_name("CHARACTER")
      ->check([](const std::string& text) { return none_of_characters(text, ".,", ". ,"); });
  command
      ->add_option_function<std::string>(
          "--time-format",
          [request](const std::string& text) {
            Result<TimeFormat> format = TimeFormat::parse(text);
            if (format.ok()) request->csv.time_format = std::move(format).value();
          },
          "How times are written: unix, unix_ms, unix_us, unix_ns (numbers since 1970, in any\n"
          "format), or for CSV a pattern: \"%d.%m.%Y %H:%M:%S\". Default: RFC 3339 and unix_ns")
      ->check([](const std::string& text) { return TimeFormat::parse(text).status().message(); })
      ->type_name("FORMAT");
  add_column_options(*command, request->csv);
  command->add_flag("!--no-manifest", request->takes_manifests,
                    "Leave what manifest.json of export --owner says of devices: owner, purposes,\n"
                    "objections, locations, labels, retention");
  command->add_flag(
      "--dry-run", request->dry_run,
      "Store nothing; print the first readings, what each file holds, and which lines are\n"
      "no readings. Default: store");
  add_namespace_options(*command, *namespaces, AllNamespaces::NotAllowed);
  add_connection_options(*command, request->connection);
  command->footer(help_footer(
      {"edgecase import readings.csv", "edgecase import saved.csv --delimiter ';' --decimal ','",
       "edgecase import weather.csv --device roof --time-column date --time-format '%d.%m.%Y "
       "%H:%M'",
       "edgecase import alice/", "zcat old.csv.gz | edgecase import - --format csv --dry-run"}));
  command->callback([request, namespaces, &action] {
    request->default_namespace = namespaces->name;
    action = [request] { return run_import(*request); };
  });
}

}  // namespace edgecase::cli
