// Removes files that nobody needs any more, and what lies in them: zeros are written over all of a
// file and synced before its name goes, where that is asked for, so that freed blocks hold nothing
// of what was erased. That takes as long as the drive takes to write as much, so such files wait in
// a queue for step(): first for their bytes to go, then, when no bytes are urgent, for their names,
// which may take as long (a file system that tells the drive of each freed block waits for it).
// Those that wait when the process ends are nobody's at the next open. A file that resists keeps
// its name and is remembered. Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "edgecase/file_system.h"
#include "edgecase/mutex.h"
#include "edgecase/write_batch.h"

namespace edgecase::engine {

// A stretch of a file.
struct FilePart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// What is to stand at a place of a file.
struct FileBytes {
  std::uint64_t offset = 0;
  Bytes bytes = {};
};

class FileRemover {
 public:
  // `overwrites` is asked for each file.
  FileRemover(FileSystem& file_system, std::function<bool()> overwrites)
      : file_system_(file_system), overwrites_(std::move(overwrites)) {}

  // The namespace whose entries a file may hold: one, or any.
  static constexpr NamespaceId kAnyNamespace = 0;
  // Much may wait that is not urgent: what was dropped, what an earlier process left behind.
  enum class Urgency : unsigned char { Soon, Whenever };

  // At once, unless it is to be overwritten: then it waits for its turn. One that is not there is
  // removed already.
  Status remove(const std::string& path, NamespaceId of = kAnyNamespace,
                Urgency urgency = Urgency::Soon);
  // As remove(), of files whose names may not be durable yet: one whose name goes before its bytes
  // were overwritten nobody would find again.
  void remove_new(std::span<const std::string> paths);
  // Waits for its turn, and is overwritten whatever is asked for.
  void remove_overwritten(const std::string& path, NamespaceId of, Urgency urgency);
  // At once, overwritten.
  Status remove_now(const std::string& path);
  // Whether a file waits with `urgency` at least: for its bytes or its name to go.
  bool has_waiting(Urgency urgency) const;
  // The same, for their bytes; what is being overwritten counts.
  bool has_bytes(Urgency urgency) const;
  // Overwrites and syncs up to so many bytes of those that wait, the urgent ones first, and
  // `urgency` at least. Names of what is blank by then go only where it is more than 512 MiB.
  void overwrite(std::uint64_t bytes, Urgency urgency);
  // As overwrite(), and then, when no bytes are urgent any more, names go.
  void step(std::uint64_t bytes, Urgency urgency);
  // All that wait and may hold something of these.
  void finish(std::span<const NamespaceId> namespaces);
  // The file stays, these parts of it do not; and `written`, if it has bytes, is put in its place.
  Status blank(const std::string& path, std::span<const FilePart> parts, const FileBytes& written);
  // Overwrites the files that resisted once more: Ok when none is left.
  Status retry();
  // The files that are left wait for their turn again.
  void queue_left();

  std::uint64_t removed_files() const { return removed_files_.load(); }
  std::uint64_t overwritten_bytes() const { return overwritten_bytes_.load(); }

 private:
  struct Waiting {
    std::string path;
    NamespaceId of = kAnyNamespace;
    Urgency urgency = Urgency::Soon;
    bool is_blank = false;  // all of it is overwritten, and synced
    // The rest belongs to the holder of step_mutex_.
    std::optional<std::uint64_t> size = std::nullopt;  // once it was begun
    std::uint64_t done = 0;
    bool is_done = false;  // it waits no more

    bool is_of(std::span<const NamespaceId> namespaces) const;
  };
  using Choice = std::function<bool(const Waiting&)>;

  Status unlink(const std::string& path);
  void note(const std::string& path, const Status& removed);
  // The most urgent of these first, kFilesPerStep at most. They stay where they are: only who holds
  // step_mutex_ takes files out.
  std::vector<Waiting*> choose(const Choice& is_chosen) EC_REQUIRES(step_mutex_);
  // Up to so many bytes. False: there were none.
  bool overwrite_some(std::uint64_t bytes, const Choice& is_chosen) EC_REQUIRES(step_mutex_);
  // The next of its bytes.
  Overwriting next_part(Waiting& file, std::uint64_t bytes);
  void note_overwritten(Waiting& file, const Overwriting& part) EC_REQUIRES(step_mutex_);
  // Unlinks some of the blank files. False: there were none.
  bool unlink_some(const Choice& is_chosen) EC_REQUIRES(step_mutex_);
  void forget_done();

  FileSystem& file_system_;
  const std::function<bool()> overwrites_;
  std::atomic<std::uint64_t> removed_files_{0};
  std::atomic<std::uint64_t> overwritten_bytes_{0};
  Mutex step_mutex_;  // held across I/O; taken before mutex_
  std::uint64_t blank_bytes_ EC_GUARDED_BY(step_mutex_) = 0;  // of files that still have names
  mutable Mutex mutex_;
  std::deque<Waiting> waiting_ EC_GUARDED_BY(mutex_);
  std::set<std::string> left_ EC_GUARDED_BY(mutex_);
};

// Zeros where something lay that is to be on no drive any more.

// Over a stretch of the file; not synced.
Status write_zeros(LogFile& file, std::uint64_t offset, std::uint64_t bytes);

// Over all of it, synced. Answers how many; NotFound when there is no such file.
Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path);

}  // namespace edgecase::engine
