#include "support/test_data.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

namespace edgecase::test {
namespace {

std::filesystem::path data_directory() {
  if (const char* const named = std::getenv("EDGECASE_TEST_DATA"); named != nullptr) return named;
  return std::filesystem::path(EDGECASE_SOURCE_DIRECTORY).parent_path() / "shared" / "data";
}

struct PipeCloser {
  void operator()(std::FILE* pipe) const { ::pclose(pipe); }
};

}  // namespace

std::optional<std::string> read_test_data(std::string_view name) {
  const std::filesystem::path path = data_directory() / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    std::fprintf(stderr, "no test data %s\n", path.c_str());
    return std::nullopt;
  }
  const bool packed = path.extension() == ".gz";
  const std::string command = (packed ? "gzip -dc '" : "cat '") + path.string() + "'";
  const std::unique_ptr<std::FILE, PipeCloser> pipe(::popen(command.c_str(), "r"));
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    text.append(buffer.data(), got);
  }
  return text;
}

}  // namespace edgecase::test
