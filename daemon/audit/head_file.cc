#include "audit/head_file.h"

#include <charconv>

namespace edgecase::audit {
namespace {

constexpr std::string_view kMagic = "edgecase audit head 1 ";
constexpr std::size_t kFileMaxBytes = 256;

std::string path_of(const std::string& directory, std::string_view suffix) {
  return directory + "/" + kHeadFileName + std::string(suffix);
}

std::string line_of(const Mark& head) {
  return std::string(kMagic) + std::to_string(head.sequence) + " " +
         auth::hex_text(auth::view_of(head.hash));
}

std::optional<Mark> parse(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(kMagic)) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  Mark head;
  const std::string_view rest = line.substr(kMagic.size());
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), head.sequence);
  const auto digits = static_cast<std::size_t>(stop - rest.data());
  if (error != std::errc{} || digits + 1 > rest.size()) return std::nullopt;
  if (!auth::parse_digest(rest.substr(digits + 1), head.hash)) return std::nullopt;
  const std::string sum = auth::hex_text(auth::view_of(auth::sha256(line)));
  if (line != line_of(head) || text.substr(end + 1) != sum + "\n") return std::nullopt;
  return head;
}

}  // namespace

Status write_head_file(FileSystem& file_system, const std::string& directory, const Mark& head) {
  const std::string fresh = path_of(directory, ".new");
  if (const Status removed = file_system.remove_file(fresh);
      !removed.ok() && removed.code() != StatusCode::NotFound) {
    return removed;
  }
  EC_ASSIGN_OR_RETURN(const auto file, file_system.create_file(fresh));
  const std::string line = line_of(head);
  EC_TRY(file->append(line + "\n" + auth::hex_text(auth::view_of(auth::sha256(line))) + "\n"));
  EC_TRY(file->sync());
  EC_TRY(file_system.rename_file(fresh, path_of(directory, "")));
  return file_system.sync_directory(directory);
}

Result<std::optional<Mark>> read_head_file(FileSystem& file_system, const std::string& directory) {
  const std::string path = path_of(directory, "");
  const auto file = file_system.open_file(path);
  if (file.status().code() == StatusCode::NotFound) return std::optional<Mark>();
  if (!file.ok()) return file.status();
  char buffer[kFileMaxBytes];
  EC_ASSIGN_OR_RETURN(const std::size_t size, (*file)->read(0, sizeof buffer, buffer));
  const auto head = parse({buffer, size});
  if (!head) return corruption(path + ": is not what was written");
  return head;
}

}  // namespace edgecase::audit
