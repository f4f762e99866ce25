#include "audit/spare_pages.h"

#include <algorithm>
#include <utility>

#include "audit/page.h"
#include "audit/record_bytes.h"
#include "wire/big_endian.h"

namespace edgecase::audit {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kFrameHeadBytes = kLengthBytes + 8;

std::string path_in(const std::string& directory) {
  return directory + "/" + kSpareFileName;
}

std::uint32_t read_length(ByteView bytes) {
  std::uint32_t length = 0;
  for (const char c : bytes.substr(0, kLengthBytes)) {
    length = length << 8 | static_cast<unsigned char>(c);
  }
  return length;
}

}  // namespace

Result<SparePages> SparePages::create(FileSystem& file_system, const std::string& directory) {
  EC_ASSIGN_OR_RETURN(auto file, file_system.create_log_file(path_in(directory), kSpareBytes));
  EC_TRY(file_system.sync_directory(directory));
  return SparePages(std::move(file));
}

Result<SparePages> SparePages::open(FileSystem& file_system, const std::string& directory) {
  Bytes bytes;
  {
    EC_ASSIGN_OR_RETURN(const auto file, file_system.open_file(path_in(directory)));
    bytes.resize(std::min<std::uint64_t>(file->size_bytes(), kSpareBytes));
    EC_ASSIGN_OR_RETURN(const std::size_t size, file->read(0, bytes.size(), bytes.data()));
    bytes.resize(size);
  }
  EC_ASSIGN_OR_RETURN(auto file, file_system.open_log_file(path_in(directory)));
  SparePages pages(std::move(file));
  pages.read_frames(bytes);
  if (pages.empty() && bytes.size() < kSpareBytes) {
    EC_TRY(file_system.remove_file(path_in(directory)));
    return not_found(path_in(directory) + " was never whole");
  }
  return pages;
}

// A frame that was cut short was never told to be durable.
void SparePages::read_frames(ByteView bytes) {
  while (bytes.size() > end_ + kFrameHeadBytes) {
    const ByteView frame = bytes.substr(end_);
    const std::uint32_t length = read_length(frame);
    if (length <= kHashBytes || length > frame.size() - kFrameHeadBytes) return;
    const std::uint64_t last = wire::read_big_endian(frame.substr(kLengthBytes, 8));
    const ByteView page = frame.substr(kFrameHeadBytes, length);
    if (chain_hash(hash_, last, body_of(page)) != digest_of(page)) return;
    auto decoded = decode_page(last, page);
    if (!decoded.ok()) return;
    for (Record& record : decoded->records) found_.push_back(std::move(record));
    hash_ = digest_of(page);
    end_ += kFrameHeadBytes + length;
  }
}

Status SparePages::append(std::uint64_t last_sequence, ByteView body) {
  const auth::Digest hash = chain_hash(hash_, last_sequence, body);
  const Bytes page = page_value(hash, body);
  Bytes frame;
  frame.reserve(kFrameHeadBytes + page.size());
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>(page.size() >> shift & 0xff));
  }
  wire::append_big_endian(last_sequence, frame);
  frame += page;
  if (end_ + frame.size() > file_->capacity_bytes()) {
    return out_of_space(file_->path() + " is full");
  }
  EC_TRY(file_->write(end_, frame));
  EC_TRY(file_->sync());
  end_ += frame.size();
  hash_ = hash;
  return ok();
}

Status SparePages::clear() {
  if (empty()) return ok();
  EC_TRY(file_->write(0, Bytes(end_, '\0')));
  EC_TRY(file_->sync());
  end_ = 0;
  hash_ = {};
  return ok();
}

}  // namespace edgecase::audit
