#include "erase/erase_jobs.h"

#include <algorithm>
#include <utility>

#include "erase/erase_records.h"
#include "wire/big_endian.h"

namespace edgecase::erase {
namespace {

constexpr char kJobRecord = 'J';
constexpr char kJobVersion = 1;

bool take_number(ByteView& bytes, std::uint32_t& number) {
  if (bytes.size() < 4) return false;
  number = static_cast<std::uint32_t>(wire::read_big_endian(bytes.substr(0, 4)));
  bytes.remove_prefix(4);
  return true;
}

bool take_bytes(ByteView& bytes, Bytes& taken) {
  std::uint32_t size = 0;
  if (!take_number(bytes, size) || size > bytes.size()) return false;
  taken = Bytes(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return true;
}

// version (1), then of each range: namespace id (4), and lower and upper, each with its length (4).
Bytes encode(const std::vector<catalog::KeySpan>& spans, std::size_t first, std::size_t end) {
  Bytes value(1, kJobVersion);
  for (std::size_t i = first; i < end; ++i) {
    wire::append_big_endian(spans[i].namespace_id, value, 4);
    for (const Bytes* bound : {&spans[i].lower, &spans[i].upper}) {
      wire::append_big_endian(bound->size(), value, 4);
      value += *bound;
    }
  }
  return value;
}

Result<std::vector<catalog::KeySpan>> decode(ByteView value) {
  if (value.empty()) return corruption("the record of an erasure is cut");
  if (value.front() != kJobVersion)
    return unsupported("an erasure was written by a newer version of EdgeCase");
  value.remove_prefix(1);
  std::vector<catalog::KeySpan> spans;
  while (!value.empty()) {
    catalog::KeySpan& span = spans.emplace_back();
    if (!take_number(value, span.namespace_id) || !take_bytes(value, span.lower) ||
        !take_bytes(value, span.upper)) {
      return corruption("the record of an erasure is cut");
    }
  }
  return spans;
}

void append_range(const catalog::KeySpan& span, WriteBatch& batch) {
  batch.erase_range(span.namespace_id, span.lower, span.upper);
}

// A namespace that was dropped since has nothing left to erase.
void leave_out_dropped(const Engine& engine, std::vector<catalog::KeySpan>& spans) {
  const std::vector<NamespaceInfo> there = engine.namespaces();
  std::erase_if(spans, [&there](const catalog::KeySpan& span) {
    return std::none_of(there.begin(), there.end(), [&span](const NamespaceInfo& info) {
      return info.id == span.namespace_id;
    });
  });
}

}  // namespace

void append_erasure(const std::vector<catalog::KeySpan>& spans, NamespaceId records,
                    std::uint64_t number, WriteBatch& batch) {
  std::size_t first = std::min(spans.size(), kRangesPerJob);
  for (std::size_t i = 0; i < first; ++i) append_range(spans[i], batch);
  for (std::uint32_t count = 0; first < spans.size(); ++count) {
    const std::size_t end = std::min(first + kRangesPerJob, spans.size());
    Bytes key(1, kJobRecord);
    wire::append_big_endian(number, key);
    wire::append_big_endian(count, key, 4);
    batch.put(records, key, encode(spans, first, end));
    first = end;
  }
}

Status run_jobs(Engine& engine, NamespaceId records) {
  std::vector<std::pair<Bytes, Bytes>> jobs;
  {
    const catalog::KeySpan all = catalog::span_of_prefix(records, Bytes(1, kJobRecord));
    EC_ASSIGN_OR_RETURN(const auto iterator, engine.scan(records, {all.lower, all.upper}, {}));
    for (; iterator->valid(); iterator->next()) {
      Bytes key(iterator->key());
      jobs.emplace_back(std::move(key), Bytes(iterator->value()));
    }
    EC_TRY(iterator->status());
  }
  for (const auto& [key, value] : jobs) {
    EC_ASSIGN_OR_RETURN(std::vector<catalog::KeySpan> spans, decode(value));
    leave_out_dropped(engine, spans);
    WriteBatch batch;
    for (const catalog::KeySpan& span : spans) append_range(span, batch);
    append_range(catalog::span_of_key(records, key), batch);
    EC_TRY(engine.write(batch, Durability::Sync));
  }
  return ok();
}

Status resume_jobs(Engine& engine) {
  const auto found = engine.find_namespace(kErasuresNamespace);
  if (found.status().code() == StatusCode::NotFound) return ok();
  EC_TRY(found.status());
  return run_jobs(engine, found->id);
}

}  // namespace edgecase::erase
