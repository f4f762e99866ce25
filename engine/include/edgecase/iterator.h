// A cursor over one snapshot of one namespace's key range, in one direction. Owned by one thread.
// It keeps the tables it reads alive; close it soon. What is erased, or comes under a shorter rule,
// while it is open it passes over from its next step on (Engine::revocations()).
#pragma once

#include <memory>

#include "edgecase/bytes.h"
#include "edgecase/large_value.h"
#include "edgecase/result.h"
#include "edgecase/status.h"

namespace edgecase {

enum class Direction : unsigned char { Forward, Reverse };

// Half open: `lower` included, `upper` not; an empty `upper` is unbounded.
struct KeyRange {
  Bytes lower;
  Bytes upper;
};

class Iterator {
 public:
  virtual ~Iterator() = default;

  // Positioned on an entry. False at the end and after an error: look at status().
  virtual bool valid() const = 0;
  virtual void next() = 0;
  // To the first entry at or after (Reverse: at or before) `key`, within the range; may go either
  // way.
  virtual void seek(ByteView key) = 0;
  // Only when valid(); until the next call of next() or seek(). value() may read a drive: after it,
  // valid() may have become false with status() telling why, and what it returned is empty.
  virtual ByteView key() const = 0;
  virtual ByteView value() = 0;
  // With ReadOptions::large_value_bytes: the value, where it has so many bytes or more; value() is
  // empty then. Null: value() has it. Reads all of it once, to check it. Corruption, IoError,
  // Unavailable as value(); NotFound: it was erased since. Good for as long as the engine is there.
  virtual Result<std::unique_ptr<LargeValue>> large_value() {
    return std::unique_ptr<LargeValue>();
  }
  // The place of the entry in the order of commits (Engine::committed()). Only when valid().
  virtual std::uint64_t position() const = 0;
  virtual const Status& status() const = 0;
};

}  // namespace edgecase
