#include "bench/marked_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

namespace edgecase::cli::bench {
namespace {

constexpr std::size_t kPieceBytes = 4u << 20;

// Pieces overlap by the marker's length.
bool holds(const std::string& path, std::string_view marker, std::uint64_t& size) {
  std::ifstream file(path, std::ios::binary);
  std::string piece;
  std::size_t kept = 0;
  const std::boyer_moore_horspool_searcher searcher(marker.begin(), marker.end());
  while (file) {
    piece.resize(kept + kPieceBytes);
    file.read(piece.data() + kept, kPieceBytes);
    const auto got = static_cast<std::size_t>(file.gcount());
    size += got;
    piece.resize(kept + got);
    if (std::search(piece.begin(), piece.end(), searcher) != piece.end()) return true;
    kept = std::min(piece.size(), marker.size() - 1);
    piece.erase(0, piece.size() - kept);
  }
  return false;
}

}  // namespace

std::vector<MarkedFile> files_with(const std::string& directory, std::string_view marker) {
  std::vector<MarkedFile> found;
  std::error_code error;
  auto at = std::filesystem::recursive_directory_iterator(directory, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    std::error_code gone;
    if (!at->is_regular_file(gone)) continue;
    MarkedFile file{at->path().string(), 0};
    if (holds(file.path, marker, file.bytes)) found.push_back(std::move(file));
  }
  return found;
}

}  // namespace edgecase::cli::bench
