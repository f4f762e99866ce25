// Notices what an encrypted store must never do: write other bytes to a place of a file that has
// been written under the same salt. There the nonce would serve twice, whatever the drive kept of
// the first. Zeros are free, before and behind.
//
// Logs use their file anew: a head whose number and salt (log/log_format.h) the file never had
// begins another use; one whose head comes after its records begins by taking away the old one.
// Heads are in clear. A log that lies twice in its file has one for each copy,
// and a copy that is healed becomes the other one, salt and all.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "edgecase/bytes.h"

namespace edgecase::test {

// The places of one file. Used under the mutex of its drives.
class WriteOnce {
 public:
  // The first place written twice, of any file, goes to `broken`.
  WriteOnce(std::string path, std::shared_ptr<std::string> broken)
      : path_(std::move(path)), broken_(std::move(broken)) {}

  void note(std::uint64_t offset, ByteView bytes);

 private:
  bool is_log(std::uint64_t offset, ByteView bytes) const;
  void note_heads(std::uint64_t offset, ByteView bytes);

  const std::string path_;
  const std::shared_ptr<std::string> broken_;
  Bytes written_;          // what each place was first given; 0: nothing
  std::set<Bytes> uses_;   // of a log
  bool headless_ = false;  // a use has begun whose head is to come
};

}  // namespace edgecase::test
