#include "file/locked_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "edgecase/mutex.h"

namespace edgecase::engine {
namespace {

constexpr std::size_t kStepBytes = 32;
constexpr std::size_t kChunkBytes = 64u << 10;

// Pieces that are free lead to one another.
struct Free {
  Free* next;
};

struct Pool {
  Mutex mutex;
  std::array<Free*, kLockedPieceMaxBytes / kStepBytes + 1> free EC_GUARDED_BY(mutex){};
  char* rest EC_GUARDED_BY(mutex) = nullptr;  // of the last chunk
  std::size_t rest_bytes EC_GUARDED_BY(mutex) = 0;
};

// Never destroyed: keys may be given back at the very end.
Pool& pool() {
  static Pool& all = *new Pool;
  return all;
}

std::size_t steps_of(std::size_t size) {
  return (size + kStepBytes - 1) / kStepBytes;
}

bool new_chunk(Pool& from) EC_REQUIRES(from.mutex) {
  void* const chunk =
      mmap(nullptr, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (chunk == MAP_FAILED) return false;
  static_cast<void>(lock_in_memory(chunk, kChunkBytes));
  from.rest = static_cast<char*>(chunk);
  from.rest_bytes = kChunkBytes;
  return true;
}

}  // namespace

bool lock_in_memory(const void* object, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(object) / page * page;
  const std::uintptr_t end =
      (reinterpret_cast<std::uintptr_t>(object) + size + page - 1) / page * page;
  void* const pages = reinterpret_cast<void*>(begin);
  const bool is_left_out = madvise(pages, end - begin, MADV_DONTDUMP) == 0;
  return mlock(pages, end - begin) == 0 && is_left_out;
}

void* allocate_locked(std::size_t size) {
  const std::size_t steps = steps_of(size);
  if (steps * kStepBytes > kLockedPieceMaxBytes) return nullptr;
  Pool& from = pool();
  const MutexLock lock(from.mutex);
  if (Free* const piece = from.free[steps]; piece != nullptr) {
    from.free[steps] = piece->next;
    return piece;
  }
  // What is left of a chunk is less than one piece: it stays unused.
  if (from.rest_bytes < steps * kStepBytes && !new_chunk(from)) return nullptr;
  char* const piece = from.rest;
  from.rest += steps * kStepBytes;
  from.rest_bytes -= steps * kStepBytes;
  return piece;
}

void release_locked(void* memory, std::size_t size) {
  ::explicit_bzero(memory, size);
  Pool& to = pool();
  const MutexLock lock(to.mutex);
  Free*& first = to.free[steps_of(size)];
  auto* const piece = static_cast<Free*>(memory);
  piece->next = first;
  first = piece;
}

}  // namespace edgecase::engine
