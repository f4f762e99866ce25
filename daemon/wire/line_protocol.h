// Influx line protocol to readings.
//
//   measurement[,tag=value...] field=value[,field=value...] [timestamp]
//
// One line is one instant; each field becomes a reading:
//   device  `DOMAIN.ENTITY_ID` of the tags `domain` and `entity_id` (Home Assistant), else the
//           value of the tag `device` (but of a system input of Telegraf, where that is a disk),
//           else of the tag `host`, else the measurement
//   sensor  measurement and the field's key, joined by `.`; a field named `value` is left out. Then
//           the tags that do not name the device, as `{key=value,...}` in the order of their keys.
//           `/` and control characters become `:`, what is too long is cut (names.h). A line whose
//           name by the rule of version 0.1 is stored goes on there (KnownSeries)
//   value   `1`, `1.5e3`: float64 · `1i`, `1u`: int64 · t T true True TRUE f F false False FALSE:
//           bool · `"..."`: text, in which `\"` and `\\` are escapes and line breaks are allowed
//
// `\` escapes a comma, a space and (not in the measurement) an equals sign; before anything else it
// is itself. Blank lines and lines that begin with `#` are skipped, a carriage return before the
// line feed too; where LineContexts::Followed, `# CONTEXT-DATABASE: NAMESPACE` names the namespace
// of the lines that follow, `# CONTEXT-WINDOW: 1m` says that they are windows of tiers
// (tiers.h) up to `# CONTEXT-WINDOW:`, and the statements of InfluxDB's own exports,
// `CREATE …` between `# DDL` and `# DML`, are passed over. A line is taken whole or not at all:
// what is wrong with it becomes a LineError, and decoding goes on with the next line.
//
// Use: while (decoder.next(batch)) { hand the batch over; batch.clear_readings(); }
// One thread. Readings borrow from the body and from the batch; where a name is equal to that of an
// earlier line of the same slice, its view has mostly the same address, also where it is equal to
// one of an earlier slice under the same ReadingBatch::text_id(). Most series of names that come
// again are numbered (ReadingBatch::numbering).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "edgecase/machine.h"
#include "edgecase/status.h"
#include "wire/names.h"
#include "wire/reading.h"

namespace edgecase::wire {

// Names in EdgeCase of "measurement,tag=value,..." and field keys of line protocol (LineNames), and
// the rules by which people name devices (LineRules). Mapping: line_protocol.h.
//
// A name is built once for every distinct text, and the sensors of devices that are of one kind,
// having all but the device's name in common, once for all of them.
//
// What is remembered lies in ReadingBatch::names and in nothing that was decoded, so that it serves
// one body after another of one namespace. The first sets have the names of their sensors written
// out; many more are remembered short, and their names are joined for each reading. What there is
// no room for is built each time it comes. Each series has a number (Reading::series_number).
//
// One thread. Views of what it returns last as long as the body and the batch, joined names until
// begin().

// Rules that say which device a line of line protocol belongs to, by its measurement and its tags:
// [[influx.rule]] of the configuration. Compiled once; LineNames asks for each new tag set.
// Immutable; any thread.

// A rule as it is written.
struct LineRule {
  std::string measurement = "*";  // a glob, as in selectors
  std::string device;             // a name, with keys of tags in braces: "{building}-{room}"
  int line = 0;                   // of the configuration file; 0: not from a file

  bool operator==(const LineRule&) const = default;
};

// Without escapes.
struct LineTag {
  std::string_view key;
  std::string_view value;
};

class CompiledLineRule {
 public:
  // InvalidArgument: "device: …", "measurement: …".
  static Result<CompiledLineRule> compile(const LineRule& rule);

