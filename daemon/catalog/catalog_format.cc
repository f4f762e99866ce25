#include "catalog/catalog_format.h"

#include <string>

namespace edgecase::catalog {
namespace {

constexpr std::size_t kIdBytes = 4;
constexpr std::size_t kFormatKeyBytes = 1;
constexpr std::size_t kDeviceKeyBytes = 1 + 2 * kIdBytes;
constexpr std::size_t kSensorKeyBytes = 1 + 3 * kIdBytes;

std::uint32_t id_at(ByteView bytes, std::size_t index) {
  std::uint32_t id = 0;
  for (std::size_t i = 0; i < kIdBytes; ++i) {
    id = id << 8 | static_cast<unsigned char>(bytes[1 + index * kIdBytes + i]);
  }
  return id;
}

void append_varint(std::uint64_t number, Bytes& out) {
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
}

// 32 bits are enough for tags and lengths; false when `bytes` is cut or holds more.
bool take_varint(ByteView& bytes, std::uint32_t& number) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      number = static_cast<std::uint32_t>(value);
      return value <= 0xffffffff;
    }
  }
  return false;
}

struct Found {
  bool is_there = false;
  ByteView field;
};

Result<Found> find_field(ByteView record, FieldTag tag) {
  if (record.empty()) return corruption("catalog: an empty record");
  const auto version = static_cast<unsigned char>(record.front());
  if (version > kRecordVersion) {
    return unsupported("catalog: record version " + std::to_string(version) +
                       " was written by a newer program");
  }
  record.remove_prefix(1);
  Found found;
  while (!record.empty()) {
    std::uint32_t number = 0;
    std::uint32_t length = 0;
    if (!take_varint(record, number) || !take_varint(record, length) || length > record.size()) {
      return corruption("catalog: a record is cut short");
    }
    if (number == static_cast<std::uint32_t>(tag)) found = {true, record.substr(0, length)};
    record.remove_prefix(length);
  }
  return found;
}

}  // namespace

void append_id(std::uint32_t id, Bytes& out) {
  for (const unsigned shift : {24u, 16u, 8u, 0u}) out.push_back(static_cast<char>(id >> shift));
}

std::vector<std::uint32_t> decode_ids(ByteView field) {
  std::vector<std::uint32_t> ids;
  for (; field.size() >= kIdBytes; field.remove_prefix(kIdBytes)) {
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < kIdBytes; ++i) id = id << 8 | static_cast<unsigned char>(field[i]);
    ids.push_back(id);
  }
  return ids;
}

Bytes encode_record_key(const RecordKey& key) {
  Bytes bytes;
  bytes.reserve(kSensorKeyBytes);
  bytes.push_back(static_cast<char>(key.kind));
  if (key.kind == RecordKind::Format) return bytes;
  append_id(key.namespace_id, bytes);
  append_id(key.device, bytes);
  if (key.kind == RecordKind::Sensor) append_id(key.sensor, bytes);
  return bytes;
}

Result<RecordKey> decode_record_key(ByteView bytes) {
  RecordKey key;
  if (!bytes.empty()) key.kind = static_cast<RecordKind>(bytes.front());
  const bool whole = (key.kind == RecordKind::Format && bytes.size() == kFormatKeyBytes) ||
                     (key.kind == RecordKind::Device && bytes.size() == kDeviceKeyBytes) ||
                     (key.kind == RecordKind::Sensor && bytes.size() == kSensorKeyBytes);
  if (!whole) return corruption("catalog: a key of no known kind");
  if (key.kind == RecordKind::Format) return key;
  key.namespace_id = id_at(bytes, 0);
  key.device = id_at(bytes, 1);
  if (key.kind == RecordKind::Sensor) key.sensor = id_at(bytes, 2);
  return key;
}

void append_record_field(FieldTag tag, ByteView field, Bytes& record) {
  append_varint(static_cast<std::uint32_t>(tag), record);
  append_varint(field.size(), record);
  record.append(field);
}

Bytes encode_record(FieldTag tag, ByteView field) {
  Bytes record(1, static_cast<char>(kRecordVersion));
  append_record_field(tag, field, record);
  return record;
}

Result<ByteView> decode_record_field(ByteView record, FieldTag tag) {
  EC_ASSIGN_OR_RETURN(const Found found, find_field(record, tag));
  if (!found.is_there) return corruption("catalog: a record lacks a field it needs");
  return found.field;
}

Result<ByteView> find_record_field(ByteView record, FieldTag tag) {
  EC_ASSIGN_OR_RETURN(const Found found, find_field(record, tag));
  return found.field;
}

Result<bool> has_record_field(ByteView record, FieldTag tag) {
  EC_ASSIGN_OR_RETURN(const Found found, find_field(record, tag));
  return found.is_there;
}

}  // namespace edgecase::catalog
