#include "file/overwriting.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace edgecase {

// One after the other, but each is on its way to the drive while the next is written.
void FileSystem::overwrite(std::span<Overwriting> stretches) {
  std::vector<std::unique_ptr<LogFile>> files(stretches.size());
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    Overwriting& each = stretches[i];
    if (!each.status.ok()) continue;
    auto file = open_log_file(each.path);
    each.status = file.status();
    if (!file.ok()) continue;
    files[i] = *std::move(file);
    each.status = engine::write_zeros(*files[i], each.offset, each.bytes);
    if (each.status.ok()) files[i]->begin_write_out(each.offset + each.bytes);
  }
  for (std::size_t i = 0; i < stretches.size(); ++i)
    if (stretches[i].status.ok()) stretches[i].status = files[i]->sync();
}

namespace engine {
namespace {

constexpr std::uint64_t kZerosBytes = 256u << 10;

}  // namespace

Status write_zeros(LogFile& file, std::uint64_t offset, std::uint64_t bytes) {
  const Bytes zeros(std::min(kZerosBytes, bytes), '\0');
  for (std::uint64_t done = 0; done < bytes; done += zeros.size()) {
    const std::uint64_t size = std::min<std::uint64_t>(zeros.size(), bytes - done);
    EC_TRY(file.write(offset + done, ByteView(zeros).substr(0, size)));
  }
  return ok();
}

Result<std::uint64_t> overwrite_file(FileSystem& file_system, const std::string& path) {
  EC_ASSIGN_OR_RETURN(const std::uint64_t size, file_system.file_size(path));
  Overwriting all{path, 0, size};
  file_system.overwrite({&all, 1});
  EC_TRY(all.status);
  return size;
}

}  // namespace engine
}  // namespace edgecase