  const LineRule& written() const { return written_; }
  // A line matches that has every tag of `device`. `tags` are ordered by key, 64 at most.
  bool matches(std::string_view measurement, std::span<const LineTag> tags) const;
  // For a line that matches: the device's name as the rule makes it, and a bit for each tag in it.
  std::uint64_t name(std::span<const LineTag> tags, std::string& device) const;
  // Whether the device's name is the value of one tag, and nothing else.
  bool is_one_tag() const { return parts_.size() == 1 && parts_.front().is_tag; }

 private:
  struct Part {
    std::string text;  // of a tag: its key
    bool is_tag = false;
  };

  LineRule written_;
  std::vector<Part> parts_;
};

class LineRules {
 public:
  LineRules() = default;
  // InvalidArgument: "influx.rule 2 (line 14): device: …".
  static Result<LineRules> compile(std::span<const LineRule> rules);

  // The first that matches; null: none.
  const CompiledLineRule* find(std::string_view measurement, std::span<const LineTag> tags) const;
  // Rules count from 1.
  std::size_t number_of(const CompiledLineRule& rule) const {
    return static_cast<std::size_t>(&rule - rules_.data()) + 1;
  }
  std::span<const CompiledLineRule> all() const { return rules_; }

 private:
  std::vector<CompiledLineRule> rules_;
};

inline constexpr std::size_t kTagsPerLineMax = 64;
// What names take at once, with all by which they are found. A set of nine tags takes about 500
// bytes short, 2 KiB where the names of seven fields are written out.
inline constexpr std::size_t kRememberedBytesMax = 6u << 20;
// Sets beyond this, or beyond a quarter of what there is room for, are short.
inline constexpr std::size_t kWrittenOutBytesMax = 2u << 20;
// Lines of sets that are not remembered, after which those that are give way: so many, or eight for
// each of these.
inline constexpr std::size_t kStrangersMax = 8'192;
// Fields of one kind of devices whose names are remembered, and of sets that are short.
inline constexpr std::size_t kRememberedFieldsMax = 256;
inline constexpr std::size_t kShortFieldsMax = 64;
// Measurements of sets that are short: they are looked through.
inline constexpr std::size_t kStemsMax = 64;
// Numbers are less than this; series beyond them have none.
inline constexpr std::uint32_t kSeriesNumbersMax = 128u << 10;

// What is stored already. By the rule of version 0.1 the tags' values stood between measurement and
// field (`cpu.cpu0.usage_idle`): a line whose name by that rule is there goes on there.
class KnownSeries {
 public:
  virtual ~KnownSeries() = default;
  virtual bool has_device(std::string_view namespace_name, std::string_view device) const = 0;
  // One of that name whose identity is not known, or is this one.
  virtual bool has_series(std::string_view namespace_name, std::string_view device,
                          std::string_view sensor, const SeriesIdentity& identity) const = 0;
  // A series of the device whose name is `prefix`, or begins with it and a `.`, and does not say
  // its identity.
  virtual bool has_series_of(std::string_view namespace_name, std::string_view device,
                             std::string_view prefix) const = 0;
};

class LineNames {
 public:
  // Asked when a name is met that is not remembered; null: nothing is stored. It outlives what is
  // decoded.
  void look_in(const KnownSeries* known) { known_ = known; }
  // Which device a line belongs to, before what is so by itself; null: no rules. What is remembered
  // is by the rules that were obeyed when it was built. They outlive what is decoded.
  void obey(const LineRules* rules) { rules_ = rules; }
  // What names may take from the next begin() on.
  void set_room(std::size_t bytes) { room_bytes_ = std::min(bytes, kRememberedBytesMax); }
  // Before lines of a namespace are decoded into `batch`. Forgets everything that is of another
  // one, or was in a batch that does not hold it any more.
  void begin(std::string_view namespace_name, ReadingBatch& batch);
  // ReadingBatch::numbering, since begin().
  std::uint64_t numbering() const { return numbering_; }

  // Makes `raw` (escapes kept) the tag set that the others speak of, before its first field.
  Status select(std::string_view raw, ReadingBatch& batch);
  std::string_view device() const { return current_->device; }

