#include "columnar/table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "wire/encoding.h"

namespace edgecase::columnar {
namespace {

constexpr std::string_view kArrowMagic = "ARROW1";
constexpr std::size_t kAlignment = 8;

// Numbers of Message.fbs, Schema.fbs and File.fbs.
constexpr std::int16_t kVersion5 = 4;
enum class Header : std::uint8_t { Schema = 1, DictionaryBatch = 2, RecordBatch = 3 };
enum class Type : std::uint8_t { Int = 2, Double = 3, Binary = 4, Utf8 = 5, Bool = 6, Time = 10 };

void pad(std::string& out) {
  out.append((kAlignment - out.size() % kAlignment) % kAlignment, '\0');
}

// A flatbuffer: tables, vectors and texts that tell of one another by distances. It is built from
// its end, so that what is told of is there already; the bytes lie here in reverse, and a place is
// its distance from the end.
class FlatBuffer {
 public:
  using Place = std::uint32_t;

  template <typename T>
  void push(T number) {
    align(sizeof(T), sizeof(T));
    put(number);
  }
  Place text(std::string_view value) {
    align(value.size() + 1 + sizeof(std::uint32_t), sizeof(std::uint32_t));
    reversed_.push_back('\0');
    reversed_.append(value.rbegin(), value.rend());
    put(static_cast<std::uint32_t>(value.size()));
    return here();
  }
  Place vector(const std::vector<Place>& places) {
    align((places.size() + 1) * sizeof(Place), sizeof(Place));
    for (auto each = places.rbegin(); each != places.rend(); ++each) distance(*each);
    put(static_cast<std::uint32_t>(places.size()));
    return here();
  }
  // A vector of structures of so many int64 each; `numbers` are all of them.
  Place vector(const std::vector<std::int64_t>& numbers, std::size_t of_each) {
    align(numbers.size() * sizeof(std::int64_t), sizeof(std::int64_t));
    for (auto each = numbers.rbegin(); each != numbers.rend(); ++each) put(*each);
    put(static_cast<std::uint32_t>(numbers.size() / of_each));
    return here();
  }

  // A table: begin(), field()s by their numbers, end().
  void begin() {
    fields_.clear();
    begin_ = here();
  }
  template <typename T>
  void field(std::size_t number, T value) {
    push(value);
    told(number);
  }
  void field_at(std::size_t number, Place place) {
    align(sizeof(Place), sizeof(Place));
    distance(place);
    told(number);
  }
  Place end() {
    push(std::int32_t{0});  // the distance to what tells where the fields are
    const Place table = here();
    for (auto each = fields_.rbegin(); each != fields_.rend(); ++each)
      push(static_cast<std::uint16_t>(*each == 0 ? 0 : table - *each));
    push(static_cast<std::uint16_t>(table - begin_));
    push(static_cast<std::uint16_t>((fields_.size() + 2) * sizeof(std::uint16_t)));
    auto bits = here() - table;
    for (std::size_t i = 0; i < sizeof(bits); ++i, bits >>= 8)
      reversed_[table - 1 - i] = static_cast<char>(bits);
    return table;
  }
  std::string finish(Place root) {
    align(sizeof(Place), kAlignment);
    distance(root);
    return {reversed_.rbegin(), reversed_.rend()};
  }

 private:
  Place here() const { return static_cast<Place>(reversed_.size()); }
  // Adds zeros until `bytes` more end where `alignment` wants it.
  void align(std::size_t bytes, std::size_t alignment) {
    while ((reversed_.size() + bytes) % alignment != 0) reversed_.push_back('\0');
  }
  template <typename T>
  void put(T number) {
    auto bits = static_cast<std::uint64_t>(number);
    for (std::size_t i = sizeof(T); i > 0; --i)
      reversed_.push_back(static_cast<char>(bits >> (8 * (i - 1))));
  }
  void distance(Place place) { put(here() + std::uint32_t{sizeof(Place)} - place); }
  void told(std::size_t number) {
    if (fields_.size() <= number) fields_.resize(number + 1);
    fields_[number] = here();
  }

