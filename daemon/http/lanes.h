// Lanes of workers: a request's is told by its head alone, before anything of it is looked at.
// Requests that read share the processor by turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string_view>

#include "edgecase/engine.h"
#include "edgecase/mutex.h"
#include "http/request_head.h"

namespace edgecase::http {

enum class Lane : unsigned char {
  Prompt,   // little work, and somebody draws conclusions from its being late: /healthz, /metrics
  Ingest,   // readings to be stored
  Changes,  // everything else that changes something; may take long, as an erasure does
  Reads,    // may take long, by work or by a reader that is slow
};
inline constexpr std::size_t kLanes = 4;

Lane lane_of(const RequestHead& head);

// Lets a number of reads work at once; the others wait, those first that wait longest.
// Thread-safe.
class ReadSlots {
 public:
  explicit ReadSlots(std::uint32_t count) : free_(count) {}

  void take();
  // False: others have them, or wait for one.
  bool try_take();
  void give_back();
  bool is_wanted() const;
  std::size_t waiting() const;

 private:
  struct Waiter {
    bool is_called = false;
  };
  mutable Mutex mutex_;
  CondVar called_;
  std::uint32_t free_ EC_GUARDED_BY(mutex_);
  std::list<Waiter> waiters_ EC_GUARDED_BY(mutex_);  // longest first
};

// One read at its work: asked now and then, it lets others have their turn, and tells when the
// client has left. While it waits for its reader it has no slot. One thread.
class ReadTurn final : public Patience {
 public:
  // `has_left` asks the connection; it must outlive the turn, as `slots`.
  ReadTurn(ReadSlots& slots, std::function<bool()> has_left);
  // A second thread's that works for the same client; null where there is no slot for it.
  static std::unique_ptr<ReadTurn> second(ReadSlots& slots);
  ~ReadTurn() override;

  // Cancelled: the client has left.
  Status go_on() override;
  void rest() override;
  void resume() override;

 private:
  explicit ReadTurn(ReadSlots& slots);  // whose slot was taken

  ReadSlots& slots_;
  const std::function<bool()> has_left_;  // null: somebody else asks
  std::int64_t looked_ns_;
  bool has_slot_ = true;
};

// Whether a client has left, by its socket. Who only ends its side of the connection may still
// read: it is told by taking what is sent, and has left where there was nothing to send for a
// while.
class LeavingClient {
 public:
  explicit LeavingClient(int descriptor) : descriptor_(descriptor) {}

  void sent(std::uint64_t bytes) { sent_bytes_ += bytes; }
  bool has_left();

 private:
  const int descriptor_;
  std::uint64_t sent_bytes_ = 0;
  std::int64_t ended_ns_ = 0;      // its side; 0: it has not
  std::uint64_t sent_before_ = 0;  // it was looked at last
};

}  // namespace edgecase::http
