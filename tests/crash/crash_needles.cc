#include "crash/crash_needles.h"

#include <optional>
#include <string>
#include <utility>

namespace edgecase::test {

void Needles::note_handed_in(const Changes& changes) {
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::Put)
      handed_in_[change.place][change.key].push_back(change.value);
  }
}

void Needles::note_secret(const Changes& changes) {
  for (const Change& change : changes) {
    if (change.kind != Change::Kind::Put) continue;
    if (auto needle = needle_of(change.place, change.value)) gone_.push_back(*std::move(needle));
  }
}

void Needles::note_erased(const Change& range) {
  for (std::size_t key = range.key; key < range.key_end; ++key) {
    for (const ValueNumber number : handed_in_[range.place][key]) {
      if (auto needle = needle_of(range.place, number)) erased_.push_back(*std::move(needle));
    }
  }
}

void Needles::note_expired(std::size_t place, const std::vector<ValueNumber>& values) {
  for (const ValueNumber number : values) {
    if (auto needle = needle_of(place, number)) gone_.push_back(*std::move(needle));
  }
}

void Needles::note_gone() {
  gone_.insert(gone_.end(), erased_.begin(), erased_.end());
  erased_.clear();
}

Status Needles::find(MemoryFileSystem& disk) {
  for (Bytes& needle : gone_) disk.seek(std::move(needle));
  gone_.clear();
  const std::string found = disk.find_sought();
  return found.empty() ? ok()
                       : corruption(found + " holds what was erased, has expired or is secret");
}

}  // namespace edgecase::test
