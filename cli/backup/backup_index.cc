#include "backup/backup.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "json_text.h"
#include "target_file.h"
#include "wire/contract.h"

namespace edgecase::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson file_json(const BackupFile& file) {
  return {{"file", file.path}, {"readings", file.readings}, {"bytes", file.size_bytes}};
}

// False: no entry of a file, or one outside the directory.
bool parse_file(const OrderedJson& json, BackupFile& file) {
  if (!json.is_object()) return false;
  file.path = text_field(json, "file");
  file.readings = count_field(json, "readings");
  file.size_bytes = count_field(json, "bytes");
  const std::string within = "/" + file.path + "/";
  return !file.path.empty() && file.path.front() != '/' && within.find("/../") == std::string::npos;
}

}  // namespace

std::uint64_t BackupIndex::readings() const {
  std::uint64_t count = 0;
  for (const BackupFile& file : files) count += file.readings;
  return count;
}

std::string index_path(const std::string& directory) {
  return directory + "/backup.json";
}

std::string progress_path(const std::string& directory) {
  return directory + "/.edgecase-backup";
}

Result<BackupIndex> read_index(const std::string& directory) {
  const std::string path = index_path(directory);
  EC_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("format") || !json["format"].is_number_integer()) {
    return corruption(path + ": is no index of a backup");
  }
  if (json["format"].get<int>() > kBackupFormat) {
    return unsupported(path + ": was made by a newer version of EdgeCase");
  }
  BackupIndex index;
  index.moment = text_field(json, "moment");
  index.made = text_field(json, "made");
  index.state = json.value("state", OrderedJson::object());
  for (const OrderedJson& each : json.value("files", OrderedJson::array())) {
    BackupFile file;
    if (!parse_file(each, file)) return corruption(path + ": names a file that cannot be");
    index.files.push_back(std::move(file));
  }
  return index;
}

Status write_index(const std::string& directory, const BackupIndex& index) {
  OrderedJson json = {{"format", kBackupFormat},      {"edgecase", wire::version()},
                      {"made", index.made},           {"moment", index.moment},
                      {"readings", index.readings()}, {"state", index.state},
                      {"files", OrderedJson::array()}};
  for (const BackupFile& file : index.files) json["files"].push_back(file_json(file));
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(index_path(directory)));
  EC_TRY(file.write(json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n"));
  return file.commit();
}

Result<BackupIndex> read_progress(const std::string& directory) {
  EC_ASSIGN_OR_RETURN(const std::string text, read_small_file(progress_path(directory)));
  BackupIndex index;
  std::size_t begin = 0;
  for (bool first = true; begin < text.size(); first = false) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const OrderedJson json = OrderedJson::parse(text.substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    BackupFile file;
    if (first && json.is_object()) {
      index.moment = text_field(json, "moment");
      index.made = text_field(json, "made");
      index.state = json.value("state", OrderedJson::object());
    } else if (!first && parse_file(json, file)) {
      index.files.push_back(std::move(file));
    }
  }
  if (index.moment.empty()) return corruption(progress_path(directory) + ": says nothing");
  return index;
}

std::string progress_head(const BackupIndex& index) {
  return OrderedJson{{"moment", index.moment}, {"made", index.made}, {"state", index.state}}.dump(
             -1, ' ', false, OrderedJson::error_handler_t::replace) +
         "\n";
}

std::string progress_line(const BackupFile& file) {
  return file_json(file).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

namespace {

constexpr std::size_t kOutputBytes = 64u << 10;
constexpr std::size_t kInputMaxBytes = 1u << 30;
constexpr int kGzipOnly = 15 + 16;
// Readings are repetitive: higher levels cost much and gain little.
constexpr int kLevel = 3;
constexpr int kMemoryLevel = 8;

}  // namespace

struct GzipFile::State {
  explicit State(TargetFile target) : file(std::move(target)) {}
  ~State() {
    if (begun) deflateEnd(&stream);
  }

  TargetFile file;
  std::vector<char> output = std::vector<char>(kOutputBytes);
  z_stream stream{};
  bool begun = false;
  std::uint64_t size_bytes = 0;
};

GzipFile::GzipFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipFile::~GzipFile() = default;

Result<std::unique_ptr<GzipFile>> GzipFile::create(const std::string& path,
                                                   const std::string& shown) {
  EC_ASSIGN_OR_RETURN(TargetFile file, TargetFile::create(path, shown));
  auto state = std::make_unique<State>(std::move(file));
  state->begun = deflateInit2(&state->stream, kLevel, Z_DEFLATED, kGzipOnly, kMemoryLevel,
                              Z_DEFAULT_STRATEGY) == Z_OK;
  if (!state->begun) return busy("no memory to write " + path);
  return std::unique_ptr<GzipFile>(new GzipFile(std::move(state)));
}

Status GzipFile::deflate(std::string_view bytes, int flush) {
  State& s = *state_;
  s.stream.next_in =
      const_cast<Bytef*>(static_cast<const Bytef*>(static_cast<const void*>(bytes.data())));
  s.stream.avail_in = static_cast<uInt>(bytes.size());
  do {
    s.stream.next_out = static_cast<Bytef*>(static_cast<void*>(s.output.data()));
    s.stream.avail_out = static_cast<uInt>(s.output.size());
    ::deflate(&s.stream, flush);
    const std::size_t made = s.output.size() - s.stream.avail_out;
    EC_TRY(s.file.write({s.output.data(), made}));
    s.size_bytes += made;
  } while (s.stream.avail_out == 0);
  return ok();
}

Status GzipFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kInputMaxBytes);
    EC_TRY(deflate(piece, Z_NO_FLUSH));
    bytes.remove_prefix(piece.size());
  }
  return ok();
}

Status GzipFile::commit() {
  EC_TRY(deflate({}, Z_FINISH));
  return state_->file.commit();
}

std::uint64_t GzipFile::size_bytes() const {
  return state_->size_bytes;
}

}  // namespace edgecase::cli
