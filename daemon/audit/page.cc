#include "audit/page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "wire/reading.h"

namespace edgecase::audit {
namespace {

constexpr char kPageVersion = 1;
constexpr char kReachesMoreFlag = 1;

std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

// Times of a page lie where int64 does, their differences may not: they wrap, both ways.
std::int64_t later_by(std::int64_t time_ns, std::int64_t than_ns) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) -
                                   static_cast<std::uint64_t>(than_ns));
}

std::int64_t plus(std::int64_t time_ns, std::int64_t later_ns) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) +
                                   static_cast<std::uint64_t>(later_ns));
}

void append_text(Bytes& out, std::string_view text) {
  text = text.substr(0, kTextMaxBytes);
  append_varint(out, text.size());
  out += text;
}

Status damaged(std::uint64_t sequence, const char* what) {
  return corruption("audit record " + std::to_string(sequence) + " " + what);
}

void append_record(Bytes& out, const Draft& draft, std::uint64_t description,
                   std::int64_t later_ns) {
  append_varint(out, description);
  out.push_back(static_cast<char>(2 * static_cast<int>(draft.outcome) +
                                  (draft.trust == ClockTrust::Trusted ? 1 : 0)));
  append_varint(out, zigzag(later_ns));
  append_varint(out, draft.count);
  append_varint(out, draft.more_devices);
  for (const std::uint64_t count : draft.target_counts) append_varint(out, count);
}

void describe(Draft& draft, bool reaches_more, const std::array<std::string_view, 6>& texts,
              std::span<const Target> targets) {
  targets = targets.first(std::min(targets.size(), kTargetsMax));
  Bytes& out = draft.description;
  std::size_t bytes = 16 + 8 * targets.size();
  for (const std::string_view text : texts) bytes += std::min(text.size(), kTextMaxBytes);
  out.reserve(bytes);
  out.push_back(reaches_more ? kReachesMoreFlag : '\0');
  for (const std::string_view text : texts) append_text(out, text);
  append_varint(out, targets.size());
  draft.target_counts.reserve(targets.size());
  for (const Target& target : targets) {
    wire::append_big_endian(target.pseudonym, out);
    draft.target_counts.push_back(target.count);
  }
}

// False: malformed.
bool take_description(ByteView bytes, Record& record) {
  Reader reader(bytes);
  record.reaches_more = (reader.byte() & kReachesMoreFlag) != 0;
  for (std::string* text : {&record.operation, &record.actor, &record.token, &record.namespace_name,
                            &record.selector, &record.detail}) {
    *text = reader.text();
  }
  const std::uint64_t targets = reader.varint();
  if (targets > kTargetsMax) return false;
  for (std::uint64_t i = 0; i < targets && !reader.failed(); ++i) {
    record.targets.push_back({reader.number(), 0});
  }
  return !reader.failed() && reader.at_end();
}

// The fields that differ from record to record.
void take_record(Reader& reader, Record& record) {
  const unsigned char how = reader.byte();
  record.outcome = static_cast<Outcome>(how / 2);
  record.trust = how % 2 != 0 ? ClockTrust::Trusted : ClockTrust::Untrusted;
  record.time_ns = unzigzag(reader.varint());
  record.count = reader.varint();
  record.more_devices = reader.varint();
  for (Target& target : record.targets) target.count = reader.varint();
}

struct Opened {
  PageHead head;
  std::uint64_t records = 0;
  Reader rest;
};

Result<Opened> open_page(std::uint64_t last_sequence, ByteView value) {
  if (value.size() <= kHashBytes) return damaged(last_sequence, "is cut short");
  Opened page{{}, 0, Reader(body_of(value))};
  if (page.rest.byte() != kPageVersion) {
    return damaged(last_sequence, "is of a version that is not known");
  }
  page.records = page.rest.varint();
  page.head.first_ns = static_cast<std::int64_t>(page.rest.number());
  page.head.last_ns = plus(page.head.first_ns, unzigzag(page.rest.varint()));
  if (page.rest.failed()) return damaged(last_sequence, "is cut short");
  if (page.records == 0 || page.records > std::min<std::uint64_t>(kPageRecordsMax, last_sequence)) {
    return damaged(last_sequence, "is on a page of a wrong length");
  }
  page.head.first = last_sequence - page.records + 1;
  page.head.last = last_sequence;
  page.head.hash = digest_of(value);
  return page;
}

}  // namespace

Draft draft_of(const Record& record) {
  Draft draft;
  draft.outcome = record.outcome;
  draft.count = record.count;
  draft.more_devices = record.more_devices;
  describe(draft, record.reaches_more,
           {record.operation, record.actor, record.token, record.namespace_name, record.selector,
            record.detail},
           record.targets);
  return draft;
}

Draft draft_of(const Stored& stored, std::span<const Target> targets) {
  Draft draft;
  for (const Target& target : targets) draft.count += target.count;
  describe(draft, false,
           {stored.operation, stored.actor, stored.token, stored.namespace_name, {}, {}}, targets);
  return draft;
}