  std::string reversed_;
  std::vector<Place> fields_;  // of the table at hand; 0: not told
  Place begin_ = 0;
};

using Place = FlatBuffer::Place;

Place append_int(FlatBuffer& flat, std::int32_t bits) {
  flat.begin();
  flat.field(0, bits);
  flat.field(1, true);
  return flat.end();
}

Place append_type(Kind kind, FlatBuffer& flat, Type& type) {
  switch (kind) {
    case Kind::Time: {
      type = Type::Time;
      const Place zone = flat.text("UTC");
      flat.begin();
      flat.field(0, std::int16_t{3});  // nanoseconds
      flat.field_at(1, zone);
      return flat.end();
    }
    case Kind::Int64: type = Type::Int; return append_int(flat, 64);
    case Kind::Double:
      type = Type::Double;
      flat.begin();
      flat.field(0, std::int16_t{2});  // of 64 bits
      return flat.end();
    case Kind::Bool: type = Type::Bool; break;
    case Kind::Bytes: type = Type::Binary; break;
    case Kind::Text:
    case Kind::Name: type = Type::Utf8; break;
  }
  flat.begin();
  return flat.end();
}

// `number` is also that of its dictionary.
Place append_field(const Column& column, std::int64_t number, FlatBuffer& flat) {
  const Place name = flat.text(column.name);
  const Place children = flat.vector(std::vector<Place>());
  Type type = Type::Utf8;
  const Place described = append_type(column.kind, flat, type);
  Place dictionary = 0;
  if (column.kind == Kind::Name) {
    const Place index = append_int(flat, 32);
    flat.begin();
    flat.field(0, number);
    flat.field_at(1, index);
    dictionary = flat.end();
  }
  flat.begin();
  flat.field_at(0, name);
  flat.field_at(3, described);
  if (dictionary != 0) flat.field_at(4, dictionary);
  flat.field_at(5, children);
  flat.field(1, column.is_optional);
  flat.field(2, static_cast<std::uint8_t>(type));
  return flat.end();
}

Place append_schema(const std::vector<Column>& columns, const Metadata& metadata,
                    FlatBuffer& flat) {
  std::vector<Place> fields, pairs;
  for (std::size_t i = 0; i < columns.size(); ++i)
    fields.push_back(append_field(columns[i], static_cast<std::int64_t>(i), flat));
  for (const auto& [key, value] : metadata) {
    const Place value_at = flat.text(value), key_at = flat.text(key);
    flat.begin();
    flat.field_at(0, key_at);
    flat.field_at(1, value_at);
    pairs.push_back(flat.end());
  }
  const Place all_fields = flat.vector(fields), all_pairs = flat.vector(pairs);
  flat.begin();
  flat.field_at(1, all_fields);
  flat.field_at(2, all_pairs);
  flat.field(0, std::int16_t{0});  // little-endian
  return flat.end();
}

std::string message(FlatBuffer& flat, Header kind, Place header, std::size_t body_bytes) {
  flat.begin();
  flat.field(3, static_cast<std::int64_t>(body_bytes));
  flat.field_at(2, header);
  flat.field(0, kVersion5);
  flat.field(1, static_cast<std::uint8_t>(kind));
  return flat.finish(flat.end());
}

// False: it would be no shorter.
bool append_packed(std::string_view bytes, std::string& out) {
  const std::size_t begin = out.size();
  append_little(static_cast<std::int64_t>(bytes.size()), out);
  if (wire::pack_once(wire::Coding::Zstd, bytes, out, bytes.size() - 1)) return true;
  out.resize(begin);
  return false;
}

// The buffers of a batch, and what its head says of them.
class Body {
 public:
  explicit Body(bool packs) : packs_(packs) {}

  void node(std::size_t rows, std::size_t nulls) {
    nodes_.push_back(static_cast<std::int64_t>(rows));
    nodes_.push_back(static_cast<std::int64_t>(nulls));
  }
  void buffer(std::string_view bytes) {
    const std::size_t begin = bytes_.size();
    constexpr std::size_t kPackedMinBytes = 64;
    if (bytes.size() < kPackedMinBytes || !packs_ || !append_packed(bytes, bytes_)) {
      if (packs_ && !bytes.empty()) append_little(std::int64_t{-1}, bytes_);
      bytes_.append(bytes);
    }
    buffers_.push_back(static_cast<std::int64_t>(begin));
    buffers_.push_back(static_cast<std::int64_t>(bytes_.size() - begin));
    pad(bytes_);
  }
  const std::string& bytes() const { return bytes_; }
  Place describe(std::size_t rows, FlatBuffer& flat) const {
    const Place buffers = flat.vector(buffers_, 2), nodes = flat.vector(nodes_, 2);
    Place packing = 0;
    if (packs_) {
      flat.begin();
      flat.field(0, std::int8_t{1});  // zstd
      packing = flat.end();
    }
    flat.begin();
    flat.field(0, static_cast<std::int64_t>(rows));
    flat.field_at(1, nodes);
    flat.field_at(2, buffers);
    if (packing != 0) flat.field_at(3, packing);
    return flat.end();
  }

