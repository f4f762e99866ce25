// The name of this store at an EdgeCase that it forwards to (ingest/origins.h): its number, drawn
// once, and its runs. A run is drawn when something is first sent after a start, once a target has
// answered in the run before; so one that is answered twice is of two copies of this store.
//
//   key 'O' in `_forward` -> 16 number of the store; 1: whether the newest run was answered;
//                            8 for each run, the newest first, kRunsMax of them
//
// Thread-safe; the lock is held while the record is written.
#pragma once

#include <string>

#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "edgecase/random.h"
#include "forward/records.h"

namespace edgecase::forward {

class Lineage {
 public:
  Lineage(Engine& engine, Records& records, Random& random)
      : engine_(engine), records_(records), random_(random) {}

  // A line of a request's head. `is_known`: the target has answered since the start, and needs not
  // be told of runs before. The run is durable on return.
  Result<std::string> header(bool is_known) EC_EXCLUDES(mutex_);
  // A target has taken something.
  void note_answered() EC_EXCLUDES(mutex_);

 private:
  Status begin() EC_REQUIRES(mutex_);
  Status write(Durability durability) EC_REQUIRES(mutex_);

  Engine& engine_;
  Records& records_;
  Random& random_;
  Mutex mutex_;
  bool has_begun_ EC_GUARDED_BY(mutex_) = false;
  bool is_answered_ EC_GUARDED_BY(mutex_) = false;
  Bytes store_ EC_GUARDED_BY(mutex_), runs_ EC_GUARDED_BY(mutex_);
};

}  // namespace edgecase::forward
