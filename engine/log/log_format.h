// The bytes of a log, versions 1 to 6. Integers are little-endian. One log fills one file of fixed
// size from the front; what lies behind its last record is zeros, or left over from an earlier log.
//
//   head  record*
//
//   head     offset  size  field                 (kLogHeadBytes; no record shares a block with it)
//                 0    72  first copy
//               512    72  second copy: another sector, so that one that is lost is not both
//              1024    24  link to the next log; zeros: none
//              1536    24  rest mark: how far it went when nothing had been written for a while
//                          the rest is zero
//
//   copy          0     8  magic "ECLOG\r\n\0"
//                 8     4  format version
//                12     4  type: 1 WAL, 2 manifest (LogType)
//                16    16  store id
//                32     8  number of this log
//                40     8  number of the log before it, 0 for none
//                48     8  bytes of records the log before it ended with
//                56     8  salt of this log; of one that lies twice in its file kDoubledLogSalt
//                          (log.h)
//                64     4  crc32c of bytes 0..63
//                68     4  zero
//
//   Versions 1, 3 and 5 are in clear, 2, 4 and 6 those of an encrypted store; from 3 on there may
//   be short records. A manifest is written in 1 or 2, a WAL in 3 to 6: in 5 and 6 as long as the
//   log before it, or one before that, is not known to be durable whole. Once it is the head is
//   written again, in 3 or 4, and nothing else of it is different. Copies of 2, 4 and 6 have 96
//   bytes:
//
//                64    24  salt of the file's key (crypto/key_ring.h)
//                88     4  crc32c of bytes 0..87
//                92     4  zero
//
//   and of those logs each payload is sealed (crypto/cipher.h), its place the record's
//   position: 16 bytes longer than what was appended. Lengths and checksums are of what lies in the
//   file.
//
//   link          0     8  number of this log
//                 8     8  number of the next one
//                16     4  crc32c of store id, then bytes 0..15
//                20     4  zero
//
//   It is written when the next log's head is durable, and not synced; the manifest has none. One
//   that is not whole, or of another number, is none.
//
//   rest mark     0     8  number of this log
//                 8     8  bytes of records that are durable
//                16     4  crc32c of store id, bytes 0..15, "rest"
//                20     4  zero
//
//   In a sector of its own, and durable when it was written: a last record that is lost afterwards
//   is told from one that was never whole. It is true for good, though records may follow; a head
//   that is written again has none. Who knows nothing of it takes such a loss for a torn tail.
//
//   record        0     4  header checksum: over the salt, then bytes 4..31
//                 4     4  payload length; at most kLogPayloadMaxBytes
//                 8     8  sequence
//                16     8  durable: bytes of records of this log known to be durable when this
//                          record was written
//                24     4  payload checksum: over the salt, then the payload
//                28     4  zero
//                32     n  payload
//                    0..7  zeros up to a multiple of 8
//
//   short record, which is never the first
//                 0     4  checksum: over the salt, then bytes 4..8 and the payload
//                 4     4  bits 0..10 payload length, bits 11..30 durable / 8, bit 31 one: a
//                          length with that bit is none of a record as above
//                 8     1  sequence minus that of the record before, not 0
//                 9     n  payload
//                    0..7  zeros up to a multiple of 8
//
// The salt is store id, log number, the head's salt and the record's position: a record that an
// earlier log left at this place, a copy of one inside a payload, or one that lies elsewhere is not
// taken for a record. One checksum of 32 bits is little to search all of a log by: behind damage a
// short record far away counts only with another one (kNearBytes).
//
// Positions and lengths of records count from the end of the head. Of two valid copies of the head
// that differ (the file was being taken into use again) the one with the higher number counts; a
// log is named by the manifest or the next log's head, so that which of them it is does not decide
// what is read. Changing anything above needs a new version and a golden file.
#pragma once

#include <cstdint>
#include <span>

#include "base/coding.h"
#include "base/hash.h"
#include "crypto/file_cipher.h"
#include "log/log.h"

