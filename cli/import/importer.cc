#include "import/importer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>

#include "daemon_client.h"
#include "mended_line.h"
#include "output.h"
#include "reading_output.h"
#include "target_file.h"
#include "wire/contract.h"
#include "wire/encoding.h"
#include "wire/reading_format.h"
#include "wire/time_text.h"

namespace edgecase::cli {
namespace {

namespace fs = std::filesystem;

// A request is sent when it has this many bytes.
constexpr std::size_t kRequestBytes = 1u << 20;
// Bytes larger than this go as they are, a request a value.
constexpr std::size_t kOwnRequestBytes = 256u << 10;
// Series counted one by one; beyond, the count says "more than".
constexpr std::size_t kSeriesCountedMax = 100'000;
// What a dry run shows of the first file.
constexpr std::size_t kShownReadings = 10;
constexpr int kFirstWaitMs = 100;
constexpr int kLastWaitMs = 2'000;

struct FileCounts {
  std::uint64_t readings = 0;
  std::uint64_t bad = 0;  // lines, and readings without a time
  std::unordered_set<std::string> series;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();

  void add(const wire::Reading& reading) {
    ++readings;
    first_ns = std::min(first_ns, *reading.time_ns);
    last_ns = std::max(last_ns, *reading.time_ns);
    if (series.size() > kSeriesCountedMax) return;
    std::string name(reading.namespace_name);
    name.append("/").append(reading.device).append("/").append(reading.sensor);
    series.insert(std::move(name));
  }
  std::string series_text() const {
    if (series.size() <= kSeriesCountedMax) return count_text(series.size());
    return "more than " + count_text(kSeriesCountedMax);
  }
};

// Trying again does not help. Where the daemon says how much was stored all the same, the import
// goes on; else it is the whole request that is wrong.
bool is_for_good(const Status& status) {
  return status.code() == StatusCode::InvalidArgument ||
         status.code() == StatusCode::LimitReached || status.code() == StatusCode::NotAllowed;
}

// Collects readings into requests and sends them.
class Sender {
 public:
  Sender(const ImportRequest& request, Progress& progress)
      : client_(request.connection), progress_(progress), as_of_(request.as_of) {}

  Status add(const wire::Reading& reading) {
    if (reading.value.type == wire::ValueType::Bytes &&
        reading.value.text.size() > kOwnRequestBytes) {
      return send_bytes(reading);
    }
    formatter_.reading(reading, body_);
    ++readings_in_body_;
    return body_.size() < kRequestBytes ? ok() : flush();
  }

  Status flush() {
    if (readings_in_body_ == 0) return ok();
    std::string answer;
    const Status status = patiently([this, &answer] {
      auto got = client_.post(path_with(wire::routes::kReadings, {{"as_of", as_of_}}), body_,
                              "application/x-ndjson");
      if (got.ok()) answer = std::move(got).value();
      return got.status();
    });
    if (is_for_good(status)) {
      EC_TRY(take_refusal(status));
    } else {
      EC_TRY(status);
      const std::uint64_t lost = losses_.add(answer);
      count(readings_in_body_ - std::min(lost, readings_in_body_), body_.size());
    }
    readings_in_body_ = 0;
    body_.clear();
    return ok();
  }

  std::uint64_t stored() const { return stored_; }
  // Readings that the daemon did not take.
  std::uint64_t refused() const { return refused_; }
  const Losses& losses() const { return losses_; }

 private:
  // The good ones of a request are stored all the same; a refusal of all of it says nothing of any.
  Status take_refusal(const Status& status) {
    const nlohmann::json answer = nlohmann::json::parse(client_.refusal(), nullptr, false);
    if (!answer.is_object() || !answer.contains("rejected")) return status;
    losses_.add(client_.refusal());
    count(count_field(answer, "stored"), body_.size());
    refuse(count_field(answer, "rejected"), status);
    return ok();
  }

  void refuse(std::uint64_t readings, const Status& status) {
    if (refused_ == 0) print_error("%s\n", printable(status.message()).c_str());
    refused_ += readings;
  }

  Status send_bytes(const wire::Reading& reading) {
    const std::string path = std::string(wire::routes::kBlob) + "/" +
                             percent_encode(reading.namespace_name) + "/" +
                             percent_encode(reading.device) + "/" + percent_encode(reading.sensor);
    std::string time;
    wire::append_time(*reading.time_ns, time);
    const std::string body(reading.value.text);
    std::string answer;
    const Status status = patiently([&] {
      auto got = client_.put(path_with(path, {{"time", time}, {"as_of", as_of_}}), body,
                             std::string(reading.value.content_type));
      if (got.ok()) answer = std::move(got).value();
      return got.status();
    });
    // A refusal by a scope says how much of the request it cost; one of the token does not, and
    // ends it.
    if (status.code() == StatusCode::NotAllowed) return take_refusal(status);
    if (is_for_good(status)) {
      refuse(1, status);
      return ok();
    }
    EC_TRY(status);
    const std::uint64_t lost = losses_.add(answer);
    count(lost == 0 ? 1 : 0, body.size());
    return ok();
  }

