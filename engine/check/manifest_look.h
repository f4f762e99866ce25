// Looks at logs and manifests as far as they can be read, for people and for checks. Reads only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/file_system.h"
#include "log/log_reader.h"
#include "version/current.h"
#include "version/version.h"

namespace edgecase::engine {

// Lines of "name: value", as inspect_file() answers them.

void add_fact(std::string& out, std::string_view name, std::string_view value);
void add_fact(std::string& out, std::string_view name, std::uint64_t value);

// Hexadecimal digits; a long key is cut and ends in "...".
std::string shown_key(ByteView key);

// Looks through one log, a manifest or a WAL segment, front to back, for people and for
// `edgecase check`. Reads only; one read-ahead buffer of memory. Used by one thread.
struct LogLook {
  LogIdentity identity;
  std::uint64_t successor = 0;  // 0: none is named
  std::uint32_t version = 0;    // of its format
  bool is_sealed = false;
  std::uint64_t file_bytes = 0;
  std::uint64_t records = 0;
  std::uint64_t end_bytes = 0;  // of valid records, without the head
  bool torn_tail = false;
  Status status;                   // Ok, or what is wrong and where; NotFound: there is no head
  std::vector<std::string> notes;  // what is unusual and does no harm
};

// Answers Ok, or what is wrong with the record, which begins at `offset` of the file.
using LookAtRecord = std::function<Status(const LogRecord& record, std::uint64_t offset)>;
// Looks at the copy of a doubled log that begins at `begin` of the file; offsets count from there.
LogLook look_at_log(FileSystem& file_system, const std::string& path, KeyRing* keys,
                    const LookAtRecord& look, std::uint64_t begin = 0);

// Reads a manifest as far as either of its copies can be read. Reads only; used by one thread.
struct ManifestLook {
  LogLook log;  // of the copy that counts; its status counts for all of it, its notes tell of both
  std::size_t copies = 0;  // that there should be, and that are whole
  std::size_t whole_copies = 0;
  std::uint64_t edits = 0;
  VersionState state;                     // after the last edit that could be applied
  std::vector<NamespaceInfo> namespaces;  // every one that an edit named, by id
};

ManifestLook look_at_manifest(FileSystem& file_system, const std::string& path, KeyRing* keys);

// Lines on ranges that were erased and whose bytes may still be somewhere, and on value files in
// which items are overwritten.
void erasure_lines(std::string& out, const VersionState& state);

}  // namespace edgecase::engine
