// A request on its way into the store (IngestRequest): slices of readings, records of whoever
// brings them (RecordChange), and the memory that it gathers them in. IngestPipeline takes it. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "auth/authorize.h"
#include "catalog/catalog.h"
#include "catalog/names.h"
#include "edgecase/bytes.h"
#include "edgecase/engine.h"
#include "edgecase/write_batch.h"
#include "erase/fences.h"
#include "ingest/device_rates.h"
#include "ingest/outcome.h"
#include "ingest/reading_times.h"

namespace edgecase::ingest {

// A record of whoever brings the readings, durable with them or not at all. Borrows its bytes.
struct RecordChange {
  enum class Kind : std::uint8_t { Put, Remove };
  Kind kind = Kind::Put;
  NamespaceId namespace_id = 0;
  ByteView key;
  ByteView value;
};

// What waits for the next commit: a request that comes whole, or several slices of one.
struct Gathered {
  WriteBatch batch;
  StoredDevices devices;  // where there is an audit log
  std::uint64_t readings = 0;

  void clear() {
    batch.clear();
    devices.clear();
    readings = 0;
  }
};

// Devices and series that readings brought and that are not durable yet.
struct NewSeries {
  catalog::CatalogAdditions additions;
  std::uint64_t retention_generation = 0;  // when the first of them got its rules
};

// Memory of a request, which the next one may go on with (http/http_routes.h). One thread.
struct IngestBuffers {
  Gathered gathered;
  NewSeries fresh;
  catalog::SeriesMemo series;
  // What belongs to the slice at hand.
  std::vector<catalog::SeriesId> ids;
  std::vector<std::int64_t> times;
  ReplacedSearch replaced;

  // Nothing that waits is stored.
  void abandon() {
    gathered.clear();
    if (!fresh.additions.empty()) fresh.additions.clear();
  }
  std::size_t memory_bytes() const {
    return gathered.batch.memory_bytes() + gathered.devices.memory_bytes() + series.memory_bytes() +
           ids.capacity() * sizeof(ids[0]) + times.capacity() * sizeof(times[0]) +
           replaced.memory_bytes();
  }
};

// A request from its first slice to its end. Slices are gathered into few commits, of which only
// the last waits for the drive; between two of them nothing but memory is touched, so that others
// have the log to themselves meanwhile.
//
//   IngestRequest request(principal, &pacing, body.size(), buffers);
//   while (decoder.next(batch)) { ...pipeline.add(request, *authorize_write(principal, batch), ...)
//   }
//   ...pipeline.finish(request)        // what was added is durable
//
// Unless slices are committed as they come, requests of up to about 60,000 numbers are stored whole
// or not at all. They are committed so, with those before them, where they bring many readings of
// new series, or values that are not copied; while somebody follows what is stored; while devices
// are held to a rate. So a part of a larger request may be stored when a later slice fails.
//
// One thread. Everything it refers to outlives it. Erasures wait from the first add() to the next
// commit, or to the end.
struct IngestRequest {
  // `bytes` is about what the request has left to decode.
  IngestRequest(const auth::Principal& by, Pacing* paced_by, std::size_t bytes,
                IngestBuffers& memory);

  const auth::Principal& principal;
  Pacing* const pacing;  // null: taken, whatever its devices owe
  IngestBuffers& buffers;
  bool comes_whole = false;                         // as one slice, which is committed at once
  std::span<const Author> authors = {};             // of that slice, in order
  std::span<const RecordChange> records = {};       // written behind it, in their order
  erase::Copied copied = {};                        // what its readings are a copy of
  catalog::Origins origins = catalog::kOwnOrigins;  // of whom they are, where they are none

  // A pass of the gate of fences: no two at once by one thread, which would wait for itself.
  struct Inside {
    explicit Inside(erase::Fences& fences) : pass(fences.enter()) {}
    const erase::Fences::Pass pass;
  };
  std::optional<Inside> inside;
  // Readings since the last finish().
  std::uint64_t brought = 0, stored = 0;
};

}  // namespace edgecase::ingest
