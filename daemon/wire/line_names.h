// What "measurement,tag=value,..." and field keys of line protocol are called in EdgeCase: device
// and sensor names, built once for every distinct text of a slice. Mapping: line_protocol.h.
// One thread. Views of what it returns last as long as the body and the batch.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "edgecase/result.h"
#include "wire/reading.h"

namespace edgecase::wire {

inline constexpr std::size_t kTagsPerLineMax = 64;
// Distinct tag sets of one slice whose names are remembered; further ones are built each time.
// Bounds memory, and the harm that crafted hash collisions could do.
inline constexpr std::size_t kRememberedTagSetsMax = 1'024;
// Fields of one tag set whose names are remembered.
inline constexpr std::size_t kRememberedFieldsMax = 256;

class LineNames {
 public:
  // Forgets everything: before each slice, as remembered names lie in the batch.
  void reset();

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
        std::string_view(position, key_bytes) != field.raw) {
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
    std::string_view prefix;  // of the sensor
    std::vector<Field> fields;
  };
  struct Tag {
    std::string_view key;
    std::string_view value;
  };

  Status build(std::string_view raw, ReadingBatch& batch, TagSet& set);
  Status split_tags(std::string_view text, ReadingBatch& batch);

  TagSet* current_ = nullptr;
  std::deque<TagSet> sets_;  // the first `used_` are in use; the others keep their memory
  std::size_t used_ = 0;
  TagSet unremembered_;
  std::unordered_map<std::string_view, TagSet*> by_raw_;
  std::vector<Tag> tags_;
  std::string scratch_;
};

}  // namespace edgecase::wire
