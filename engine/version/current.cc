#include "version/current.h"

#include "file/file_names.h"
#include "file/whole_file.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kCurrentMaxBytes = 64;

Status write_to(FileSystem& file_system, const std::string& metadata_directory,
                const std::string& path, std::uint64_t number) {
  return replace_whole_file(file_system, metadata_directory, current_new_path(metadata_directory),
                            path, manifest_name(number) + "\n");
}

}  // namespace

Result<std::uint64_t> read_current(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(Bytes name, read_whole_file(file_system, path, kCurrentMaxBytes));
  const bool terminated = !name.empty() && name.back() == '\n';
  if (terminated) name.pop_back();
  const auto parsed = parse_file_name(name);
  if (!terminated || !parsed || parsed->type != FileType::Manifest)
    return corruption_in(path, ": does not name a manifest");
  return parsed->number;
}

Result<std::uint64_t> find_current(FileSystem& file_system, const std::string& metadata_directory,
                                   Status& damage) {
  const std::string path = current_path(metadata_directory);
  auto number = read_current(file_system, path);
  const StatusCode code = number.status().code();
  if (code != StatusCode::Corruption && code != StatusCode::NotFound) return number;
  auto copy = read_current(file_system, current_copy_path(metadata_directory));
  if (!copy.ok()) return number;
  damage = code == StatusCode::NotFound ? corruption_in(path, ": missing") : number.status();
  return copy;
}

// The copy first, so that it never names a manifest that is not there any more; without it the
// store is as good as one of an older version. But a store is there once CURRENT is: that begins
// it.
Status write_current(FileSystem& file_system, const std::string& metadata_directory,
                     std::uint64_t number) {
  const std::string path = current_path(metadata_directory);
  const auto write_copy = [&] {
    static_cast<void>(
        write_to(file_system, metadata_directory, current_copy_path(metadata_directory), number)
            .ok());
  };
  const bool begins = file_system.file_size(path).status().code() == StatusCode::NotFound;
  if (!begins) write_copy();
  EC_TRY(write_to(file_system, metadata_directory, path, number));
  if (begins) write_copy();
  return ok();
}

}  // namespace edgecase::engine