 private:
  const bool packs_;
  std::string bytes_;
  std::vector<std::int64_t> nodes_, buffers_;
};

void set_bit(std::size_t at, std::string& bits) {
  bits[at / 8] = static_cast<char>(static_cast<unsigned char>(bits[at / 8]) | 1U << at % 8);
}

// The row of the value with this number.
std::size_t row_of(const Column& column, std::size_t value) {
  return column.is_optional ? column.rows[value] : value;
}

// 64 bits a row; zeros where there is no value.
template <typename T>
void append_wide(const Column& column, const std::vector<T>& values, std::size_t rows, Body& body) {
  std::vector<std::uint64_t> all(rows);
  for (std::size_t i = 0; i < values.size(); ++i)
    all[row_of(column, i)] = std::bit_cast<std::uint64_t>(values[i]);
  if constexpr (std::endian::native == std::endian::big) {
    for (std::uint64_t& each : all) each = __builtin_bswap64(each);
  }
  body.buffer({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(all[0])});
}

void append_texts(const Column& column, std::size_t rows, Body& body) {
  std::string ends;
  append_little(std::int32_t{0}, ends);
  std::size_t value = 0;
  std::uint32_t end = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const bool is_there = value < column.ends.size() && row_of(column, value) == row;
    if (is_there) end = column.ends[value++];
    append_little(end, ends);
  }
  body.buffer(ends);
  body.buffer(column.bytes);
}

void append_column(const Column& column, std::size_t rows, Body& body) {
  const std::size_t nulls = column.is_optional ? rows - column.rows.size() : 0;
  std::string there;
  if (nulls > 0) {
    there.assign((rows + 7) / 8, '\0');
    for (const std::uint32_t row : column.rows) set_bit(row, there);
  }
  body.node(rows, nulls);
  body.buffer(there);
  switch (column.kind) {
    case Kind::Time:
    case Kind::Int64: return append_wide(column, column.whole, rows, body);
    case Kind::Double: return append_wide(column, column.numbers, rows, body);
    case Kind::Bool: {
      std::string bits((rows + 7) / 8, '\0');
      for (std::size_t i = 0; i < column.whole.size(); ++i)
        if (column.whole[i] != 0) set_bit(row_of(column, i), bits);
      return body.buffer(bits);
    }
    case Kind::Text:
    case Kind::Bytes: return append_texts(column, rows, body);
    case Kind::Name: break;
  }
  std::string indices;
  for (const Column::Run& run : column.runs)
    for (std::uint32_t i = 0; i < run.rows; ++i) append_little(run.index, indices);
  body.buffer(indices);
}

}  // namespace

ArrowWriter::Block ArrowWriter::append_message(std::string_view head, std::string_view body,
                                               std::string& out) {
  const std::size_t begin = out.size();
  std::string padded(head);
  pad(padded);
  append_little(std::int32_t{-1}, out);
  append_little(static_cast<std::int32_t>(padded.size()), out);
  out.append(padded);
  const Block block{offset_bytes_, static_cast<std::int32_t>(out.size() - begin),
                    static_cast<std::int64_t>(body.size())};
  out.append(body);
  offset_bytes_ += static_cast<std::int64_t>(out.size() - begin);
  return block;
}

void ArrowWriter::begin(const std::vector<Column>& columns, const Metadata& metadata,
                        std::string& out) {
  for (const Column& column : columns)
    described_.push_back({column.name, column.kind, column.is_optional});
  metadata_ = metadata;
  std::string magic(kArrowMagic);
  pad(magic);
  out.append(magic);
  offset_bytes_ = static_cast<std::int64_t>(magic.size());
  FlatBuffer flat;
  const Place schema = append_schema(columns, metadata, flat);
  append_message(message(flat, Header::Schema, schema, 0), {}, out);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].kind != Kind::Name) continue;
    Column names{"", Kind::Text};
    for (const std::string_view name : columns[i].names) {
      names.bytes.append(name);
      names.ends.push_back(static_cast<std::uint32_t>(names.bytes.size()));
    }
    const std::size_t count = columns[i].names.size();
    Body body(false);
    append_column(names, count, body);
    FlatBuffer head;
    const Place data = body.describe(count, head);
    head.begin();
    head.field(0, static_cast<std::int64_t>(i));
    head.field_at(1, data);
    const Place batch = head.end();
    dictionaries_.push_back(append_message(
        message(head, Header::DictionaryBatch, batch, body.bytes().size()), body.bytes(), out));
  }
}

Status ArrowWriter::group(const std::vector<Column>& columns, std::uint32_t rows,
                          std::string& out) {
  if (batches_.size() * sizeof(Block) > kIndexMaxBytes)
    return limit_reached("more readings than one Arrow file lists here: ask for less of them");
  Body body(true);
  for (const Column& column : columns) append_column(column, rows, body);
  FlatBuffer flat;
  const Place batch = body.describe(rows, flat);
  batches_.push_back(append_message(message(flat, Header::RecordBatch, batch, body.bytes().size()),
                                    body.bytes(), out));
  return ok();
}

void ArrowWriter::end(std::string& out) {
  append_little(std::int32_t{-1}, out);  // behind the last message
  append_little(std::int32_t{0}, out);
  FlatBuffer flat;
  const auto blocks = [&](const std::vector<Block>& all) {
    std::vector<std::int64_t> numbers;
    for (const Block& each : all)
      numbers.insert(numbers.end(), {each.offset_bytes, each.head_bytes, each.body_bytes});
    return flat.vector(numbers, 3);
  };
  const Place batches = blocks(batches_), dictionaries = blocks(dictionaries_);
  const Place schema = append_schema(described_, metadata_, flat);
  flat.begin();
  flat.field_at(1, schema);
  flat.field_at(2, dictionaries);
  flat.field_at(3, batches);
  flat.field(0, kVersion5);
  const std::string footer = flat.finish(flat.end());
  out.append(footer);
  append_little(static_cast<std::int32_t>(footer.size()), out);
  out.append(kArrowMagic);
}

}  // namespace edgecase::columnar
