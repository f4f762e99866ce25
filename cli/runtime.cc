// The executable's own parts of C++'s runtime.
//
// Memory that C++ gives back is wiped first: values and names that were erased, tokens, and keys
// are not to be found in what the allocator keeps for later. It costs a write of what was written
// before anyway, mostly in the processor's cache.
//
// The portable program (EDGECASE_SMALL) does without the 0.16 MB that libc++ has to spell out the
// type of an exception that nobody caught, in the last words of a process. The words then have the
// type as the compiler writes it (`c++filt -t` reads it).
#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define EDGECASE_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EDGECASE_SANITIZED
#endif

// A sanitizer has allocators of its own, and fills what is given back itself.
#ifndef EDGECASE_SANITIZED

namespace {

// Behind what was asked for nobody has written.
void give_back(void* memory, std::size_t size) {
  std::memset(memory, 0, size);
  asm volatile("" : : "r"(memory) : "memory");  // or the compiler would leave that out
  std::free(memory);
}
void give_back(void* memory) {
  if (memory != nullptr) give_back(memory, malloc_usable_size(memory));
}

}  // namespace

void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t size) noexcept {
  if (memory != nullptr) give_back(memory, size);
}
void operator delete[](void* memory, std::size_t size) noexcept {
  if (memory != nullptr) give_back(memory, size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

#endif

#ifdef EDGECASE_SMALL

extern "C" char* __cxa_demangle(const char* name, char* buffer, std::size_t* size, int* status);

extern "C" char* __cxa_demangle(const char*, char*, std::size_t*, int* status) {
  constexpr int kNotAName = -2;
  if (status != nullptr) *status = kNotAName;
  return nullptr;
}

#endif
