#include "audit/spare_pages.h"

#include <algorithm>
#include <utility>

#include "audit/page.h"
#include "audit/record_bytes.h"
#include "wire/big_endian.h"

namespace edgecase::audit {
namespace {

constexpr int kLengthBytes = 4;
constexpr std::size_t kSequenceBytes = 8;
constexpr std::uint64_t kSealedFlag = 1u << 31;
constexpr std::string_view kSealedKind = "audit spare";

std::string path_in(const std::string& directory) {
  return directory + "/" + kSpareFileName;
}

}  // namespace

Result<SparePages> SparePages::create(FileSystem& file_system, const std::string& directory,
                                      Sealer* sealer) {
  EC_ASSIGN_OR_RETURN(auto file, file_system.create_log_file(path_in(directory), kSpareBytes));
  EC_TRY(file_system.sync_directory(directory));
  return SparePages(file_system, std::move(file), sealer);
}

Result<SparePages> SparePages::open(FileSystem& file_system, const std::string& directory,
                                    Sealer* sealer) {
  Bytes bytes;
  {
    EC_ASSIGN_OR_RETURN(const auto file, file_system.open_file(path_in(directory)));
    bytes.resize(std::min<std::uint64_t>(file->size_bytes(), kSpareBytes));
    EC_ASSIGN_OR_RETURN(const std::size_t size, file->read(0, bytes.size(), bytes.data()));
    bytes.resize(size);
  }
  EC_ASSIGN_OR_RETURN(auto file, file_system.open_log_file(path_in(directory)));
  SparePages pages(file_system, std::move(file), sealer);
  pages.read_frames(bytes);
  // What can not be overwritten now, clear() tries again: a drive like that holds up no start.
  static_cast<void>(pages.overwrite(pages.end_).ok());
  if (pages.empty() && bytes.size() < kSpareBytes) {
    EC_TRY(file_system.remove_file(path_in(directory)));
    return not_found(path_in(directory) + " was never whole");
  }
  return pages;
}

// The one that begins where the last one ended; none: that is no whole one of this store.
std::optional<SparePages::Frame> SparePages::frame_at_end(ByteView bytes) const {
  const ByteView rest = bytes.substr(end_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  const std::uint64_t length = wire::read_big_endian(rest.substr(0, kLengthBytes));
  // A page of the other kind is longer than the file.
  const std::uint64_t size = sealer_ != nullptr ? length ^ kSealedFlag : length + kSequenceBytes;
  if (size > rest.size() - kLengthBytes) return std::nullopt;
  std::optional<Bytes> content(rest.substr(kLengthBytes, size));
  if (sealer_ != nullptr) content = sealer_->open(kSealedKind, end_, *content);
  if (!content || content->size() <= kSequenceBytes + kHashBytes) return std::nullopt;
  return Frame{kLengthBytes + size, wire::read_big_endian(*content),
               content->substr(kSequenceBytes)};
}

void SparePages::read_frames(ByteView bytes) {
  written_ = bytes.find_last_not_of('\0') + 1;
  while (const std::optional<Frame> frame = frame_at_end(bytes)) {
    const auto& [frame_bytes, last, page] = *frame;
    if (chain_hash(hash_, last, body_of(page)) != digest_of(page)) break;
    auto decoded = decode_page(last, page);
    if (!decoded.ok()) break;
    for (Record& record : decoded->records) found_.push_back(std::move(record));
    hash_ = digest_of(page);
    end_ += frame_bytes;
  }
  written_ = std::max(written_, end_);
  dropped_bytes_ = written_ - end_;
}

Bytes SparePages::encode_frame(std::uint64_t last_sequence, ByteView page) const {
  Bytes content;
  content.reserve(kSequenceBytes + page.size());
  wire::append_big_endian(last_sequence, content);
  content += page;
  if (sealer_ != nullptr) content = sealer_->seal(kSealedKind, end_, content);
  Bytes frame;
  frame.reserve(kLengthBytes + content.size());
  wire::append_big_endian(sealer_ != nullptr ? content.size() | kSealedFlag : page.size(), frame,
                          kLengthBytes);
  frame += content;
  return frame;
}

Status SparePages::append(std::uint64_t last_sequence, ByteView body) {
  const auth::Digest hash = chain_hash(hash_, last_sequence, body);
  const Bytes frame = encode_frame(last_sequence, page_value(hash, body));
  if (end_ + frame.size() > capacity_bytes_) return out_of_space(path_ + " is full");
  written_ = std::max(written_, end_ + frame.size());
  EC_TRY(write(end_, frame));
  end_ += frame.size();
  hash_ = hash;
  return ok();
}

Status SparePages::clear() {
  EC_TRY(overwrite(0));
  end_ = 0;
  hash_ = {};
  return ok();
}

// All from there on.
Status SparePages::overwrite(std::uint64_t begin) {
  if (begin == written_) return ok();
  EC_TRY(write(begin, Bytes(written_ - begin, '\0')));
  written_ = begin;
  return ok();
}

// Durable on return. What failed is given up, and whatever it should have written is written again.
Status SparePages::write(std::uint64_t offset, ByteView bytes) {
  if (file_ == nullptr) {
    EC_ASSIGN_OR_RETURN(file_, file_system_->open_log_file(path_));
  }
  Status status = file_->write(offset, bytes);
  if (status.ok()) status = file_->sync();
  if (!status.ok()) file_.reset();
  return status;
}

}  // namespace edgecase::audit
