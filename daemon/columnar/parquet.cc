#include "columnar/table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "wire/contract.h"
#include "wire/encoding.h"

namespace edgecase::columnar {
namespace {

constexpr std::string_view kParquetMagic = "PAR1";
constexpr std::size_t kStatisticMaxBytes = 64;

// Numbers of parquet.thrift.
enum class Physical : std::uint8_t { Boolean = 0, Int64 = 2, Double = 5, ByteArray = 6 };
enum class Encoding : std::uint8_t {
  Plain = 0,
  Rle = 3,
  DeltaBinaryPacked = 5,
  RleDictionary = 8,
  ByteStreamSplit = 9
};
enum class Codec : std::uint8_t { Uncompressed = 0, Zstd = 6 };
enum class Page : std::uint8_t { Data = 0, Dictionary = 2 };

// Structures of parquet.thrift in Thrift's compact protocol: a field is the step from the number of
// the one before, its type, and its value; a structure ends in a zero.
class Thrift {
 public:
  explicit Thrift(std::string& out) : out_(out) {}

  void begin() { last_.push_back(0); }
  void end() {
    out_.push_back('\0');
    last_.pop_back();
  }
  void begin(int field) {
    head(field, 12);
    begin();
  }
  void boolean(int field, bool value) { head(field, value ? 1 : 2); }
  void int32(int field, std::int64_t number) { whole(field, 5, number); }
  void int64(int field, std::int64_t number) { whole(field, 6, number); }
  template <typename Enum>
  void choice(int field, Enum value) {
    int32(field, static_cast<std::int64_t>(value));
  }
  void text(int field, std::string_view value) {
    head(field, 8);
    element(value);
  }
  void element(std::string_view value) {
    append_varint(value.size(), out_);
    out_.append(value);
  }
  void element(std::int64_t number) { append_varint(zigzag(number), out_); }
  // Its elements follow; `type` is that of each: 5 int32, 8 text, 12 structure.
  void list(int field, std::uint8_t type, std::size_t count) {
    head(field, 9);
    constexpr std::size_t kShortMax = 14;
    out_.push_back(static_cast<char>((std::min(count, kShortMax + 1) << 4) | type));
    if (count > kShortMax) append_varint(count, out_);
  }

 private:
  void head(int field, std::uint8_t type) {
    const int step = field - last_.back();
    out_.push_back(static_cast<char>((step << 4) | type));
    last_.back() = field;
  }
  void whole(int field, std::uint8_t type, std::int64_t number) {
    head(field, type);
    element(number);
  }

  std::string& out_;
  std::vector<int> last_;
};

// What a column of a group becomes, before it is packed.
struct Chunk {
  std::string dictionary;  // empty: it has none
  std::size_t dictionary_values = 0;
  std::string data;
  Encoding encoding = Encoding::Plain;
  std::optional<std::pair<std::string, std::string>> span;  // the least and the greatest
};

Physical physical_of(Kind kind) {
  switch (kind) {
    case Kind::Time:
    case Kind::Int64: return Physical::Int64;
    case Kind::Double: return Physical::Double;
    case Kind::Bool: return Physical::Boolean;
    case Kind::Text:
    case Kind::Bytes:
    case Kind::Name: break;
  }
  return Physical::ByteArray;
}

void append_plain(std::string_view text, std::string& out) {
  append_little(static_cast<std::uint32_t>(text.size()), out);
  out.append(text);
}

// Which rows have a value.
void append_presence(const Column& column, std::uint32_t rows, std::string& out) {
  std::vector<std::uint32_t> present(rows, column.rows.size() == rows ? 1 : 0);
  if (column.rows.size() < rows) {
    for (const std::uint32_t row : column.rows) present[row] = 1;
  }
  std::string levels;
  append_hybrid(present, 1, levels);
  append_plain(levels, out);
}

void append_indices(const std::vector<std::uint32_t>& indices, std::size_t values,
                    std::string& out) {
  const unsigned width = values < 2 ? 0 : width_of(values - 1);
  out.push_back(static_cast<char>(width));
  append_hybrid(indices, width, out);
}

void encode_names(const Column& column, Chunk& chunk) {
  chunk.encoding = Encoding::RleDictionary;
  std::map<std::uint32_t, std::uint32_t> local;  // those that the group has
  std::vector<std::uint32_t> indices;
  std::string_view least, greatest;
  for (const Column::Run& run : column.runs) {
    const auto [found, is_new] = local.emplace(run.index, static_cast<std::uint32_t>(local.size()));
    indices.insert(indices.end(), run.rows, found->second);
    if (!is_new) continue;
    const std::string_view name = column.names[run.index];
    append_plain(name, chunk.dictionary);
    if (local.size() == 1 || name < least) least = name;
    if (local.size() == 1 || name > greatest) greatest = name;
  }
  chunk.dictionary_values = local.size();
  append_indices(indices, local.size(), chunk.data);
  if (least.size() <= kStatisticMaxBytes && greatest.size() <= kStatisticMaxBytes) {
    chunk.span = {std::string(least), std::string(greatest)};
  }
}

// The places of few doubles in a dictionary, by their bits; none where there are more.
class FewDoubles {
 public:
  static constexpr std::size_t kMax = 4'096;

