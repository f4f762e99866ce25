// An audit log on an engine in memory, with its head on the machine's files, and ways to tamper.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "audit/audit_log.h"
#include "audit/page.h"
#include "support/manual_clock.h"
#include "support/model_engine.h"
#include "support/temp_directory.h"

namespace edgecase::audit::test {

struct AuditRoom {
  explicit AuditRoom(Mode mode = Mode::Strict) {
    options.mode = mode;
    options.head_directory = directory.path();
    options.runs_thread = false;
    open();
  }
  ~AuditRoom() { log.reset(); }

  void open() {
    auto opened = AuditLog::open(options, {engine, posix_file_system(), clock, random, told});
    REQUIRE_MESSAGE(opened.ok(), opened.status().to_string());
    log = std::move(opened).value();
  }
  // As after a kill: what waits is gone, no head was written.
  void kill() {
    engine.set_commit_companion(nullptr);
    engine.fail_writes(io_error("killed"));
    const auto head = read_head_file(posix_file_system(), directory.path());
    log.reset();
    engine.fail_writes(ok());
    if (head.ok() && *head) {
      REQUIRE(write_head_file(posix_file_system(), directory.path(), **head).ok());
    }
  }
  // A record a second.
  void fill(int count) {
    for (int i = 0; i < count; ++i) {
      clock.advance(1'000'000'000);
      Record record = example(i);
      REQUIRE(log->note(std::move(record)).ok());
    }
  }
  Record example(int i) const {
    Record record;
    record.operation = i % 2 == 0 ? "ingest" : "query";
    record.actor = "uid 1000";
    record.token = "0123456789";
    record.namespace_name = "default";
    record.selector = "*/*";
    record.detail = "purpose billing";
    record.count = 7;
    const std::string device = "device-" + std::to_string(i % 3);
    record.targets = {{log->names().of_device("default", device), 7}};
    return record;
  }

  Verification verified() const {
    auto found = verify(*log);
    REQUIRE_MESSAGE(found.ok(), found.status().to_string());
    return std::move(found).value();
  }
  // The first fault's sequence; 0 when there is none.
  std::uint64_t first_fault() const {
    const Verification found = verified();
    return found.faults.empty() ? 0 : found.faults.front().sequence;
  }
  std::vector<Record> list(const ListRequest& request = {}) const {
    auto cursor = RecordCursor::open(*log, request);
    REQUIRE_MESSAGE(cursor.ok(), cursor.status().to_string());
    std::vector<Record> records;
    for (Record record;;) {
      const auto more = (*cursor)->next(record);
      REQUIRE_MESSAGE(more.ok(), more.status().to_string());
      if (!*more) return records;
      records.push_back(record);
    }
  }

  Bytes value(std::uint64_t sequence) {
    return engine.get(log->records(), page_key(sequence), {}).value();
  }
  // The record of a page of one.
  Record record(std::uint64_t sequence) {
    return decode_page(sequence, value(sequence)).value().records.back();
  }
  static Bytes body_with(const Record& record) {
    Draft draft = draft_of(record);
    draft.time_ns = record.time_ns;
    draft.trust = record.trust;
    const Draft* const only = &draft;
    return encode_page({&only, 1});
  }
  void put(ByteView key, ByteView bytes) {
    WriteBatch batch;
    batch.put(log->records(), key, bytes);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }
  void remove(ByteView key) {
    WriteBatch batch;
    batch.remove(log->records(), key);
    REQUIRE(engine.write(batch, Durability::Sync).ok());
  }

  edgecase::test::TempDirectory directory;
  edgecase::test::ManualClock clock;
  edgecase::test::ModelEngine engine;
  SeededRandom random{5};
  AuditOptions options;
  observe::Logger* told = nullptr;
  std::unique_ptr<AuditLog> log;
};

}  // namespace edgecase::audit::test
