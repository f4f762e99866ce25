// Texts that are looked for in many bytes at once, in one pass over every eighth of them. More can
// be added at any time; those that come later can be looked for alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "edgecase/bytes.h"

namespace edgecase::test {

class NeedleSet {
 public:
  static constexpr std::size_t kNeedleMinBytes = 11;

  void add(Bytes needle);
  std::size_t size() const { return needles_.size(); }

  // Whether one of them is in `bytes`; of those from the `first` one on, in the order they came.
  bool in(ByteView bytes, std::size_t first = 0) const;

 private:
  // A part of a needle: where one is found in a text, the whole may be around it.
  struct Part {
    std::size_t needle;
    std::size_t offset;
  };
  bool is_around(ByteView bytes, std::size_t at, std::uint32_t part, std::size_t first) const;

  std::vector<Bytes> needles_;
  std::unordered_multimap<std::uint32_t, Part> parts_;
  std::vector<std::uint64_t> marks_;  // a bit a mark of a part, of which there may be others
};

}  // namespace edgecase::test
