// A page of the audit log: records that one commit took along, as one entry of the engine, with one
// hash. Most are like others of their page but for time and counts: what is alike is there once.
// Pure functions; any thread.
//
// In the engine's namespace `_audit` (record.h), numbers of fixed size big-endian, `zigzag` a
// signed number as varint:
//   'R' sequence of the last record (8)  ->  hash (32) body
// hash = SHA-256 of the hash of the page before (32 zero bytes for the first), the sequence of the
// last record (8), and the body:
//   version 1; how many records (varint); time of the first (8), how much later the last is
//   (zigzag) how many descriptions (varint), each a varint length and
//     flags (1: bit 0 reaches more than is named); operation, actor, token, namespace, selector,
//     detail, each a varint length and bytes; how many devices (varint), each a pseudonym (8)
//   of each record: number of its description (varint); 2 * outcome + clock trusted (1); how much
//     later than the one before (zigzag; the first: 0); readings (varint); how many devices more
//     than those named (varint); readings of each device (varint)
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "audit/record.h"

namespace edgecase::audit {

inline constexpr std::size_t kPageRecordsMax = 1'024;
// Bytes of a page's descriptions, as if none were alike; it ends beyond that.
inline constexpr std::size_t kPageBytesMax = 128u << 10;

// A record as it waits for its page: what is the same for many as bytes, the rest as numbers.
struct Draft {
  Bytes description;
  std::int64_t time_ns = 0;
  ClockTrust trust = ClockTrust::Trusted;
  Outcome outcome = Outcome::Ok;
  std::uint64_t count = 0;
  std::uint64_t more_devices = 0;
  std::vector<std::uint64_t> target_counts;

  std::size_t memory_bytes() const {
    return sizeof(Draft) + description.size() + 8 * target_counts.size();
  }
};

// Without time and trust. At most kTargetsMax targets are kept; texts are cut at kTextMaxBytes.
Draft draft_of(const Record& record);

// The same of a record that says no more than this; its count is that of all targets, at most
// kTargetsMax.
struct Stored {
  std::string_view operation, actor, token, namespace_name;
};
Draft draft_of(const Stored& stored, std::span<const Target> targets);

// A page of 1 to kPageRecordsMax records.
Bytes encode_page(std::span<const Draft* const> drafts);
auth::Digest chain_hash(const auth::Digest& previous, std::uint64_t last_sequence, ByteView body);
Bytes page_value(const auth::Digest& hash, ByteView body);
ByteView body_of(ByteView value);

// What is said of a page before its records.
struct PageHead {
  std::uint64_t first = 0, last = 0;  // sequences
  std::int64_t first_ns = 0, last_ns = 0;
  auth::Digest hash{};
};
// Corruption says what is wrong. decode_page() alone looks at the records.
Result<PageHead> decode_page_head(std::uint64_t last_sequence, ByteView value);

struct Page {
  PageHead head;
  std::vector<Record> records;  // with the page's hash
};
// Asked of each description, which is a record without what differs from one to the next.
using Wanted = std::function<bool(const Record& description)>;
// Decodes the records that are wanted, or all. Where none is, no more is looked at than that.
Result<Page> decode_page(std::uint64_t last_sequence, ByteView value, const Wanted& wanted = {});

}  // namespace edgecase::audit
