// A request that comes in slices, as a decoder makes them: they are gathered into few commits, and
// only the last of these waits for the drive. Between two slices nothing but memory is touched, so
// that others have the log to themselves meanwhile.
//
//   while (decoder.next(batch)) { ...slices.add(*authorize_write(principal, batch), ...) }
//   ...slices.finish()        // what was added is durable
//
// Requests of up to about 60,000 numbers are stored whole or not at all, except that slices that
// bring many readings of new series, or values that are not copied, are committed with what came
// before them; so is each one while somebody follows what is stored, or devices are held to a rate.
// Of a larger
// request, as of one in several batches, a part may be stored when another one fails.
//
// One thread. Erasures wait from the first add() to the next commit, or to the end.
#pragma once

#include <cstdint>
#include <optional>

#include "ingest/ingest_pipeline.h"

namespace edgecase::ingest {

class SlicedIngest {
 public:
  // All must outlive it. `bytes` is about what the request has left to decode. `slices` may be what
  // another request went on with that has ended.
  SlicedIngest(IngestPipeline& pipeline, const auth::Principal& principal, Pacing* pacing,
               std::size_t bytes, Slices& slices);

  // As IngestPipeline::ingest(), but durable only after finish(): an error leaves out what was not
  // committed, and nothing more may be added. Adds to `outcome`.
  Status add(const auth::AuthorizedBatch& slice, Outcome& outcome);
  // Idempotent.
  Status finish();

 private:
  // Of the gate of fences: no two at once by one thread, which would wait for itself.
  struct Inside {
    explicit Inside(erase::Fences& fences) : pass(fences.enter()) {}
    const erase::Fences::Pass pass;
  };

  Status enter();
  Status store(const auth::AuthorizedBatch& slice, Outcome& outcome);

  IngestPipeline& pipeline_;
  const auth::Principal& principal_;
  Pacing* const pacing_;
  Slices& slices_;
  std::optional<Inside> inside_;
  std::uint64_t readings_ = 0;  // stored since the last finish()
};

}  // namespace edgecase::ingest
