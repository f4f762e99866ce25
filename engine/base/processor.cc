#include "edgecase/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace edgecase {

bool has_aes_instructions() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0;
#elif defined(__aarch64__)
  constexpr unsigned long kHwcapAes = 1ul << 3;  // HWCAP_AES of the kernel's aarch64 ABI
  return (getauxval(AT_HWCAP) & kHwcapAes) != 0;
#else
  return false;
#endif
}

}  // namespace edgecase
