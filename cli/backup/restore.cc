#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "backup/backup.h"
#include "daemon_client.h"
#include "import/importer.h"
#include "output.h"
#include "target_file.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Restore {
 public:
  explicit Restore(const BackupRequest& request)
      : request_(request), directory_(request.directory), client_(request.connection) {
    while (directory_.size() > 1 && directory_.ends_with('/')) directory_.pop_back();
  }

  int run() {
    stop_on_interrupt("\nedgecase: stopped, the same command brings the rest\n", wire::kExitPartly);
    Status status = look_through();
    if (status.ok()) status = make_namespaces();
    if (status.ok()) status = describe_devices();
    if (status.ok()) status = restore_origins();
    if (status.ok()) status = set_rules(Tiers::With);
    if (!status.ok()) return report_failure(status);
    int imported = wire::kExitOk;
    if (!index_.files.empty()) {
      ImportRequest readings;
      readings.connection = request_.connection;
      readings.as_of = index_.made;
      for (const BackupFile& file : index_.files) readings.paths.push_back(path_of(file));
      // Some may be refused, since they have been erased; the rest is stored all the same.
      imported = run_import(readings);
      if (imported != wire::kExitOk && imported != wire::kExitPartly &&
          imported != wire::kExitCorruption)
        return imported;
    }
    status = set_rules(Tiers::Without);
    if (!status.ok()) {
      report_failure(status);
      return wire::kExitPartly;
    }
    print_error("%s is restored, as of %s\n", printable(directory_).c_str(), index_.made.c_str());
    if (left_out_code_ != wire::kExitOk) return left_out_code_;
    return is_partly_ ? wire::kExitPartly : imported;
  }

 private:
  // Windows need the rule of their tiers; what expires at once is let in before its rule is.
  enum class Tiers : unsigned char { With, Without };

  std::string path_of(const BackupFile& file) const { return directory_ + "/" + file.path; }

  // Every file, to its end, before anything is stored.
  Status look_through() {
    Result<BackupIndex> index = read_index(directory_);
    if (!index.ok() && index.status().code() == StatusCode::NotFound &&
        read_progress(directory_).ok()) {
      return invalid_argument(directory_ +
                              " holds a backup that was broken off; edgecase backup goes on");
    }
    if (!index.ok()) return index.status();
    index_ = std::move(index).value();
    Progress progress("check", index_.readings(), "readings");
    std::vector<BackupFile> whole;
    for (const BackupFile& file : index_.files) {
      const Status looked = look_through(file, progress);
      if (looked.ok()) {
        whole.push_back(file);
        continue;
      }
      // One file that is damaged, missing or not ours to read does not keep the others back.
      if (ends_all(looked)) return looked;
      print_error("edgecase: left out: %s\n", printable(looked.message()).c_str());
      left_out_code_ =
          looked.code() == StatusCode::Corruption || left_out_code_ == wire::kExitCorruption
              ? wire::kExitCorruption
              : wire::kExitPartly;
    }
    if (whole.empty() && !index_.files.empty())
      return corruption(directory_ + ": none of its files is whole");
    index_.files = std::move(whole);
    return ok();
  }

  Status look_through(const BackupFile& file, Progress& progress) {
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<GzipReader> reader, GzipReader::open(path_of(file)));
    struct stat status {};
    if (stat(path_of(file).c_str(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != file.size_bytes) {
      return corruption(path_of(file) + ": has another size than when it was saved");
    }
    std::uint64_t readings = 0;
    std::string piece;
    while (true) {
      piece.clear();
      EC_ASSIGN_OR_RETURN(const bool more, reader->read(piece));
      const auto lines = static_cast<std::uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
      readings += lines;
      progress.add(lines, piece.size());
      if (!more) break;
    }
    if (readings == file.readings) return ok();
    return corruption(path_of(file) + ": holds " + std::to_string(readings) + " readings, not " +
                      std::to_string(file.readings));
  }

  Status make_namespaces() {
    for (const OrderedJson& name : index_.state.value("namespaces", OrderedJson::array())) {
      if (!name.is_string()) continue;
      EC_TRY(client_
                 .post(path_with(wire::routes::kNamespaces, {{"name", name.get<std::string>()}}),
                       "", "text/plain")
                 .status());
    }
    return ok();
  }

  // Describes devices that nothing is said of by now: what was said since stays.
  Status describe_devices() {
    for (const OrderedJson& device : index_.state.value("devices", OrderedJson::array())) {
      if (!device.is_object()) continue;
      const Parameters name = {{"ns", text_field(device, "namespace")},
                               {"device", text_field(device, "device")}};
      const Result<std::string> known = client_.get_small(path_with(wire::routes::kDevice, name));
      if (known.ok()) {
        if (is_described(OrderedJson::parse(*known, nullptr, false))) continue;
      } else if (known.status().code() != StatusCode::NotFound) {
        return known.status();
      }
      const Status said = client_
                              .post(path_with(wire::routes::kDevices, {{"as_of", index_.made}}),
                                    device.dump(), "application/json")
                              .status();
      if (said.code() == StatusCode::InvalidArgument) {
        print_error("edgecase: %s\n", printable(said.message()).c_str());
        is_partly_ = true;
      } else {
        EC_TRY(said);
      }
    }
    return ok();
  }

  // Which store each device came from, in requests of some lines.
  Status restore_origins() {
    constexpr std::size_t kLines = 5'000;  // all origins at once: they name each other
    std::set<std::uint64_t> others;
    for (const char* const list : {"origins", "device_origins"}) {
      std::string lines;
      std::size_t count = 0;
      const OrderedJson all = index_.state.value(list, OrderedJson::array());
      for (const OrderedJson& each : all) {
        if (!each.is_object() || !others.contains(count_field(each, "origin"))) {
          lines += each.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
        }
        if (++count % kLines == 0 || count == all.size())
          EC_TRY(put_origins(std::exchange(lines, {}), others));
      }
    }
    return ok();
  }

  // What another store has here stays so, and is told.
  Status put_origins(const std::string& lines, std::set<std::uint64_t>& others) {
    if (lines.empty()) return ok();
    EC_ASSIGN_OR_RETURN(const std::string body,
                        client_.put(path_with(wire::routes::kBackups, {{"as_of", index_.made}}),
                                    lines, "application/x-ndjson"));
    const OrderedJson answer = OrderedJson::parse(body, nullptr, false);
    if (!answer.is_object()) return io_error("the daemon's answer is no object");
    for (const OrderedJson& each : answer.value("others", OrderedJson::array())) {
      if (!each.is_number_unsigned() || !others.insert(each.get<std::uint64_t>()).second) continue;
      print_error("edgecase: origin %s is another store here: its devices are nobody's\n",
                  each.dump().c_str());
      is_partly_ = true;
    }
    if (const std::uint64_t count = count_field(answer, "others_devices"); count > 0) {
      print_error("edgecase: devices that are another store's here: %s\n",
                  count_text(count).c_str());
      is_partly_ = true;
    }
    return ok();
  }

  static bool is_described(const OrderedJson& device) {
    if (!device.is_object()) return false;
    return !text_field(device, "owner").empty() || !text_field(device, "location").empty() ||
           !device.value("purposes", OrderedJson::array()).empty() ||
           !device.value("objections", OrderedJson::array()).empty() ||
           !device.value("labels", OrderedJson::object()).empty();
  }

  // Rules of selectors that have none; those whose devices were erased since are told.
  Status set_rules(Tiers tiers) {
    const OrderedJson wanted = index_.state.value("retention", OrderedJson::array());
    if (wanted.empty()) return ok();
    EC_ASSIGN_OR_RETURN(const std::string body,
                        client_.get_small(path_with(wire::routes::kRetention, {{"ns", "*"}})));
    const OrderedJson there = OrderedJson::parse(body, nullptr, false);
    for (const OrderedJson& rule : wanted) {
      if (text_field(rule, "then").empty() == (tiers == Tiers::With)) continue;
      const auto is_of_the_same = [&rule](const OrderedJson& each) {
        return text_field(each, "namespace") == text_field(rule, "namespace") &&
               text_field(each, "select") == text_field(rule, "select");
      };
      const OrderedJson rules =
          there.is_object() ? there.value("rules", OrderedJson::array()) : OrderedJson::array();
      if (std::any_of(rules.begin(), rules.end(), is_of_the_same)) continue;
      const Status status =
          client_
              .post(path_with(wire::routes::kRetention, {{"ns", text_field(rule, "namespace")},
                                                         {"select", text_field(rule, "select")},
                                                         {"keep", text_field(rule, "keep")},
                                                         {"then", text_field(rule, "then")},
                                                         {"as_of", index_.made},
                                                         {"yes", "true"}}),
                    "", "text/plain")
              .status();
      if (status.code() == StatusCode::NotFound || status.code() == StatusCode::InvalidArgument) {
        print_error("edgecase: the rule of %s is not set: %s\n",
                    printable(text_field(rule, "select")).c_str(),
                    printable(status.message()).c_str());
        continue;
      }
      EC_TRY(status);
    }
    return ok();
  }

  const BackupRequest& request_;
  std::string directory_;
  DaemonClient client_;
  BackupIndex index_;
  bool is_partly_ = false;  // some of it was erased since
  int left_out_code_ = wire::kExitOk;
};

}  // namespace

int run_restore(const BackupRequest& request) {
  return Restore(request).run();
}

}  // namespace edgecase::cli
