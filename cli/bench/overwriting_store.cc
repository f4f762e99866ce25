#include "bench/overwriting_store.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>
#include <utility>

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

Result<std::unique_ptr<OverwritingStore>> OverwritingStore::open(const BenchOptions& options,
                                                                 ExpiryMode expiry,
                                                                 const NamespaceOptions& space) {
  std::unique_ptr<OverwritingStore> store(new OverwritingStore());
  EC_ASSIGN_OR_RETURN(store->directories_,
                      create_store_directories(options.metadata, options.values));
  Options wanted;
  wanted.metadata_directory = store->directories_.metadata;
  wanted.values_directory = store->directories_.values;
  wanted.expiry = expiry;
  wanted.removal = Removal::Overwrite;
  if (options.memory_bytes != 0) wanted.memory_limit_bytes = options.memory_bytes;
  const Environment environment{posix_file_system(), system_clock(), system_random(),
                                *store->executor_, store->listener_};
  EC_ASSIGN_OR_RETURN(store->engine_, Engine::open(wanted, environment));
  EC_ASSIGN_OR_RETURN(store->space_, store->engine_->create_namespace("bench", space));
  return store;
}

std::vector<MarkedFile> OverwritingStore::files_with(std::string_view marker) const {
  std::vector<MarkedFile> files = bench::files_with(directories_.metadata, marker);
  for (MarkedFile& each : bench::files_with(directories_.values, marker))
    files.push_back(std::move(each));
  return files;
}

}  // namespace edgecase::cli::bench