  bool add(double number, std::vector<std::uint32_t>& indices) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    std::size_t at = (bits * 0x9e3779b97f4a7c15) >> (64 - kSlotBits);
    while (slots_[at] != 0 && values_[slots_[at] - 1] != bits) at = (at + 1) % slots_.size();
    if (slots_[at] == 0) {
      if (values_.size() == kMax) return false;
      values_.push_back(bits);
      slots_[at] = static_cast<std::uint16_t>(values_.size());
    }
    indices.push_back(slots_[at] - 1U);
    return true;
  }
  const std::vector<std::uint64_t>& values() const { return values_; }

 private:
  static constexpr unsigned kSlotBits = 14;
  std::vector<std::uint64_t> values_;
  std::vector<std::uint16_t> slots_ = std::vector<std::uint16_t>(std::size_t{1} << kSlotBits);
};

bool encode_few_doubles(const std::vector<double>& numbers, Chunk& chunk) {
  FewDoubles few;
  std::vector<std::uint32_t> indices;
  indices.reserve(numbers.size());
  for (const double number : numbers) {
    if (!few.add(number, indices)) return false;
  }
  // A dictionary that is used little makes it longer.
  if (few.values().size() * 4 > numbers.size()) return false;
  for (const std::uint64_t bits : few.values()) append_little(bits, chunk.dictionary);
  chunk.dictionary_values = few.values().size();
  append_indices(indices, few.values().size(), chunk.data);
  chunk.encoding = Encoding::RleDictionary;
  return true;
}

// First the lowest byte of each, then the next of each, and so on: alike ones stand together.
void append_split(const std::vector<double>& numbers, std::string& out) {
  const std::size_t begin = out.size();
  out.resize(begin + numbers.size() * sizeof(double));
  char* const to = out.data() + begin;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    auto bits = std::bit_cast<std::uint64_t>(numbers[i]);
    for (std::size_t k = 0; k < sizeof(double); ++k, bits >>= 8)
      to[k * numbers.size() + i] = static_cast<char>(bits);
  }
}

void encode_whole(const Column& column, Chunk& chunk) {
  chunk.encoding = Encoding::DeltaBinaryPacked;
  append_delta(column.whole, chunk.data);
  if (column.kind != Kind::Time) return;
  const auto [least, greatest] = std::minmax_element(column.whole.begin(), column.whole.end());
  chunk.span.emplace();
  append_little(*least, chunk.span->first);
  append_little(*greatest, chunk.span->second);
}

