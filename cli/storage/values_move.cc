#include "storage/drive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "target_file.h"

namespace edgecase::cli::storage {
namespace {

constexpr char kIdentity[] = "IDENTITY";
constexpr char kIdentityCopy[] = "IDENTITY.copy";
constexpr char kNote[] = "MOVED-FROM";
constexpr char kAuditHead[] = "AUDIT-HEAD";  // of the daemon's audit log; not every store has one
constexpr char kTableSuffix[] = ".val";
constexpr char kUnfinishedSuffix[] = ".moving";
constexpr std::size_t kPieceBytes = 1u << 20;
constexpr std::size_t kNoteMaxBytes = 4096;

class File {
 public:
  File(const std::string& path, int flags, mode_t mode = 0)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

Status sync_directory(const std::string& path) {
  const File directory(path, O_RDONLY | O_DIRECTORY);
  if (!directory || ::fsync(directory.descriptor()) != 0) return file_failure(path, errno);
  return ok();
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(directory, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return file_failure(directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_table(const std::string& name) {
  return name.ends_with(kTableSuffix);
}

std::string text_of(const std::string& path, std::size_t size_max) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.size() <= size_max ? text : std::string();
}

std::uint64_t size_of(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? static_cast<std::uint64_t>(found.st_size) : 0;
}

// An erasure overwrites tables in place, so the size alone says nothing.
bool is_copied(const std::string& from, const std::string& to) {
  struct stat old_file {};
  struct stat new_file {};
  return stat(from.c_str(), &old_file) == 0 && stat(to.c_str(), &new_file) == 0 &&
         old_file.st_size == new_file.st_size &&
         old_file.st_mtim.tv_sec == new_file.st_mtim.tv_sec &&
         old_file.st_mtim.tv_nsec == new_file.st_mtim.tv_nsec;
}

// A file that is there whole, after a power cut too, or not at all.
Status write_whole(const std::string& directory, const std::string& name, const std::string& text,
                   const struct stat& like) {
  const std::string path = directory + "/" + name;
  const std::string unfinished = path + kUnfinishedSuffix;
  {
    const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC, like.st_mode & 07777);
    if (!file ||
        ::write(file.descriptor(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return file_failure(path, errno);
    }
    // Root alone can give it away; whoever else moves owns both.
    if (::geteuid() == 0 && ::fchown(file.descriptor(), like.st_uid, like.st_gid) != 0) {
      return file_failure(path, errno);
    }
    if (::fsync(file.descriptor()) != 0) return file_failure(path, errno);
  }
  if (::rename(unfinished.c_str(), path.c_str()) != 0) return file_failure(path, errno);
  return sync_directory(directory);
}

Status copy_bytes(const File& in, const File& out, const std::string& path, const Moved& moved) {
  std::vector<char> piece(kPieceBytes);
  while (true) {
    const ssize_t size = ::read(in.descriptor(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_failure(path, errno);
    if (size == 0) return ok();
    for (ssize_t done = 0; done < size;) {
      const ssize_t n =
          ::write(out.descriptor(), piece.data() + done, static_cast<std::size_t>(size - done));
      if (n < 0 && errno != EINTR) return file_failure(path, errno);
      if (n > 0) done += n;
    }
    if (!moved(static_cast<std::uint64_t>(size))) return cancelled("stopped");
  }
}

// What is erased later must not be found in the blocks that are freed here.
Status overwrite_and_unlink(const std::string& path) {
  {
    const File file(path, O_WRONLY);
    struct stat found {};
    if (!file || ::fstat(file.descriptor(), &found) != 0) return file_failure(path, errno);
    const std::vector<char> zeros(kPieceBytes);
    for (off_t at = 0; at < found.st_size;) {
      const auto left = static_cast<std::size_t>(found.st_size - at);
      const ssize_t n = ::pwrite(file.descriptor(), zeros.data(), std::min(left, zeros.size()), at);
      if (n < 0 && errno != EINTR) return file_failure(path, errno);
      if (n > 0) at += n;
    }
    if (::fdatasync(file.descriptor()) != 0) return file_failure(path, errno);
  }
  if (::unlink(path.c_str()) != 0) return file_failure(path, errno);
  return ok();
}

}  // namespace

Result<MovePlan> ValuesMove::plan() const {
  if (size_of(from_ + "/" + kIdentity) == 0) {
    return not_found(from_ + " holds the values of no store");
  }
  EC_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(from_));
  MovePlan plan;
  for (const std::string& name : names) {
    if (!is_table(name) || is_copied(from_ + "/" + name, to_ + "/" + name)) continue;
    ++plan.files;
    plan.bytes += size_of(from_ + "/" + name);
  }
  return plan;
}

// What the other directory has not, or not any more.
Status ValuesMove::remove_foreign() const {
  EC_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(to_));
  for (const std::string& name : names) {
    const bool is_over = is_table(name) && !is_copied(from_ + "/" + name, to_ + "/" + name);
    if (!is_over && !name.ends_with(kUnfinishedSuffix)) continue;
    EC_TRY(overwrite_and_unlink(to_ + "/" + name));
  }
  return ok();
}

Status ValuesMove::copy_file(const std::string& name, const Moved& moved) const {
  const std::string source = from_ + "/" + name;
  const std::string target = to_ + "/" + name;
  const std::string unfinished = target + kUnfinishedSuffix;
  struct stat found {};
  const File in(source, O_RDONLY);
  if (!in || ::fstat(in.descriptor(), &found) != 0) return file_failure(source, errno);
  {
    const File out(unfinished, O_WRONLY | O_CREAT | O_TRUNC, found.st_mode & 07777);
    if (!out) return file_failure(unfinished, errno);
    EC_TRY(copy_bytes(in, out, target, moved));
    if (::geteuid() == 0 && ::fchown(out.descriptor(), found.st_uid, found.st_gid) != 0) {
      return file_failure(target, errno);
    }
    const timespec times[] = {found.st_atim, found.st_mtim};
    if (::futimens(out.descriptor(), times) != 0 || ::fsync(out.descriptor()) != 0)
      return file_failure(target, errno);
  }
  if (::rename(unfinished.c_str(), target.c_str()) != 0) return file_failure(target, errno);
  return ok();
}

Status ValuesMove::copy(const Moved& moved) const {
  const std::string identity = text_of(from_ + "/" + kIdentity, kNoteMaxBytes);
  if (identity.empty()) return not_found(from_ + " holds the values of no store");
  const std::string other = text_of(to_ + "/" + kIdentity, kNoteMaxBytes);
  if (!other.empty() && other != identity) {
    return already_exists(to_ + " holds the values of another store; use an empty directory");
  }
  const std::string came_from = moved_from(to_);
  EC_ASSIGN_OR_RETURN(const std::vector<std::string> there, names_in(to_));
  const bool has_tables = std::any_of(there.begin(), there.end(), is_table);
  if (has_tables && came_from != from_) {
    return already_exists(to_ + " holds values that did not come from " + from_ +
                          "; use an empty directory");
  }
  struct stat like {};
  const std::string identity_path = from_ + "/" + kIdentity;
  if (stat(identity_path.c_str(), &like) != 0) return file_failure(identity_path, errno);
  // Before the first table, so that whoever goes on knows them to be ours.
  EC_TRY(write_whole(to_, kNote, from_, like));
  EC_TRY(remove_foreign());
  EC_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(from_));
  for (const std::string& name : names) {
    if (!is_table(name) || is_copied(from_ + "/" + name, to_ + "/" + name)) continue;
    EC_TRY(copy_file(name, moved));
  }
  EC_TRY(sync_directory(to_));
  if (const std::string head = text_of(from_ + "/" + kAuditHead, kNoteMaxBytes); !head.empty()) {
    EC_TRY(write_whole(to_, kAuditHead, head, like));
  }
  return write_whole(to_, kIdentity, identity, like);
}

Status ValuesMove::remove_old() const {
  const std::string identity = text_of(to_ + "/" + kIdentity, kNoteMaxBytes);
  const std::string old_identity = text_of(from_ + "/" + kIdentity, kNoteMaxBytes);
  // Deleted last: without it there is nothing of ours left.
  if (!old_identity.empty()) {
    if (identity != old_identity) {
      return not_allowed(from_ + " and " + to_ + " are not of one store; nothing was deleted");
    }
    EC_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in(from_));
    for (const std::string& name : names) {
      if (!is_table(name) && name != "RESERVE" && name != kAuditHead) continue;
      EC_TRY(overwrite_and_unlink(from_ + "/" + name));
    }
    EC_TRY(sync_directory(from_));
    for (const char* name : {"LOCK", kIdentityCopy, kIdentity}) {
      const std::string path = from_ + "/" + name;
      if (::unlink(path.c_str()) != 0 && errno != ENOENT) return file_failure(path, errno);
    }
    EC_TRY(sync_directory(from_));
  }
  // A mount point, or one that holds something else, stays.
  ::rmdir(from_.c_str());
  const std::string note = to_ + "/" + kNote;
  if (::unlink(note.c_str()) != 0 && errno != ENOENT) return file_failure(note, errno);
  return sync_directory(to_);
}

std::string ValuesMove::moved_from(const std::string& directory) {
  return text_of(directory + "/" + kNote, kNoteMaxBytes);
}

namespace {

std::string toml_string(std::string_view value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// With their ends.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

bool is_head(std::string_view line, std::string_view table) {
  line = trimmed(line);
  if (!line.starts_with('[')) return false;
  line = trimmed(line.substr(1));
  if (!line.starts_with(table)) return false;
  return trimmed(line.substr(table.size())).starts_with(']');
}

// Keeps what is said behind the value, as far as a comment is recognised for sure.
std::string comment_of(std::string_view line) {
  const std::size_t hash = line.rfind('#');
  if (hash == std::string_view::npos) return "\n";
  const std::string_view comment = line.substr(hash);
  if (comment.find('"') != std::string_view::npos || comment.find('\'') != std::string_view::npos) {
    return "\n";
  }
  return "  " + std::string(comment) + (comment.ends_with('\n') ? "" : "\n");
}

}  // namespace

std::string with_setting(std::string_view text, std::string_view table, std::string_view key,
                         std::size_t line, std::string_view value) {
  std::vector<std::string> lines = lines_of(text);
  const std::string setting = std::string(key) + " = " + toml_string(value);
  if (line > 0 && line <= lines.size()) {
    lines[line - 1] = setting + comment_of(lines[line - 1]);
  } else {
    std::size_t at = 0;
    while (at < lines.size() && !is_head(lines[at], table)) ++at;
    if (at == lines.size()) {
      if (!lines.empty() && !lines.back().ends_with('\n')) lines.back() += '\n';
      lines.push_back("[" + std::string(table) + "]\n");
    } else if (!lines[at].ends_with('\n')) {
      lines[at] += '\n';
    }
    const std::size_t behind = at + 1 < lines.size() ? at + 1 : lines.size();
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(behind), setting + "\n");
  }
  std::string out;
  for (const std::string& each : lines) out += each;
  return out;
}

}  // namespace edgecase::cli::storage