  // Again, with growing pauses, while the daemon says that it cannot take it now.
  template <typename Send>
  Status patiently(const Send& send) {
    int waited_ms = 0;
    for (int wait_ms = kFirstWaitMs;; wait_ms = std::min(wait_ms * 2, kLastWaitMs)) {
      const Status status = send();
      const bool for_now =
          status.code() == StatusCode::Busy || status.code() == StatusCode::OutOfSpace;
      if (!for_now || waited_ms >= kPatienceMs) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      waited_ms += wait_ms;
    }
  }

  void count(std::uint64_t readings, std::size_t bytes) {
    stored_ += readings;
    progress_.add(readings, bytes);
  }

  DaemonClient client_;
  Progress& progress_;
  const std::string as_of_;
  wire::ReadingFormatter formatter_{wire::ReadingFormat::Ndjson};
  std::string body_;
  std::uint64_t readings_in_body_ = 0;
  Losses losses_;
  std::uint64_t stored_ = 0;
  std::uint64_t refused_ = 0;
};

// Files as given; those of a directory in the order of their names.
Result<std::vector<std::string>> list_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const std::size_t before = files.size();
    auto entry = fs::recursive_directory_iterator(path, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
      const bool hidden = entry->path().filename().string().starts_with('.');
      if (hidden && entry->is_directory(error)) entry.disable_recursion_pending();
      if (hidden || !entry->is_regular_file(error)) continue;
      if (!format_of_file(entry->path().string()).empty()) files.push_back(entry->path().string());
    }
    if (error) return io_error(path + ": " + error.message());
    if (files.size() == before) {
      return not_found(path +
                       ": holds no file that ends in .csv, .ndjson, .jsonl, .json, .line or .lp, "
                       "or in one of these and .gz");
    }
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

// 0 where that cannot be told.
double bytes_of(const std::string& path) {
  std::error_code error;
  const auto size = path == "-" ? 0 : fs::file_size(path, error);
  return error ? 0 : static_cast<double>(size);
}

// The manifests among the files. They hold no readings, and of what lies beside one in two formats
// one is enough.
Result<std::vector<Manifest>> take_manifests(std::vector<std::string>& files) {
  std::vector<Manifest> manifests;
  const std::set<std::string> all(files.begin(), files.end());
  std::set<std::string> dropped;
  for (const std::string& path : files) {
    if (fs::path(path).filename() != kManifestName) continue;
    EC_ASSIGN_OR_RETURN(std::optional<Manifest> manifest, Manifest::read(path));
    if (!manifest) continue;
    dropped.insert(path);
    const fs::path directory = fs::path(path).parent_path();
    if (all.contains((directory / "readings.ndjson").string()))
      dropped.insert((directory / "readings.csv").string());
    manifests.push_back(std::move(*manifest));
  }
  std::erase_if(files, [&dropped](const std::string& path) { return dropped.contains(path); });
  return manifests;
}

class Import {
 public:
  explicit Import(const ImportRequest& request)
      : request_(request),
        progress_("import", 0, "readings"),
        sender_(request, progress_),
        table_({{"FILE"},
                {"READINGS", Align::Right},
                {"SERIES", Align::Right},
                {"FROM"},
                {"TO"},
                {"REFUSED", Align::Right}},
               stdout) {}

  int run() {
    Result<std::vector<std::string>> files = list_files(request_.paths);
    if (!files.ok()) return report_failure(files.status());
    Result<std::vector<Manifest>> manifests = take_manifests(*files);
    if (!manifests.ok()) return report_failure(manifests.status());
    if (!request_.takes_manifests) manifests->clear();
    manifests_ = std::move(manifests).value();
    for (const std::string& path : request_.manifests) {
      Result<std::optional<Manifest>> manifest = Manifest::read(path);
      if (!manifest.ok()) return report_failure(manifest.status());
      if (*manifest) manifests_.push_back(std::move(**manifest));
    }
    if (!request_.dry_run) {
      stop_on_interrupt(
          "\nedgecase: stopped; what was sent is stored, the same import again brings the rest\n",
          wire::kExitPartly);
    }
    for (const std::string& path : *files) bytes_ += bytes_of(path);
    Status status = take_each(&Manifest::describe);
    std::size_t taken = 0;
    for (const std::string& path : *files) {
      if (!status.ok()) break;
      status = take(path);
      bytes_taken_ += bytes_of(path);
      if (status.ok()) ++taken;
      if (status.code() == StatusCode::Corruption && files->size() > 1) {
        // One file that is damaged does not keep the others back.
        print_error("edgecase: left out: %s\n", printable(status.message()).c_str());
        is_damaged_ = true;
        status = ok();
      }
    }
    if (status.ok()) status = take_each(&Manifest::keep);
    progress_.finish();
    if (request_.dry_run) table_.flush();
    return finish(status, taken, files->size());
  }