  // True when what begins at `position` is the key, with its `=`, of the field that came next in
  // the lines before: then the reading is of its sensor, and `position` behind it.
  bool expect(const char*& position, const char* end, Reading& reading) {
    if (field_ == fields_end_) return false;
    const std::size_t bytes = field_->raw.size();
    if (static_cast<std::size_t>(end - position) <= bytes || position[bytes] != '=' ||
        !is_same(position, field_->raw.data(), bytes)) {
      return false;
    }
    if (current_->stems != nullptr && !is_joined(field_)) return false;
    position += bytes + 1;
    take(reading);
    return true;
  }
  // Makes the reading one of the sensor of field key `raw` (escapes kept).
  Status name(std::string_view raw, ReadingBatch& batch, Reading& reading);

  // About, without what lies in the batch.
  std::size_t memory_bytes() const;
  // Tag sets that were built, remembered or not: tests count them.
  std::uint64_t built() const { return built_; }

 private:
  struct Field {
    std::string_view raw;
    std::string_view sensor;
    const SeriesIdentity* identity = nullptr;
  };
  struct Kind {
    std::string_view key;     // by which it is found; those below view it where they can
    std::string_view prefix;  // of the sensors, before the field
    std::string_view suffix;  // and behind it
    // A device that may have series by the rule of 0.1; else empty.
    std::string_view device;
    std::string_view old_prefix;
    // The identity that the names of all its series tell; null: they do not.
    const SeriesIdentity* plain = nullptr;
    std::string_view measurement, device_keys;
    // The tags that do not name the device: how many, and they as in an identity's bytes, where the
    // suffix does not tell them.
    std::size_t tags = 0;
    std::string_view tag_bytes;
    std::vector<Field> fields;
  };
  // Fields of all short sets of one measurement, whose devices are named by the same tags. The name
  // of a sensor is Field::sensor and the tags of the set.
  struct Stems {
    std::string_view prefix, device_keys;
    const SeriesIdentity* plain = nullptr;
    std::vector<Field> fields;
  };
  struct TagSet {
    std::string_view raw;
    std::string_view device;
    Kind* kind = nullptr;            // of one that is short: null
    TagSet* next = nullptr;          // which came after it last; null: not known
    std::uint32_t first_number = 0;  // of its fields
    std::uint32_t numbers = 0;       // so many of them have one
    Stems* stems = nullptr;          // of one that is short
    std::string_view tags;           // `key=value,...` as in its sensors' names
    std::uint64_t joined = 0;        // a bit for each field of `stems` whose name is made like that
    bool may_be_old = false;         // of one that is short: its name by 0.1 is asked for
  };
  // Where a set is found by its raw text: in the first free place from that of its hash on, of as
  // many as a power of two, half of which are taken at most.
  struct Place {
    std::uint64_t hash = 0;
    TagSet* set = nullptr;  // null: free
  };
  using Tag = LineTag;
  static constexpr std::string_view kKeySpecials = ",= ";  // of tags and fields

