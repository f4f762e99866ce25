#include "file/whole_file.h"

namespace edgecase::engine {

Result<Bytes> read_whole_file(FileSystem& file_system, const std::string& path,
                              std::size_t size_max, ReadSource source) {
  EC_ASSIGN_OR_RETURN(
      const std::unique_ptr<RandomAccessFile> file,
      source == ReadSource::Drive ? file_system.open_uncached(path) : file_system.open_file(path));
  if (file->size_bytes() > size_max)
    return corruption_in(path, ": longer than " + std::to_string(size_max) + " bytes");
  Bytes content(static_cast<std::size_t>(file->size_bytes()), '\0');
  EC_ASSIGN_OR_RETURN(const std::size_t size, file->read(0, content.size(), content.data()));
  content.resize(size);
  return content;
}

Status replace_whole_file(FileSystem& file_system, const std::string& directory,
                          const std::string& new_path, const std::string& path, ByteView content) {
  if (const Status removed = file_system.remove_file(new_path);
      !removed.ok() && removed.code() != StatusCode::NotFound) {
    return removed;
  }
  {
    EC_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        file_system.create_file(new_path));
    EC_TRY(file->append(content));
    EC_TRY(file->sync());
  }
  EC_TRY(file_system.rename_file(new_path, path));
  return file_system.sync_directory(directory);
}

}  // namespace edgecase::engine
