#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace edgecase::engine {

TEST_CASE("what the fuzzer of the key ring has learned holds, bit by bit") {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(EDGECASE_GOLDEN_DIRECTORY "/../fuzz/corpus/key_ring")) {
    CAPTURE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto run = [&](std::size_t size) {
      // It stops the process where something does not hold.
      CHECK(LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), size) == 0);
    };
    run(bytes.size());
    for (std::size_t i = 0; i < bytes.size() && i < 400; ++i) {
      run(i);
      bytes[i] = static_cast<char>(bytes[i] ^ 1);
      run(bytes.size());
      bytes[i] = static_cast<char>(bytes[i] ^ 1);
    }
    ++files;
  }
  CHECK(files >= 5);
}

}  // namespace edgecase::engine