  // Compares texts as short as keys are, which is less work than a call.
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
  // The field at field_, which the next one follows.
  void take(Reading& reading) {
    reading.sensor = current_->stems == nullptr ? field_->sensor : join(field_->sensor);
    reading.identity = field_->identity;
    const auto index = static_cast<std::uint32_t>(field_ - fields_begin_);
    if (index >= current_->numbers) give_numbers();
    reading.series_number = index < current_->numbers ? current_->first_number + index : 0;
    ++field_;
  }
  bool is_joined(const Field* field) const {
    return (current_->joined >> (field - fields_begin_) & 1) != 0;
  }
  std::string_view join(std::string_view stem);
  void forget();
  std::size_t bytes_of(const ReadingBatch& batch) const {
    return batch.names.memory_bytes() + memory_bytes();
  }
  bool has_room(const ReadingBatch& batch) const { return bytes_of(batch) < room_bytes_; }
  std::size_t find(std::string_view text, char stop, std::size_t from) const;
  std::string_view unescape(std::string_view raw, std::string_view specials,
                            ReadingBatch& batch) const;
  Place& place_of(std::string_view raw, std::uint64_t hash);
  void add_place(TagSet& set, std::uint64_t hash);
  void enter(TagSet& set);
  void give_numbers();
  void look_at_field(std::size_t index);
  std::size_t written_out_bytes() const { return std::min(kWrittenOutBytesMax, room_bytes_ / 4); }
  Stems* stems_of_built(ReadingBatch& batch);
  void write_out(ReadingBatch& batch);
  void note_joined(std::string_view raw, const Reading& reading, ReadingBatch& batch);
  Status build(std::string_view raw, ReadingBatch& batch, TagSet& set);
  Status split_tags(std::string_view text, ReadingBatch& batch);
  bool names_device(const Tag& each) const { return (naming_ >> (&each - tags_.data()) & 1) != 0; }
  void choose_device(std::string_view measurement);
  bool choose_by_rule(std::string_view measurement);
  void choose_by_tags(std::string_view measurement);
  const Tag* tag(std::string_view key) const;
  void describe(const TagSet& set);
  static const SeriesIdentity* identify(const Kind& kind, std::string_view field, TextStore& store);
  void set_old_prefix(std::string_view measurement, const Tag* device);
  void fill(Kind& kind, std::string_view device, TextStore& store) const;
  TagSet& remember(const TagSet& built, std::uint64_t hash, ReadingBatch& batch);

  std::size_t room_bytes_ = kRememberedBytesMax;
  std::string namespace_name_;
  std::uint64_t names_id_ = 0;  // of the store that holds what is remembered
  std::uint64_t numbering_ = 0;
  std::uint32_t next_number_ = 1;

  TagSet* current_ = nullptr;
  // The fields of the current set's kind, or its stems.
  const Field* fields_begin_ = nullptr;
  const Field* fields_end_ = nullptr;
  const Field* field_ = nullptr;  // which is expected next

  std::deque<TagSet> sets_;
  std::deque<Kind> kinds_;
  std::deque<Stems> stems_;
  TextStore* joined_ = nullptr;  // the batch's
  KeyedHash hash_;               // senders choose tags
  std::vector<Place> by_raw_;
  std::unordered_map<std::string_view, Kind*, KeyedHash> by_prefix_;
  std::size_t fields_ = 0;     // of all kinds and stems, those that there is room for too
  std::size_t strangers_ = 0;  // lines of sets that are not remembered, and fields
  std::uint64_t built_ = 0;
  TagSet unremembered_;
  Kind unremembered_kind_;
  const TagSet* written_out_ = nullptr;  // whose kind that is, of those that are short
  const KnownSeries* known_ = nullptr;
  const LineRules* rules_ = nullptr;
  // The set that is being built.
  std::vector<Tag> tags_;
  std::string device_, prefix_, suffix_, old_prefix_, key_;
  std::string_view device_keys_;
  std::size_t key_ends_[3] = {};  // of prefix, suffix and device_keys_ in key_
  bool has_escapes_ = false;      // in its raw text
  std::string tag_bytes_, entity_keys_;
  std::size_t other_tags_ = 0;      // that do not name the device
  bool is_plain_ = false;           // names tell the identity
  bool is_kind_of_device_ = false;  // its kind is its own
  bool is_device_made_ = false;  // device_ is the name; else device_tag_ has it, or the measurement
  // The tags that name the device: a bit for each of tags_. One that is its name alone, or two
  // that a dot joins, also as such.
  std::uint64_t naming_ = 0;
  const Tag* named_by_[2] = {};
  bool is_by_rule_ = false;
  std::string scratch_;
};

inline constexpr std::size_t kFieldsPerLineMax = 8'192;
// A slice ends after the line that reaches this many readings, so that a body of any size takes
// bounded memory: a reading is many times larger than the shortest field. So many
// stay in a processor's own cache for all that is done with them until they are stored.
inline constexpr std::size_t kReadingsPerSlice = 2'048;

enum class InfluxVersion : unsigned char { V1, V2 };

// Nanoseconds in one unit. V1: "" n ns u us µ ms s m h. V2: "" ns us ms s. InvalidArgument names
// the ones there are.
Result<std::int64_t> parse_precision_ns(std::string_view text, InfluxVersion version);

// A comment in files (reading_format.h); what comes over HTTP says where it belongs by itself.
inline constexpr std::string_view kLineContext = "# CONTEXT-DATABASE:";
inline constexpr std::string_view kLineWindow = "# CONTEXT-WINDOW:";
enum class LineContexts : unsigned char { PassedOver, Followed };

struct LineProtocolOptions {
  std::string_view namespace_name = kDefaultNamespace;  // must outlive the readings
  std::int64_t unit_ns = 1;                             // of timestamps
  std::size_t error_limit = 20;                         // bad lines that are named
  LineContexts contexts = LineContexts::PassedOver;
  const LineRules* rules = nullptr;  // outlives the decoder; names given to it have their own
};

class LineProtocolDecoder {
 public:
  // `body` must outlive the decoder and every reading. `names`, which must outlive the decoder,
  // knows names from other bodies that were decoded into the same batch, and remembers those of
  // this one.
  LineProtocolDecoder(std::string_view body, const LineProtocolOptions& options, LineNames& names);
  LineProtocolDecoder(std::string_view body, const LineProtocolOptions& options);
  LineProtocolDecoder(const LineProtocolDecoder&) = delete;
  LineProtocolDecoder& operator=(const LineProtocolDecoder&) = delete;