namespace edgecase::engine {

inline constexpr char kLogMagic[] = {'E', 'C', 'L', 'O', 'G', '\r', '\n', '\0'};
inline constexpr std::uint32_t kLogVersion = 1;
inline constexpr std::uint32_t kSealedLogVersion = 2;
// Added to the version of a log that may hold short records.
inline constexpr std::uint32_t kShortRecords = 2;
// Added to that of one whose predecessors may not be durable.
inline constexpr std::uint32_t kOpenPredecessor = 2;
inline constexpr std::uint32_t kLogVersionMax =
    kSealedLogVersion + kShortRecords + kOpenPredecessor;
inline constexpr std::string_view kWalPurpose = "edgecase wal";
inline constexpr std::string_view kManifestPurpose = "edgecase manifest";
inline constexpr std::uint64_t kLogHeadBytes = 4096;
inline constexpr std::uint64_t kLogHeadCopyBytes = 72;
inline constexpr std::uint64_t kSealedLogHeadCopyBytes = kLogHeadCopyBytes + kSaltBytes;
inline constexpr std::uint64_t kLogHeadCopyOffsets[] = {0, 512};
inline constexpr std::uint64_t kLogLinkOffset = 1024;
inline constexpr std::uint64_t kLogLinkBytes = 24;
inline constexpr std::uint64_t kLogRestOffset = 1536;
inline constexpr std::uint64_t kLogRestBytes = 24;
inline constexpr std::uint64_t kLogRecordHeaderBytes = 32;
inline constexpr std::uint64_t kLogAlignmentBytes = 8;
inline constexpr std::uint32_t kLogPayloadMaxBytes = 64u << 20;
inline constexpr std::uint64_t kShortRecordHeaderBytes = 9;
inline constexpr std::uint32_t kShortPayloadMaxBytes = (1u << 11) - 1;
inline constexpr std::uint64_t kShortRecordMaxBytes =
    kShortRecordHeaderBytes + kShortPayloadMaxBytes;
inline constexpr std::uint64_t kShortDurableMaxBytes = ((1u << 20) - 1) * kLogAlignmentBytes;
inline constexpr std::uint64_t kShortStepMax = 255;
inline constexpr std::uint32_t kShortFlag = 1u << 31;

constexpr std::uint64_t log_aligned(std::uint64_t bytes) {
  return (bytes + kLogAlignmentBytes - 1) / kLogAlignmentBytes * kLogAlignmentBytes;
}
// Header, payload and padding of one that is not short.
constexpr std::uint64_t log_record_bytes(std::uint64_t payload_bytes) {
  return kLogRecordHeaderBytes + log_aligned(payload_bytes);
}

constexpr bool is_sealed_version(std::uint32_t version) {
  return version % 2 == 0;
}
constexpr bool has_short_records(std::uint32_t version) {
  return version > kShortRecords;
}
constexpr bool has_open_predecessor(std::uint32_t version) {
  return version > kShortRecords + kOpenPredecessor;
}
// The version that a log is written in.
constexpr std::uint32_t log_version(const LogIdentity& identity, bool sealed) {
  return (sealed ? kSealedLogVersion : kLogVersion) +
         (identity.type == LogType::Wal ? kShortRecords : 0) +
         (identity.open_predecessor ? kOpenPredecessor : 0);
}

inline FileRole role_of(const LogIdentity& identity) {
  return {identity.type == LogType::Manifest ? kManifestPurpose : kWalPurpose, identity.number};
}

inline std::uint32_t crc32c_of(const StoreId& id) {
  return crc32c(ByteView(reinterpret_cast<const char*>(id.data()), id.size()));
}

// The part of the salt that one log's records share.
inline std::uint32_t log_salt(const LogIdentity& identity) {
  char numbers[16];
  encode_fixed64(numbers, identity.number);
  encode_fixed64(numbers + 8, identity.salt);
  return crc32c_extend(crc32c_of(identity.store_id), ByteView(numbers, sizeof numbers));
}
inline std::uint32_t log_record_salt(std::uint32_t log_salt, std::uint64_t position) {
  char bytes[8];
  encode_fixed64(bytes, position);
  return crc32c_extend(log_salt, ByteView(bytes, sizeof bytes));
}

inline Bytes encode_log_link(const StoreId& store_id, std::uint64_t number,
                             std::uint64_t successor) {
  Bytes link;
  append_fixed64(link, number);
  append_fixed64(link, successor);
  append_fixed32(link, crc32c_extend(crc32c_of(store_id), link));
  append_fixed32(link, 0);
  return link;
}

// 0: there is none.
inline std::uint64_t decode_log_link(ByteView link, const StoreId& store_id, std::uint64_t number) {
  if (link.size() < kLogLinkBytes) return 0;
  const std::uint64_t successor = decode_fixed64(link.data() + 8);
  return link.substr(0, kLogLinkBytes) == encode_log_link(store_id, number, successor) ? successor
                                                                                       : 0;
}

inline Bytes encode_log_rest(const StoreId& store_id, std::uint64_t number, std::uint64_t bytes) {
  Bytes rest;
  append_fixed64(rest, number);
  append_fixed64(rest, bytes);
  append_fixed32(rest, crc32c_extend(crc32c_extend(crc32c_of(store_id), rest), "rest"));
  append_fixed32(rest, 0);
  return rest;
}

// 0: there is none.
inline std::uint64_t decode_log_rest(ByteView rest, const StoreId& store_id, std::uint64_t number) {
  if (rest.size() < kLogRestBytes) return 0;
  const std::uint64_t bytes = decode_fixed64(rest.data() + 8);
  return rest.substr(0, kLogRestBytes) == encode_log_rest(store_id, number, bytes) ? bytes : 0;
}

struct LogRecordHeader {
  std::uint32_t payload_bytes = 0;
  std::uint64_t sequence = 0;
  std::uint64_t durable = 0;
  std::uint32_t payload_checksum = 0;
};

inline void encode_log_record_header(char* out, const LogRecordHeader& header,
                                     std::uint32_t record_salt) {
  encode_fixed32(out + 4, header.payload_bytes);
  encode_fixed64(out + 8, header.sequence);
  encode_fixed64(out + 16, header.durable);
  encode_fixed32(out + 24, header.payload_checksum);
  encode_fixed32(out + 28, 0);
  encode_fixed32(out, crc32c_extend(record_salt, ByteView(out + 4, kLogRecordHeaderBytes - 4)));
}

// `bytes` is at `position`. False for what is no header of this log.
inline bool decode_log_record_header(ByteView bytes, std::uint64_t position, std::uint32_t log_salt,
                                     LogRecordHeader& header) {
  if (bytes.size() < kLogRecordHeaderBytes) return false;
  const char* data = bytes.data();
  header.payload_bytes = decode_fixed32(data + 4);
  header.sequence = decode_fixed64(data + 8);
  header.durable = decode_fixed64(data + 16);
  header.payload_checksum = decode_fixed32(data + 24);
  // The cheap tests first: a search for a record looks at every eighth byte.
  if (header.payload_bytes > kLogPayloadMaxBytes || header.durable > position ||
      decode_fixed32(data + 28) != 0) {
    return false;
  }
  return decode_fixed32(data) == crc32c_extend(log_record_salt(log_salt, position),
                                               bytes.substr(4, kLogRecordHeaderBytes - 4));
}

struct ShortRecordHeader {
  std::uint32_t payload_bytes = 0;
  std::uint64_t durable = 0;
  std::uint64_t step = 0;
};

// `record` is header and payload; writes the header, which has the checksum of both.
inline void encode_short_record_header(std::span<char> record, std::uint64_t durable,
                                       std::uint64_t step, std::uint32_t record_salt) {
  const std::uint64_t payload_bytes = record.size() - kShortRecordHeaderBytes;
  encode_fixed32(
      record.data() + 4,
      static_cast<std::uint32_t>(payload_bytes | durable / kLogAlignmentBytes << 11) | kShortFlag);
  record[8] = static_cast<char>(step);
  encode_fixed32(record.data(),
                 crc32c_extend(record_salt, ByteView(record.data() + 4, record.size() - 4)));
}

// `bytes` begin at `position`. False for what is no whole short record of this log.
inline bool decode_short_record(ByteView bytes, std::uint64_t position, std::uint32_t log_salt,
                                ShortRecordHeader& header) {
  if (bytes.size() < kShortRecordHeaderBytes || position == 0) return false;
  const std::uint32_t word = decode_fixed32(bytes.data() + 4);
  header.payload_bytes = word & kShortPayloadMaxBytes;
  header.durable = ((word & ~kShortFlag) >> 11) * kLogAlignmentBytes;
  header.step = static_cast<unsigned char>(bytes[8]);
  if ((word & kShortFlag) == 0 || header.durable > position || header.step == 0 ||
      header.payload_bytes > bytes.size() - kShortRecordHeaderBytes) {
    return false;
  }
  return decode_fixed32(bytes.data()) ==
         crc32c_extend(log_record_salt(log_salt, position),
                       bytes.substr(4, kShortRecordHeaderBytes - 4 + header.payload_bytes));
}

}  // namespace edgecase::engine
