// Which files still hold what should be gone: a search for a marker in their raw bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace edgecase::cli::bench {

struct MarkedFile {
  std::string path;
  std::uint64_t bytes = 0;  // of the file
};

// Files below `directory` in which `marker` stands. A file that goes meanwhile does not count.
std::vector<MarkedFile> files_with(const std::string& directory, std::string_view marker);

}  // namespace edgecase::cli::bench
