// What libFuzzer calls. EDGECASE_FUZZ_TARGET names the target; run.sh sets it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/fuzz_targets.h"

namespace {

const edgecase::test::FuzzTarget* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("EDGECASE_FUZZ_TARGET");
  if (name != nullptr) target = edgecase::test::find_fuzz_target(name);
  if (target != nullptr) return 0;
  std::fprintf(stderr, "EDGECASE_FUZZ_TARGET has to be one of:\n");
  for (const auto& each : edgecase::test::fuzz_targets()) std::fprintf(stderr, "  %s\n", each.name);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target->take({reinterpret_cast<const char*>(data), size});
  return 0;
}