void encode_values(const Column& column, Chunk& chunk) {
  switch (column.kind) {
    case Kind::Name: return encode_names(column, chunk);
    case Kind::Time:
    case Kind::Int64:
      if (!column.whole.empty()) encode_whole(column, chunk);
      return;
    case Kind::Double:
      if (column.numbers.empty() || encode_few_doubles(column.numbers, chunk)) return;
      chunk.encoding = Encoding::ByteStreamSplit;
      return append_split(column.numbers, chunk.data);
    case Kind::Bool: {
      BitPacker packer(chunk.data);
      for (const std::int64_t each : column.whole) packer.put(static_cast<std::uint64_t>(each), 1);
      return packer.finish();
    }
    case Kind::Text:
    case Kind::Bytes: break;
  }
  std::size_t begin = 0;
  for (const std::uint32_t end : column.ends) {
    append_plain(std::string_view(column.bytes).substr(begin, end - begin), chunk.data);
    begin = end;
  }
}

void append_page(Page page, const std::string& bytes, std::size_t whole_bytes, std::size_t values,
                 Encoding encoding, std::string& out) {
  Thrift thrift(out);
  thrift.begin();
  thrift.choice(1, page);
  thrift.int32(2, static_cast<std::int64_t>(whole_bytes));
  thrift.int32(3, static_cast<std::int64_t>(bytes.size()));
  thrift.begin(page == Page::Data ? 5 : 7);
  thrift.int32(1, static_cast<std::int64_t>(values));
  thrift.choice(2, encoding);
  if (page == Page::Data) {
    thrift.choice(3, Encoding::Rle);
    thrift.choice(4, Encoding::Rle);
  }
  thrift.end();
  thrift.end();
  out.append(bytes);
}

// Writes the chunk of a column at `offset_bytes` of the file, and what the footer says of it.
std::uint64_t append_chunk(const Column& column, std::uint32_t rows, std::uint64_t offset_bytes,
                           std::string& footer, std::string& out) {
  Chunk chunk;
  if (column.is_optional) append_presence(column, rows, chunk.data);
  encode_values(column, chunk);
  const bool has_dictionary = chunk.encoding == Encoding::RleDictionary;

  std::string dictionary, data;
  const std::size_t raw_bytes = chunk.dictionary.size() + chunk.data.size();
  constexpr std::size_t kPackedMinBytes = 128;
  const auto pack = [](const std::string& bytes, std::string& to) {
    return wire::pack_once(wire::Coding::Zstd, bytes, to, bytes.size());
  };
  const bool is_packed = raw_bytes >= kPackedMinBytes && pack(chunk.data, data) &&
                         (!has_dictionary || pack(chunk.dictionary, dictionary)) &&
                         dictionary.size() + data.size() < raw_bytes - raw_bytes / 10;
  const std::size_t dictionary_bytes = chunk.dictionary.size(), data_bytes = chunk.data.size();
  if (!is_packed) {
    dictionary = std::move(chunk.dictionary);
    data = std::move(chunk.data);
  }
  const std::size_t begin = out.size();
  if (has_dictionary) {
    append_page(Page::Dictionary, dictionary, dictionary_bytes, chunk.dictionary_values,
                Encoding::Plain, out);
  }
  const std::size_t data_at = out.size();
  append_page(Page::Data, data, data_bytes, rows, chunk.encoding, out);
  const std::size_t written = out.size() - begin;
  const std::size_t whole = written - dictionary.size() - data.size() + raw_bytes;
  const auto data_offset = static_cast<std::int64_t>(offset_bytes + (data_at - begin));

  Thrift thrift(footer);
  thrift.begin();
  thrift.int64(2, 0);
  thrift.begin(3);
  thrift.choice(1, physical_of(column.kind));
  thrift.list(2, 5, has_dictionary ? 3 : 2);
  thrift.element(static_cast<std::int64_t>(Encoding::Rle));
  thrift.element(static_cast<std::int64_t>(chunk.encoding));
  if (has_dictionary) thrift.element(static_cast<std::int64_t>(Encoding::Plain));
  thrift.list(3, 8, 1);
  thrift.element(std::string_view(column.name));
  thrift.choice(4, is_packed ? Codec::Zstd : Codec::Uncompressed);
  thrift.int64(5, rows);
  thrift.int64(6, static_cast<std::int64_t>(whole));
  thrift.int64(7, static_cast<std::int64_t>(written));
  thrift.int64(9, data_offset);
  if (has_dictionary) thrift.int64(11, static_cast<std::int64_t>(offset_bytes));
  thrift.begin(12);
  const std::size_t nulls = column.is_optional ? rows - column.rows.size() : 0;
  thrift.int64(3, static_cast<std::int64_t>(nulls));
  if (chunk.span) {
    thrift.text(5, chunk.span->second);
    thrift.text(6, chunk.span->first);
  }
  thrift.end();
  thrift.end();
  thrift.end();
  return whole;
}