  // Adds the next slice to `batch`, which must be empty. False: the body is used up and `batch` is
  // empty.
  bool next(ReadingBatch& batch);

  // Bytes of the body that are still to be decoded.
  std::size_t left() const { return static_cast<std::size_t>(end_ - position_); }
  std::uint64_t good_lines() const { return good_lines_; }
  std::uint64_t bad_lines() const { return bad_lines_; }
  // The first `error_limit` bad lines.
  const std::vector<LineError>& errors() const { return errors_; }

 private:
  bool decode_line(ReadingBatch& batch);  // false: bad, and why_ says why
  bool decode_names(ReadingBatch& batch);
  bool decode_fields(ReadingBatch& batch);
  bool decode_field_key(ReadingBatch& batch, Reading& reading);
  bool join_windows(ReadingBatch& batch, std::size_t first);
  bool decode_value(ReadingBatch& batch, Value& value);
  bool decode_number(Value& value);
  bool decode_integer(const char* begin, Value& value);
  bool decode_text(ReadingBatch& batch, Value& value);
  bool decode_bool(Value& value);
  bool decode_timestamp(std::int64_t& time_ns);
  void skip_to_content();
  std::string_view rest_of_line();
  void take_comment(std::string_view line);
  void skip_bad_line(const char* begin);
  void skip_blanks();
  bool at_line_end() const;
  bool fail(std::string why);

  const char* position_;
  const char* const end_;
  const LineProtocolOptions options_;
  std::string_view namespace_name_;       // of the line at hand
  const bool ascii_;                      // the whole body: no text needs a UTF-8 check
  std::unique_ptr<LineNames> own_names_;  // null: somebody else's
  LineNames& names_;
  std::string scratch_;

  std::uint64_t line_ = 1;
  std::string why_;
  std::uint64_t good_lines_ = 0;
  std::uint64_t bad_lines_ = 0;
  std::vector<LineError> errors_;
  bool in_statements_ = false;  // behind "# DDL"
  // Below kLineWindow: of windows, the columns of the line at hand.
  std::int64_t window_ns_ = 0;  // 0: lines are readings
  std::vector<std::string_view> columns_;
};

}  // namespace edgecase::wire
