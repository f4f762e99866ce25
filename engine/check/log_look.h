// Looks through one log, a manifest or a WAL segment, front to back, for people and for
// `edgecase check`. Reads only; one read-ahead buffer of memory. Used by one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "edgecase/file_system.h"
#include "log/log_reader.h"

namespace edgecase::engine {

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

}  // namespace edgecase::engine
