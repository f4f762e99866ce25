#include "columnar/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "wire/reading.h"
#include "wire/tiers.h"
#include "wire/time_text.h"

namespace edgecase::columnar {
namespace {

enum : std::size_t {
  kNamespace,
  kDevice,
  kSensor,
  kTime,
  kValue,
  kType,
  kInt,
  kBool,
  kText,
  kBytes,
  kContentType,
  kWindow,
  kCount,
  kMin  // then max, sum, mean, first, last
};
constexpr std::uint32_t kWindowType = 5;  // behind those of values

}  // namespace

std::uint32_t Column::index_of(std::string_view text) {
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  const auto index = static_cast<std::uint32_t>(names.size());
  names.emplace_back(known.emplace(text, index).first->first);
  return index;
}

void Column::add_name(std::uint32_t index, std::uint32_t count) {
  if (!runs.empty() && runs.back().index == index) {
    runs.back().rows += count;
  } else {
    runs.push_back({index, count});
  }
}

void Column::add_text(std::uint32_t row, std::string_view text) {
  rows.push_back(row);
  bytes.append(text);
  ends.push_back(static_cast<std::uint32_t>(bytes.size()));
}

void Column::forget_names() {
  names.clear();
  known.clear();
}

ReadingTable::ReadingTable(WindowColumns windows)
    : columns_({{"namespace", Kind::Name},
                {"device", Kind::Name},
                {"sensor", Kind::Name},
                {"time", Kind::Time},
                {"value", Kind::Double, true},
                {"type", Kind::Name},
                {"value_int", Kind::Int64, true},
                {"value_bool", Kind::Bool, true},
                {"value_text", Kind::Text, true},
                {"value_bytes", Kind::Bytes, true},
                {"content_type", Kind::Text, true}}) {
  for (const auto type : {wire::ValueType::Float64, wire::ValueType::Int64, wire::ValueType::Bool,
                          wire::ValueType::Text, wire::ValueType::Bytes}) {
    columns_[kType].index_of(wire::value_type_name(type));
  }
  if (windows == WindowColumns::NotTold) return;
  columns_[kType].index_of("window");
  columns_.push_back({"window", Kind::Text, true});
  columns_.push_back({"count", Kind::Int64, true});
  for (const char* name : {"min", "max", "sum", "mean", "first", "last"})
    columns_.push_back({name, Kind::Double, true});
}

void ReadingTable::know(std::string_view namespace_name, std::string_view device,
                        std::string_view sensor) {
  keeps_names_ = true;
  const auto know = [this](Column& column, std::string_view name) {
    const std::size_t before = column.names.size();
    column.index_of(name);
    if (column.names.size() > before) known_bytes_ += name.size();
  };
  know(columns_[kNamespace], namespace_name);
  know(columns_[kDevice], device);
  know(columns_[kSensor], sensor);
}

// Readings of one series follow one another.
void ReadingTable::find_series(const wire::Reading& reading) {
  if (has_series_ && columns_[kSensor].names[sensor_] == reading.sensor &&
      columns_[kDevice].names[device_] == reading.device &&
      columns_[kNamespace].names[namespace_] == reading.namespace_name) {
    return;
  }
  namespace_ = columns_[kNamespace].index_of(reading.namespace_name);
  device_ = columns_[kDevice].index_of(reading.device);
  sensor_ = columns_[kSensor].index_of(reading.sensor);
  has_series_ = true;
}

void ReadingTable::add(const wire::Reading& reading, bool is_told) {
  find_series(reading);
  columns_[kNamespace].add_name(namespace_);
  columns_[kDevice].add_name(device_);
  columns_[kSensor].add_name(sensor_);
  columns_[kTime].whole.push_back(reading.time_ns.value_or(0));
  const wire::Value& value = reading.value;
  const auto row = rows_++;
  if (reading.window != nullptr) return add_window(*reading.window, row);
  const auto add_number = [&](double number) {
    columns_[kValue].rows.push_back(row);
    columns_[kValue].numbers.push_back(number);
  };
  const auto add_whole = [&](Column& column, std::int64_t number) {
    column.rows.push_back(row);
    column.whole.push_back(number);
    add_number(static_cast<double>(number));
  };
  columns_[kType].add_name(static_cast<std::uint32_t>(value.type) - 1);
  switch (value.type) {
    case wire::ValueType::Float64: add_number(value.float64); break;
    case wire::ValueType::Int64: add_whole(columns_[kInt], value.int64); break;
    case wire::ValueType::Bool: add_whole(columns_[kBool], value.boolean ? 1 : 0); break;
    case wire::ValueType::Text:
      if (is_told) columns_[kText].add_text(row, value.text);
      break;
    case wire::ValueType::Bytes:
      if (is_told) columns_[kBytes].add_text(row, value.text);
      columns_[kContentType].add_text(
          row, value.content_type.empty() ? wire::kDefaultContentType : value.content_type);
      break;
  }
  if (is_told) text_bytes_ += value.type >= wire::ValueType::Text ? value.text.size() : 0;
}

void ReadingTable::add_window(const wire::Window& window, std::uint32_t row) {
  columns_[kType].add_name(kWindowType);
  columns_[kWindow].add_text(row, wire::format_duration(window.every_ns));
  columns_[kCount].rows.push_back(row);
  columns_[kCount].whole.push_back(static_cast<std::int64_t>(window.count));
  std::size_t column = kMin;
  for (const auto each : wire::kWindowColumns) {
    if (each == wire::WindowColumn::Count) continue;
    Column& place = columns_[column++];
    const auto value = wire::value_of(window, each);
    if (!value) continue;
    place.rows.push_back(row);
    place.numbers.push_back(value->type == wire::ValueType::Float64 ? value->float64
                            : value->type == wire::ValueType::Int64
                                ? static_cast<double>(value->int64)
                                : static_cast<double>(value->boolean));
  }
}

void ReadingTable::add(const wire::Numbers& numbers) {
  if (numbers.empty()) return;
  const auto count = static_cast<std::uint32_t>(numbers.size());
  columns_[kNamespace].add_name(namespace_, count);
  columns_[kDevice].add_name(device_, count);
  columns_[kSensor].add_name(sensor_, count);
  const auto type = numbers.is_float ? wire::ValueType::Float64 : wire::ValueType::Int64;
  columns_[kType].add_name(static_cast<std::uint32_t>(type) - 1, count);
  std::vector<std::int64_t>& times = columns_[kTime].whole;
  times.insert(times.end(), numbers.times_ns.begin(), numbers.times_ns.end());
  for (std::size_t i = 0; i < numbers.size(); ++i, ++rows_) {
    columns_[kValue].rows.push_back(rows_);
    columns_[kValue].numbers.push_back(numbers.is_float ? numbers.float64(i)
                                                        : static_cast<double>(numbers.int64(i)));
    if (numbers.is_float) continue;
    columns_[kInt].rows.push_back(rows_);
    columns_[kInt].whole.push_back(numbers.int64(i));
  }
}

void ReadingTable::clear_rows() {
  rows_ = 0;
  text_bytes_ = 0;
  for (Column& column : columns_) {
    column.rows.clear();
    column.whole.clear();
    column.numbers.clear();
    column.bytes.clear();
    column.ends.clear();
    column.runs.clear();
  }
  if (keeps_names_) return;
  has_series_ = false;
  for (const auto each : {kNamespace, kDevice, kSensor}) columns_[each].forget_names();
}

void append_varint(std::uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

unsigned width_of(std::uint64_t greatest) {
  return static_cast<unsigned>(std::bit_width(greatest));
}

void append_hybrid(const std::vector<std::uint32_t>& values, unsigned width, std::string& out) {
  const std::size_t count = values.size();
  const auto run_at = [&](std::size_t at, std::size_t most) {
    const std::size_t end = std::min(count, at + most);
    std::size_t next = at + 1;
    while (next < end && values[next] == values[at]) ++next;
    return next - at;
  };
  for (std::size_t at = 0; at < count;) {
    const std::size_t run = run_at(at, count);
    if (run >= 8) {
      append_varint(run << 1, out);
      for (unsigned bits = 0; bits < width; bits += 8)
        out.push_back(static_cast<char>(values[at] >> bits));
      at += run;
      continue;
    }
    // Groups of eight, up to where a run begins.
    const std::size_t begin = at;
    do at += 8;
    while (at < count && run_at(at, 8) < 8);
    append_varint(((at - begin) / 8) << 1 | 1, out);
    BitPacker packer(out);
    for (std::size_t i = begin; i < at; ++i) packer.put(i < count ? values[i] : 0, width);
    packer.finish();
  }
}

// Blocks of 128 differences; of each the least, which the others are told from, and the bits that
// each 32 of them need.
void append_delta(const std::vector<std::int64_t>& values, std::string& out) {
  constexpr std::size_t kBlock = 128, kMiniblocks = 4, kMiniblock = kBlock / kMiniblocks;
  append_varint(kBlock, out);
  append_varint(kMiniblocks, out);
  append_varint(values.size(), out);
  append_varint(zigzag(values.empty() ? 0 : values[0]), out);
  std::array<std::uint64_t, kBlock> steps{};
  for (std::size_t at = 1; at < values.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, values.size() - at);
    auto least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < count; ++i) {
      // Wraps around where the difference is none of 64 bits; so does who adds it.
      steps[i] = static_cast<std::uint64_t>(values[at + i]) -
                 static_cast<std::uint64_t>(values[at + i - 1]);
      least = std::min(least, static_cast<std::int64_t>(steps[i]));
    }
    append_varint(zigzag(least), out);
    std::array<unsigned, kMiniblocks> widths{};
    for (std::size_t i = 0; i < kBlock; ++i) {
      steps[i] = i < count ? steps[i] - static_cast<std::uint64_t>(least) : 0;
      widths[i / kMiniblock] = std::max(widths[i / kMiniblock], width_of(steps[i]));
    }
    for (const unsigned width : widths) out.push_back(static_cast<char>(width));
    for (std::size_t i = 0; i < count; i += kMiniblock) {
      BitPacker packer(out);
      for (std::size_t k = 0; k < kMiniblock; ++k) packer.put(steps[i + k], widths[i / kMiniblock]);
      packer.finish();
    }
  }
}

}  // namespace edgecase::columnar
