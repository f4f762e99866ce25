#pragma once

#include <cstdio>
#include <memory>

namespace edgecase::cli {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace edgecase::cli
