// The catalog's records, version 2, in the engine namespace `_catalog`. Checksums are the engine's.
//
//   key      'F'                                          the layout of this namespace
//            'D' namespace id, device id                  a device
//            'S' namespace id, device id, sensor id       a sensor of it; each id 4 bytes
//            big-endian
//
//   value    offset  size  field
//                 0     1  record version, 1 or 2
//                 1     n  fields, each: tag (varint), length (varint), that many bytes
//
//   tag   of      holds
//     1   D S     name, 1 to 256 bytes of UTF-8, of a sensor 1,024; always there
//     2   F       the layout's version, one byte, 1
//     3   F       namespace id, the first device id not used yet; each 4 bytes big-endian, for each
//                 namespace of which a device was erased
//     4   D       the first sensor id not used yet, 4 bytes big-endian; where a sensor was erased
//     5   S       its identity (wire/names.h), empty where it is that of its names. Version 1
//                 had none: the first line that comes for the series says it, and is recorded
//     6   D       the number of its origin (catalog.h), 4 bytes big-endian; none: nobody's yet
//     7   D       what its origin calls it, where that is not its name
//
// A reader passes over tags it does not know, and whoever rewrites a record keeps them. A change
// that old readers must not pass over gets a new layout version. What is said of devices beyond
// their names has records of its own (device_index.h).
//
// A sensor's record is written in the same batch as its device's or after it, and both no later
// than the first reading. Namespace ids are the engine's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/status.h"
#include "edgecase/write_batch.h"

namespace edgecase::catalog {

inline constexpr std::uint8_t kRecordVersion = 2;
inline constexpr std::uint8_t kLayoutVersion = 1;

enum class RecordKind : char { Format = 'F', Device = 'D', Sensor = 'S' };
enum class FieldTag : std::uint32_t {
  Name = 1,
  LayoutVersion = 2,
  NextDevices = 3,
  NextSensor = 4,
  Identity = 5,
  Origin = 6,
  NameThere = 7,
};

struct RecordKey {
  RecordKind kind = RecordKind::Format;
  NamespaceId namespace_id = 0;  // Device and Sensor
  std::uint32_t device = 0;
  std::uint32_t sensor = 0;  // Sensor
};

Bytes encode_record_key(const RecordKey& key);
// Corruption for what is no record's key.
Result<RecordKey> decode_record_key(ByteView bytes);

// A record with one field.
Bytes encode_record(FieldTag tag, ByteView field);
void append_record_field(FieldTag tag, ByteView field, Bytes& record);
// The field `tag` of a record. Corruption: cut, no such field. Unsupported: a newer record version.
Result<ByteView> decode_record_field(ByteView record, FieldTag tag);
// The same of a field that need not be there; then it is empty.
Result<ByteView> find_record_field(ByteView record, FieldTag tag);
Result<bool> has_record_field(ByteView record, FieldTag tag);

// Numbers of fields.
void append_id(std::uint32_t id, Bytes& out);
std::vector<std::uint32_t> decode_ids(ByteView field);

}  // namespace edgecase::catalog