 private:
  Status take_each(Status (Manifest::*step)(DaemonClient&)) {
    if (request_.dry_run) return ok();
    DaemonClient client(request_.connection);
    for (Manifest& manifest : manifests_) {
      const Status status = (manifest.*step)(client);
      if (!status.ok() && status.code() != StatusCode::Unavailable)
        return status.with_context(manifest.path() + ": ", " (--no-manifest leaves what it says)");
      EC_TRY(status);
    }
    return ok();
  }

  // Lines belong to devices by the daemon's rules, as those do that come over HTTP.
  Status learn_rules(const std::string& path) {
    const bool is_line =
        (request_.format.empty() ? format_of_file(path) : request_.format) == "line";
    if (!is_line || rules_) return ok();
    rules_.emplace();
    DaemonClient client(request_.connection);
    const Result<std::string> body = client.get_small(wire::routes::kInfluxRules);
    const bool is_older = body.status().code() == StatusCode::NotFound;  // it has no rules
    if (is_older || (request_.dry_run && body.status().code() == StatusCode::Unavailable))
      return ok();
    EC_TRY(body.status());
    std::vector<wire::LineRule> rules;
    const nlohmann::json document = nlohmann::json::parse(*body, nullptr, false);
    if (!document.is_object()) return io_error("the daemon's answer is no object");
    for (const nlohmann::json& rule : document.value("rules", nlohmann::json::array()))
      rules.push_back({text_field(rule, "measurement"), text_field(rule, "device"), 0});
    EC_ASSIGN_OR_RETURN(rules_, wire::LineRules::compile(rules));
    return ok();
  }

  // How far it is, counted in bytes of files. Of what has no size, as a pipe, only the file at hand
  // says how far that is.
  void show_progress(const ReadingSource& source, double bytes_at_hand) {
    const double share =
        bytes_ > 0 ? (bytes_taken_ + source.share() * bytes_at_hand) / bytes_ : source.share();
    progress_.set_share(share);
  }

  Status take(const std::string& path) {
    EC_TRY(learn_rules(path));
    EC_ASSIGN_OR_RETURN(const auto source,
                        ReadingSource::open(path, request_.format, request_.default_namespace,
                                            request_.csv, rules_ ? &*rules_ : nullptr));
    FileCounts counts;
    const Status status = pass_on(*source, bytes_of(path), counts);
    progress_.finish();
    for (const wire::LineError& error : source->errors()) {
      const std::string line = error.line == 0 ? "" : ":" + std::to_string(error.line);
      print_error("%s%s: %s\n", path.c_str(), line.c_str(), printable(error.message).c_str());
    }
    if (source->bad_lines() > source->errors().size()) {
      print_error("%s: and %s that are no readings\n", path.c_str(),
                  count_of(source->bad_lines() - source->errors().size(), "more line", "more lines")
                      .c_str());
    }
    if (counts.bad > 0) {
      print_error("%s: %s without a time, which an import has to name\n", path.c_str(),
                  count_of(counts.bad, "reading").c_str());
    }
    if (source->no_values() > 0) {
      std::fprintf(stderr, "%s: %s without a value (empty, nan, null): no readings\n", path.c_str(),
                   count_of(source->no_values(), "line").c_str());
    }
    counts.bad += source->bad_lines();
    readings_ += counts.readings;
    bad_ += counts.bad;
    if (request_.dry_run) {
      const bool none = counts.readings == 0;
      table_.row({path, count_text(counts.readings), counts.series_text(),
                  none ? "" : short_time(counts.first_ns), none ? "" : short_time(counts.last_ns),
                  count_text(counts.bad)});
    }
    if (status.ok() || status.code() == StatusCode::Unavailable) return status;
    return status.with_context(path + ": ");
  }

