// Reads items of one value table. Thread-safe; holds no more than the open file.
#pragma once

#include <memory>
#include <optional>

#include "base/entry.h"
#include "edgecase/file_system.h"
#include "value/value_table_writer.h"

namespace edgecase::engine {

struct SealProblem;

// The bytes of one item, its checksums already right; or of one page of a plain group.
struct Item {
  Bytes bytes;

  ItemType type() const { return static_cast<ItemType>(bytes[kItemChecksumBytes]); }
  ByteView contents() const { return ByteView(bytes).substr(kItemHeadBytes); }
};

// Whether an item was overwritten, since what it held was erased: it has no byte but zeros.
bool is_blank(ByteView item);

// The one entry of a Single; nullopt when malformed. Views `contents`, and `room` where the value
// is packed.
std::optional<EntryView> parse_single(ByteView contents, Bytes& room);

struct ValueTableSummary {
  std::vector<ValuePointer> items;
  std::uint64_t entries = 0;
  std::uint64_t deletes = 0;
  SequenceNumber sequence_min = 0;
  SequenceNumber sequence_max = 0;
  Bytes smallest;
  Bytes largest;
  bool ascending = false;  // all keys of each item lie behind those of the items before it
  Bytes namespace_name;    // empty: not told
  std::uint32_t scope_bytes = 0;
};

class ValueTableReader {
 public:
  // Checks the head against what is expected: Corruption, Unavailable (another store's file) or
  // Unsupported (newer format) when it is not so; NotAllowed when it is encrypted and there are no
  // `keys`.
  static Result<std::unique_ptr<ValueTableReader>> open(std::unique_ptr<RandomAccessFile> file,
                                                        const StoreId& store_id,
                                                        std::uint64_t file_number,
                                                        KeyRing* keys = nullptr);
  // For files of any store: takes identity from the head itself.
  static Result<std::unique_ptr<ValueTableReader>> open_any(std::unique_ptr<RandomAccessFile> file,
                                                            KeyRing* keys = nullptr);

  const ValueTableHead& head() const { return head_; }
  const RandomAccessFile& file() const { return *file_; }
  const FileCipher* cipher() const { return cipher_.get(); }  // null: not encrypted

  // Exactly one read of `pointer.size_bytes`. Corruption when the pointer leads astray or the
  // checksum is wrong; NotFound when the item was erased by destroying its key.
  Result<Item> read(const ValuePointer& pointer) const;
  // Reads the value of a Single that is a put into memory of its own, where the file is not
  // encrypted. False when the item is whole but not what it should be.
  Result<bool> read_put(const ValuePointer& pointer, SequenceNumber sequence, ByteView full_key,
                        Bytes& value) const;
  // The same of bytes that were read already, as they lie in the file.
  Result<Item> check(const ValuePointer& pointer, Bytes bytes) const;
  // As these, of one page of a plain group: `page` is where it lies.
  Result<Item> read_page(const ValuePointer& page) const;
  // Into `buffer`, of which it returns a view; it holds `page.size_bytes`.
  Result<ByteView> read_page(const ValuePointer& page, char* buffer) const;
  // Takes a page that was read already, as it lies in the file: a view of `bytes`, or of `opened`
  // where that is sealed.
  Result<ByteView> take_page(const ValuePointer& page, ByteView bytes, Bytes& opened) const;
  Status damaged(const ValuePointer& pointer, std::string_view what) const;
  // Ok when there is no problem.
  Status explain(const SealProblem& problem, const ValuePointer& pointer) const;
  // Whether an item cannot be read because it was overwritten.
  bool reads_blank(const ValuePointer& pointer) const;

  SealOverhead seal_overhead() const;
  // What the sections at its end say.
  Result<ValueTableSummary> summary() const;
  // The last bytes of the file as they would be if its summary named no key: it has bounds of the
  // same sizes between which all keys lie. Of files that are not sealed.
  Result<Bytes> end_without_keys() const;

 private:
  ValueTableReader(std::unique_ptr<RandomAccessFile> file, const ValueTableHead& head,
                   std::unique_ptr<FileCipher> cipher)
      : file_(std::move(file)), head_(head), cipher_(std::move(cipher)) {}

  std::uint64_t items_offset() const {
    return (cipher_ == nullptr ? kTableHeadBytes : kSealedTableHeadBytes) + kValueTableHeadBytes;
  }
  Status check_size(const ValuePointer& pointer) const;
  Result<ByteView> open_page(const ValuePointer& page, char* bytes) const;
  Status check_page(const ValuePointer& page, ByteView bytes) const;

  std::unique_ptr<RandomAccessFile> file_;
  ValueTableHead head_;
  std::unique_ptr<FileCipher> cipher_;  // null: not encrypted
};

}  // namespace edgecase::engine
