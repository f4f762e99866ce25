#include "small_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace edgecase::cli {

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const std::string message = path + ": " + std::strerror(errno);
    if (errno == ENOENT || errno == ENOTDIR) return not_found(message);
    return errno == EACCES ? not_allowed(message) : io_error(message);
  }
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad()) return io_error(path + ": cannot be read");
  return text.str();
}

}  // namespace edgecase::cli