void append_schema_element(const Column& column, std::string& out) {
  Thrift thrift(out);
  thrift.begin();
  thrift.choice(1, physical_of(column.kind));
  thrift.int32(3, column.is_optional ? 1 : 0);
  thrift.text(4, column.name);
  const bool is_text = column.kind == Kind::Text || column.kind == Kind::Name;
  if (is_text) thrift.int32(6, 0);  // UTF8, for older readers
  if (is_text || column.kind == Kind::Time) {
    thrift.begin(10);
    thrift.begin(is_text ? 1 : 8);
    if (column.kind == Kind::Time) {
      thrift.boolean(1, true);  // an instant, not what some clock shows
      thrift.begin(2);
      thrift.begin(3);  // nanoseconds
      thrift.end();
      thrift.end();
    }
    thrift.end();
    thrift.end();
  }
  thrift.end();
}

}  // namespace

void ParquetWriter::begin(const std::vector<Column>& columns, const Metadata& metadata,
                          std::string& out) {
  Thrift schema(schema_);
  schema.begin();
  schema.text(4, "readings");
  schema.int32(5, static_cast<std::int64_t>(columns.size()));
  schema.end();
  for (const Column& column : columns) append_schema_element(column, schema_);
  schema_elements_ = columns.size() + 1;
  for (const auto& [key, value] : metadata) {
    Thrift pair(metadata_);
    pair.begin();
    pair.text(1, key);
    pair.text(2, value);
    pair.end();
  }
  metadata_pairs_ = metadata.size();
  out.append(kParquetMagic);
  offset_bytes_ = kParquetMagic.size();
}

Status ParquetWriter::group(const std::vector<Column>& columns, std::uint32_t rows,
                            std::string& out) {
  if (groups_.size() > kIndexMaxBytes) {
    return limit_reached(
        "more readings than one Parquet file lists here: ask for less of them, "
        "or export into a directory, a file a series");
  }
  Thrift thrift(groups_);
  thrift.begin();
  thrift.list(1, 12, columns.size());
  const std::size_t begin = out.size();
  std::uint64_t whole_bytes = 0;
  for (const Column& column : columns) {
    whole_bytes += append_chunk(column, rows, offset_bytes_ + (out.size() - begin), groups_, out);
  }
  thrift.int64(2, static_cast<std::int64_t>(whole_bytes));
  thrift.int64(3, rows);
  thrift.int64(5, static_cast<std::int64_t>(offset_bytes_));
  thrift.int64(6, static_cast<std::int64_t>(out.size() - begin));
  thrift.end();
  offset_bytes_ += out.size() - begin;
  rows_ += rows;
  ++group_count_;
  return ok();
}

void ParquetWriter::end(std::string& out) {
  const std::size_t begin = out.size();
  Thrift thrift(out);
  thrift.begin();
  thrift.int32(1, 2);
  thrift.list(2, 12, schema_elements_);
  out.append(schema_);
  thrift.int64(3, static_cast<std::int64_t>(rows_));
  thrift.list(4, 12, group_count_);
  out.append(groups_);
  thrift.list(5, 12, metadata_pairs_);
  out.append(metadata_);
  thrift.text(6, "edgecase version " + std::string(wire::version()) + " (build 0)");
  // Least and greatest are by the order of each type.
  thrift.list(7, 12, schema_elements_ - 1);
  for (std::size_t i = 1; i < schema_elements_; ++i) {
    thrift.begin();
    thrift.begin(1);
    thrift.end();
    thrift.end();
  }
  thrift.end();
  append_little(static_cast<std::uint32_t>(out.size() - begin), out);
  out.append(kParquetMagic);
}

}  // namespace edgecase::columnar
