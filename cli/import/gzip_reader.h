// A gzip file (RFC 1952) from its beginning to its end, a piece at a time. One thread.
#pragma once

#include <memory>
#include <string>

#include "edgecase/result.h"

namespace edgecase::cli {

class GzipReader {
 public:
  // NotFound, NotAllowed, IoError: the file.
  static Result<std::unique_ptr<GzipReader>> open(const std::string& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Appends some more to `out`; false at the end. Corruption: no gzip, a wrong checksum, or an end
  // that is missing.
  Result<bool> read(std::string& out);
  // How much of the file was read, 0 to 1.
  double share() const;

 private:
  struct State;
  explicit GzipReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace edgecase::cli
