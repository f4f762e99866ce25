// A fresh directory on the machine's file system, removed with all it holds at the end of its
// scope.
#pragma once

#include <string>
#include <string_view>

namespace edgecase::test {

class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  // "<path>/name"
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_file(const std::string& path, std::string_view bytes);

}  // namespace edgecase::test
