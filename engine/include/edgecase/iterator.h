// A cursor over one snapshot of one namespace's key range, in one direction. Owned by one thread.
// It keeps the tables it reads alive; close it soon.
#pragma once

#include "edgecase/bytes.h"
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
  virtual const Status& status() const = 0;
};

}  // namespace edgecase
