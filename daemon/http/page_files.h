// The files of daemon/http/page/, which the build compresses and puts into the program
// (toolchains/page_files.cmake). Constant; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace edgecase::http {

struct PageFile {
  std::string_view name;
  std::string_view hash;      // of what it says
  const unsigned char* gzip;  // as it is sent
  std::size_t gzip_bytes;
  std::size_t bytes;  // inflated
};

std::span<const PageFile> page_files();
// The hash of the style in index.html, as Content-Security-Policy names it.
std::string_view page_style_hash();

}  // namespace edgecase::http
