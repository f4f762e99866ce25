// A gzip file that appears whole or not at all (target_file.h). One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "edgecase/result.h"

namespace edgecase::cli {

class GzipFile {
 public:
  static Result<std::unique_ptr<GzipFile>> create(const std::string& path,
                                                  const std::string& shown = {});
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  Status write(std::string_view bytes);
  // Durable once it returns Ok.
  Status commit();
  // The size of the file so far.
  std::uint64_t size_bytes() const;

 private:
  struct State;
  explicit GzipFile(std::unique_ptr<State> state);
  Status deflate(std::string_view bytes, int flush);
  std::unique_ptr<State> state_;
};

}  // namespace edgecase::cli