  // Most times of the first slice are seconds, or the like, that were taken for nanoseconds: all of
  // the file would land in January 1970.
  Status check_times(const ReadingSource& source, const wire::ReadingBatch& batch) const {
    if (request_.csv.time_format || !source.counts_times()) return ok();
    std::size_t mistaken = 0;
    std::int64_t first_ns = 0;
    for (const wire::Reading& reading : batch.readings) {
      if (!reading.time_ns || wire::unit_meant(*reading.time_ns).empty()) continue;
      if (mistaken++ == 0) first_ns = *reading.time_ns;
    }
    if (mistaken == 0 || mistaken * 2 <= batch.readings.size()) return ok();
    suggest_words({"--time-format", std::string(wire::unit_meant(first_ns))});
    return invalid_argument("times such as " + std::to_string(first_ns) + " would be " +
                            short_time(first_ns) + ": add --time-format " +
                            std::string(wire::unit_meant(first_ns)) +
                            ", or --time-format unix_ns if they are right");
  }

  // The first readings of all, as they would be stored.
  void show(const wire::ReadingBatch& batch) {
    ReadingTable table(NamespaceColumn::Shown, std::nullopt, std::nullopt, stdout,
                       request_.csv.zone);
    wire::ReadingFormatter formatter(wire::ReadingFormat::Ndjson);
    std::string text;
    for (std::size_t i = 0; i < std::min(batch.readings.size(), kShownReadings); ++i) {
      if (batch.readings[i].time_ns) formatter.reading(batch.readings[i], text);
    }
    table.push(text);
    static_cast<void>(table.finish());
    write_out(stdout, "\n");
  }

  Status pass_on(ReadingSource& source, double bytes_at_hand, FileCounts& counts) {
    wire::ReadingBatch batch;
    for (bool is_first = true;; is_first = false) {
      batch.clear();
      EC_ASSIGN_OR_RETURN(const bool more, source.next(batch));
      if (!more) return request_.dry_run ? ok() : sender_.flush();
      if (is_first) EC_TRY(check_times(source, batch));
      show_progress(source, bytes_at_hand);
      if (request_.dry_run && !std::exchange(has_shown_, true)) show(batch);
      for (const wire::Reading& reading : batch.readings) {
        if (!reading.time_ns) {
          ++counts.bad;
          continue;
        }
        counts.add(reading);
        if (!request_.dry_run) EC_TRY(sender_.add(reading));
      }
    }
  }

  int finish(const Status& status, std::size_t taken, std::size_t files) {
    const std::uint64_t done = request_.dry_run ? readings_ : sender_.stored();
    bad_ += sender_.refused();
    std::string from = count_text(files);
    if (taken < files) from = count_text(taken) + " of " + from;
    from = files == 1 ? "" : " from " + from + " files";
    if (status.ok() || done > 0) {
      print_error("%s %s%s\n", count_of(done, "reading").c_str(),
                  request_.dry_run ? "found" : "stored", from.c_str());
    }
    if (bad_ > 0) print_error("%s refused\n", count_text(bad_).c_str());
    const Losses& losses = sender_.losses();
    for (const std::string& text : losses.texts()) print_error("%s\n", text.c_str());
    // As what is refused. What has expired, and what a later one replaced, was taken as it should.
    bad_ += losses.erased + losses.evicted;
    std::size_t conflicts = 0;
    for (const Manifest& manifest : manifests_) {
      conflicts += manifest.conflicts();
      print_error("%s: %s %s\n", manifest.path().c_str(), printable(manifest.summary()).c_str(),
                  request_.dry_run ? "found" : "described");
    }
    if (conflicts > 0) print_error("%s\n", count_of(conflicts, "conflict").c_str());
    if (!status.ok()) {
      const int exit_code = report_failure(status);
      return done > 0 && !request_.dry_run ? wire::kExitPartly : exit_code;
    }
    if (const int lost = finish_stdout(); lost != wire::kExitOk) return lost;
    if (is_damaged_) return wire::kExitCorruption;
    if (conflicts > 0) return wire::kExitPartly;
    if (bad_ == 0) return wire::kExitOk;
    return done > 0 ? wire::kExitPartly : wire::kExitFailed;
  }

  const ImportRequest& request_;
  std::vector<Manifest> manifests_;
  std::optional<wire::LineRules> rules_;  // once lines are imported
  Progress progress_;
  Sender sender_;
  Table table_;
  double bytes_ = 0, bytes_taken_ = 0;  // of all files
  std::uint64_t readings_ = 0;
  std::uint64_t bad_ = 0;
  bool is_damaged_ = false;  // a file that was left out
  bool has_shown_ = false;   // some readings, in a dry run
};

}  // namespace

int run_import(const ImportRequest& request) {
  return Import(request).run();
}

}  // namespace edgecase::cli
