// What "measurement,tag=value,..." and field keys of line protocol are called in EdgeCase: device
// and sensor names, built once for every distinct text of one slice and of those that follow it in
// the same batch; sensors of several devices in a row that have the same names once for all of
// them. Mapping: line_protocol.h. One thread. Views of what it returns last as long as the body and
// the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "edgecase/result.h"
#include "wire/reading.h"

namespace edgecase::wire {

inline constexpr std::size_t kTagsPerLineMax = 64;
// Distinct tag sets whose names are remembered at once; further ones are built each time.
// Bounds memory, and the harm that crafted hash collisions could do.
inline constexpr std::size_t kRememberedTagSetsMax = 1'024;
// Fields of one tag set whose names are remembered.
inline constexpr std::size_t kRememberedFieldsMax = 256;

class LineNames {
 public:
  // Forgets everything: before a slice whose batch does not hold the remembered names any more.
  void reset();
  // Whether further tag sets will not be remembered.
  bool is_full() const { return used_ == kRememberedTagSetsMax; }

  // Makes `raw` (escapes kept) the tag set that sensor() speaks of.
  Status select(std::string_view raw, ReadingBatch& batch);
  std::string_view device() const { return current_->device; }

  // True when the line's field number `index` begins with the same key and `=` as it did the last
  // time: `key_bytes` is the key's length then.
  bool expect(std::size_t index, const char* position, const char* end, std::size_t& key_bytes,
              std::string_view& sensor) const {
    if (index >= current_->fields.size()) return false;
    const Field& field = current_->fields[index];
    key_bytes = field.raw.size();
    if (static_cast<std::size_t>(end - position) <= key_bytes || position[key_bytes] != '=' ||
        !is_same(position, field.raw.data(), key_bytes)) {
      return false;
    }
    sensor = field.sensor;
    return true;
  }
  // The sensor of field key `raw` (escapes kept).
  Result<std::string_view> sensor(std::string_view raw, ReadingBatch& batch);

 private:
  struct Field {
    std::string_view raw;
    std::string_view sensor;
  };
  struct TagSet {
    std::string_view raw;
    std::string_view device;
    std::string_view prefix;       // of the sensor
    const TagSet* like = nullptr;  // another one with that prefix, which has the same sensors
    std::vector<Field> fields;
  };
  struct Tag {
    std::string_view key;
    std::string_view value;
  };

  // Of texts as short as keys are it is less work than a call.
  static bool is_same(const char* a, const char* b, std::size_t bytes) {
    const auto differ = [&]<typename Word>(Word) {
      Word words[4];
      std::memcpy(words, a, sizeof(Word));
      std::memcpy(words + 1, b, sizeof(Word));
      std::memcpy(words + 2, a + bytes - sizeof(Word), sizeof(Word));
      std::memcpy(words + 3, b + bytes - sizeof(Word), sizeof(Word));
      return ((words[0] ^ words[1]) | (words[2] ^ words[3])) != 0;
    };
    if (bytes >= 8 && bytes <= 16) return !differ(std::uint64_t{});
    if (bytes >= 4 && bytes < 8) return !differ(std::uint32_t{});
    return std::memcmp(a, b, bytes) == 0;
  }
  Status build(std::string_view raw, ReadingBatch& batch, TagSet& set);
  Status split_tags(std::string_view text, ReadingBatch& batch);

  TagSet* current_ = nullptr;
  const TagSet* built_last_ = nullptr;  // of those that are remembered
  std::deque<TagSet> sets_;  // the first `used_` are in use; the others keep their memory
  std::size_t used_ = 0;
  TagSet unremembered_;
  std::unordered_map<std::string_view, TagSet*> by_raw_;
  std::vector<Tag> tags_;
  std::string scratch_;
};

}  // namespace edgecase::wire
