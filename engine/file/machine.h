// The machine, beside what the face's machine.h tells of it: memory for keys, and
// whether a time server has set the clock. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

namespace edgecase::engine {

// Memory for keys: never written to a swap device, and left out of core dumps. Where the system
// locks no more (RLIMIT_MEMLOCK) it is memory as any other.

// Locks the pages that hold `object`, which stay so: others may lie beside it. False: it could not.
bool lock_in_memory(const void* object, std::size_t size);

// From pages that hold nothing else. Wiped when it is given back, pages are kept. Null: none.
void* allocate_locked(std::size_t size);
void release_locked(void* memory, std::size_t size);
// What allocate_locked() can give at once.
inline constexpr std::size_t kLockedPieceMaxBytes = 1024;

// For containers with a node for each entry.
template <typename T>
struct LockedAllocator {
  using value_type = T;

  LockedAllocator() = default;
  template <typename U>
  LockedAllocator(const LockedAllocator<U>&) {}

  T* allocate(std::size_t count) {
    static_assert(sizeof(T) <= kLockedPieceMaxBytes && alignof(T) <= alignof(std::max_align_t));
    void* const memory = count == 1 ? allocate_locked(sizeof(T)) : nullptr;
    if (memory == nullptr) throw_no_memory();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) { release_locked(memory, count * sizeof(T)); }

  friend bool operator==(const LockedAllocator&, const LockedAllocator&) { return true; }

 private:
  // As operator new: the engine is built without exceptions, and ends.
  [[noreturn]] static void throw_no_memory() {
    static_cast<void>(::operator new(std::numeric_limits<std::ptrdiff_t>::max()));
    __builtin_trap();
  }
};

// The file that systemd-timesyncd touches after each answer, at least every 2,048 s. /run is empty
// after a start.
inline constexpr const char* kTimesyncdMark = "/run/systemd/timesync/synchronized";

// The mark was made by the clock as it is now, within the last hour: a clock that was set by more
// since does not fit it.
bool was_synchronised(const char* mark_path, std::int64_t wall_ns);

}  // namespace edgecase::engine