Bytes encode_page(std::span<const Draft* const> drafts) {
  std::unordered_map<std::string_view, std::uint64_t> numbers;
  Bytes descriptions, records;
  records.reserve(drafts.size() * 10);
  std::int64_t previous_ns = drafts.front()->time_ns;
  std::string_view last_description;
  std::uint64_t last_number = 0;
  for (const Draft* draft : drafts) {
    if (numbers.empty() || last_description != draft->description) {
      last_description = draft->description;
      const auto [found, is_new] = numbers.try_emplace(last_description, numbers.size());
      last_number = found->second;
      if (is_new) {
        append_varint(descriptions, last_description.size());
        descriptions += last_description;
      }
    }
    append_record(records, *draft, last_number, later_by(draft->time_ns, previous_ns));
    previous_ns = draft->time_ns;
  }
  Bytes body(1, kPageVersion);
  body.reserve(32 + descriptions.size() + records.size());
  append_varint(body, drafts.size());
  wire::append_big_endian(static_cast<std::uint64_t>(drafts.front()->time_ns), body);
  append_varint(body, zigzag(later_by(previous_ns, drafts.front()->time_ns)));
  append_varint(body, numbers.size());
  body += descriptions;
  body += records;
  return body;
}

auth::Digest chain_hash(const auth::Digest& previous, std::uint64_t last_sequence, ByteView body) {
  Bytes hashed;
  hashed.reserve(kHashBytes + 8 + body.size());
  hashed += auth::view_of(previous);
  wire::append_big_endian(last_sequence, hashed);
  hashed += body;
  return auth::sha256(hashed);
}

Bytes page_value(const auth::Digest& hash, ByteView body) {
  Bytes value(auth::view_of(hash));
  value += body;
  return value;
}

ByteView body_of(ByteView value) {
  return value.substr(std::min(value.size(), kHashBytes));
}

Result<PageHead> decode_page_head(std::uint64_t last_sequence, ByteView value) {
  EC_ASSIGN_OR_RETURN(const Opened page, open_page(last_sequence, value));
  return page.head;
}

Result<Page> decode_page(std::uint64_t last_sequence, ByteView value, const Wanted& wanted) {
  EC_ASSIGN_OR_RETURN(Opened opened, open_page(last_sequence, value));
  Reader& rest = opened.rest;
  std::vector<Record> descriptions;
  std::vector<bool> are_wanted;
  const std::uint64_t described = rest.varint();
  if (rest.failed() || described == 0 || described > opened.records) {
    return damaged(last_sequence, "is malformed");
  }
  for (std::uint64_t i = 0; i < described; ++i) {
    if (!take_description(rest.take(rest.varint()), descriptions.emplace_back())) {
      return damaged(last_sequence, "is malformed");
    }
    are_wanted.push_back(!wanted || wanted(descriptions.back()));
  }
  Page page{opened.head, {}};
  if (std::find(are_wanted.begin(), are_wanted.end(), true) == are_wanted.end()) return page;
  std::int64_t time_ns = page.head.first_ns;
  for (std::uint64_t sequence = page.head.first; sequence <= page.head.last; ++sequence) {
    const std::uint64_t number = rest.varint();
    if (rest.failed() || number >= described) return damaged(sequence, "is malformed");
    Record& record = descriptions[number];
    take_record(rest, record);
    time_ns = plus(time_ns, record.time_ns);
    if (!are_wanted[number]) continue;
    record.time_ns = time_ns;
    record.sequence = sequence;
    record.hash = page.head.hash;
    page.records.push_back(record);
  }
  if (rest.failed() || !rest.at_end() || time_ns != page.head.last_ns) {
    return damaged(last_sequence, "is malformed");
  }
  return page;
}

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

namespace {

constexpr std::string_view kMagic = "edgecase audit head 1 ";
constexpr std::size_t kFileMaxBytes = 256;

std::string path_of(const std::string& directory, std::string_view suffix) {
  return directory + "/" + kHeadFileName + std::string(suffix);
}

std::string line_of(const Mark& head) {
  return std::string(kMagic) + std::to_string(head.sequence) + " " +
         auth::hex_text(auth::view_of(head.hash));
}

std::optional<Mark> parse(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(kMagic)) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  Mark head;
  const std::string_view rest = line.substr(kMagic.size());
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), head.sequence);
  const auto digits = static_cast<std::size_t>(stop - rest.data());
  if (error != std::errc{} || digits + 1 > rest.size()) return std::nullopt;
  if (!auth::parse_digest(rest.substr(digits + 1), head.hash)) return std::nullopt;
  const std::string sum = auth::hex_text(auth::view_of(auth::sha256(line)));
  if (line != line_of(head) || text.substr(end + 1) != sum + "\n") return std::nullopt;
  return head;
}

}  // namespace

Status write_head_file(FileSystem& file_system, const std::string& directory, const Mark& head) {
  const std::string fresh = path_of(directory, ".new");
  if (const Status removed = file_system.remove_file(fresh);
      !removed.ok() && removed.code() != StatusCode::NotFound) {
    return removed;
  }
  EC_ASSIGN_OR_RETURN(const auto file, file_system.create_file(fresh));
  const std::string line = line_of(head);
  EC_TRY(file->append(line + "\n" + auth::hex_text(auth::view_of(auth::sha256(line))) + "\n"));
  EC_TRY(file->sync());
  EC_TRY(file_system.rename_file(fresh, path_of(directory, "")));
  return file_system.sync_directory(directory);
}

Result<std::optional<Mark>> read_head_file(FileSystem& file_system, const std::string& directory) {
  const std::string path = path_of(directory, "");
  const auto file = file_system.open_file(path);
  if (file.status().code() == StatusCode::NotFound) return std::optional<Mark>();
  if (!file.ok()) return file.status();
  char buffer[kFileMaxBytes];
  EC_ASSIGN_OR_RETURN(const std::size_t size, (*file)->read(0, sizeof buffer, buffer));
  const auto head = parse({buffer, size});
  if (!head) return corruption(path + ": is not what was written");
  return head;
}

}  // namespace edgecase::audit
