#include "support/simulated_disk.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/check.h"

namespace edgecase::test {
namespace {

CutPolicy choose(SeededRandom& random, CutPolicy policy) {
  if (policy != CutPolicy::Any) return policy;
  return static_cast<CutPolicy>(random.below(static_cast<std::uint64_t>(CutPolicy::Any)));
}

// Appends up to this size are one write: what a buffering file hands to the kernel.
constexpr std::size_t kMergedAppendBytes = 4096;

// Looks for many at once, in one pass: by what they begin with.
class Needles {
 public:
  explicit Needles(const std::vector<Bytes>& needles) {
    for (const Bytes& needle : needles) {
      EC_CHECK(needle.size() >= kHeadBytes);
      by_head_.emplace(head_of(needle.data()), needle);
      begins_[low_bits(head_of(needle.data()))] = true;
    }
  }

  bool in(ByteView bytes) const {
    for (std::size_t at = 0; at + kHeadBytes <= bytes.size(); ++at) {
      const std::uint32_t head = head_of(bytes.data() + at);
      if (begins_[low_bits(head)] && is_at(head, bytes.substr(at))) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kHeadBytes = sizeof(std::uint32_t);
  static constexpr std::uint32_t kLowBits = 0xffff;

  static std::uint32_t head_of(const char* bytes) {
    std::uint32_t head = 0;
    std::memcpy(&head, bytes, kHeadBytes);
    return head;
  }
  // Of what spreads texts that begin alike.
  static std::size_t low_bits(std::uint32_t head) {
    return (head * 2'654'435'761u >> 16) & kLowBits;
  }
  bool is_at(std::uint32_t head, ByteView bytes) const {
    const auto [begin, end] = by_head_.equal_range(head);
    return std::any_of(begin, end,
                       [&](const auto& each) { return bytes.starts_with(each.second); });
  }

  std::unordered_multimap<std::uint32_t, Bytes> by_head_;
  std::vector<bool> begins_ = std::vector<bool>(std::size_t{kLowBits} + 1);
};

}  // namespace

// --- SimulatedFile ---

void SimulatedFile::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  live_.write(offset, bytes);
  if (!unsynced_.empty()) {
    Write& last = unsynced_.back();
    if (!last.lost && last.offset + last.bytes.size() == offset &&
        last.bytes.size() + bytes.size() <= kMergedAppendBytes) {
      last.bytes.write(last.bytes.size(), bytes);
      return;
    }
  }
  unsynced_.push_back({offset, SparseBytes(bytes), false});
}

void SimulatedFile::sync() {
  for (const Write& write : unsynced_) {
    if (!write.lost) durable_.write(write.offset, write.bytes);
  }
  std::erase_if(unsynced_, [](const Write& write) { return !write.lost; });
}

void SimulatedFile::lose_unsynced() {
  for (Write& write : unsynced_) write.lost = true;
}

void SimulatedFile::fill(std::uint64_t size) {
  live_ = SparseBytes();
  live_.resize(size);
  durable_ = live_;
}

void SimulatedFile::forget_behind(std::uint64_t size) {
  if (live_.size() > size) live_.resize(size);
  for (Write& write : unsynced_) {
    const std::uint64_t keep = size > write.offset ? size - write.offset : 0;
    if (write.bytes.size() > keep) write.bytes.resize(keep);
  }
}

void SimulatedFile::replace(Bytes bytes) {
  live_ = SparseBytes(bytes);
  durable_ = live_;
  unsynced_.clear();
}

void SimulatedFile::keep_sectors(SeededRandom& random, const Write& write) {
  const std::uint64_t end = write.offset + write.bytes.size();
  for (std::uint64_t offset = write.offset; offset < end;) {
    const std::uint64_t until = std::min((offset / kSectorBytes + 1) * kSectorBytes, end);
    if (random.below(2) == 0)
      durable_.write(offset, write.bytes.part(offset - write.offset, until - offset));
    offset = until;
  }
}

// In [begin, end) where the file holds nothing yet: behind its end, and in sectors of zeros.
void SimulatedFile::leave_garbage(SeededRandom& random, std::uint64_t begin, std::uint64_t end) {
  while (begin < end) {
    const std::uint64_t sector = begin / kSectorBytes * kSectorBytes;
    const std::uint64_t until = std::min(sector + kSectorBytes, end);
    if (durable_.part(begin, until - begin).is_zero()) {
      Bytes garbage(until - begin, '\0');
      for (char& byte : garbage) byte = static_cast<char>(random.next());
      durable_.write(begin, garbage);
    }
    begin = until;
  }
}

void SimulatedFile::cut(SeededRandom& random, CutPolicy policy) {
  if (unsynced_.empty()) {  // most files, and some are large
    if (live_.size() != durable_.size()) live_ = durable_;
    return;
  }
  std::erase_if(unsynced_, [](const Write& write) { return write.lost; });
  policy = choose(random, policy);
  const std::size_t whole = policy == CutPolicy::All ? unsynced_.size()
                            : policy == CutPolicy::Prefix || policy == CutPolicy::Torn
                                ? random.below(unsynced_.size() + 1)
                                : 0;
  for (std::size_t i = 0; i < whole; ++i) durable_.write(unsynced_[i].offset, unsynced_[i].bytes);
  if (policy == CutPolicy::Sectors) {
    for (const Write& write : unsynced_) keep_sectors(random, write);
  }
  if ((policy == CutPolicy::Prefix || policy == CutPolicy::Torn) && whole < unsynced_.size()) {
    Write& last = unsynced_[whole];
    const std::size_t kept = random.below(last.bytes.size() + 1);
    durable_.write(last.offset, last.bytes.part(0, kept));
    if (policy == CutPolicy::Torn)
      leave_garbage(random, last.offset + kept, last.offset + last.bytes.size());
  }
  unsynced_.clear();
  live_ = durable_;
}

// --- SimulatedDisk ---

std::string SimulatedDisk::parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

void SimulatedDisk::add_root(const std::string& path) {
  roots_.push_back(path);
  live_[path] = nullptr;
  durable_[path] = nullptr;
}

bool SimulatedDisk::is_directory(const std::string& path) const {
  const auto found = live_.find(path);
  return found != live_.end() && found->second == nullptr;
}

SimulatedDisk::File SimulatedDisk::file(const std::string& path) const {
  const auto found = live_.find(path);
  return found == live_.end() ? nullptr : found->second;
}

std::vector<std::string> SimulatedDisk::children(const std::string& directory) const {
  std::vector<std::string> paths;
  const std::string prefix = directory + "/";
  for (auto i = live_.lower_bound(prefix); i != live_.end() && i->first.starts_with(prefix); ++i) {
    if (parent_of(i->first) == directory) paths.push_back(i->first);
  }
  return paths;
}

void SimulatedDisk::apply(Names& names, const NameChange& change) {
  if (!change.from.empty()) names.erase(change.from);
  if (!change.to.empty()) names[change.to] = change.file;
}

void SimulatedDisk::change(NameChange change) {
  apply(live_, change);
  unsynced_.push_back(std::move(change));
}

void SimulatedDisk::add(const std::string& path, File file) {
  if (keeps_freed_ && file) kept_.emplace_back(path, file);
  change({"", path, std::move(file)});
}
void SimulatedDisk::remove(const std::string& path) {
  change({path, "", nullptr});
}
void SimulatedDisk::rename(const std::string& from, const std::string& to) {
  change({from, to, file(from)});
}

bool SimulatedDisk::is_in(const NameChange& change, const std::string& directory) {
  return (!change.from.empty() && parent_of(change.from) == directory) ||
         (!change.to.empty() && parent_of(change.to) == directory);
}

void SimulatedDisk::sync_directory(const std::string& directory) {
  std::erase_if(unsynced_, [&](const NameChange& change) {
    if (change.lost || !is_in(change, directory)) return false;
    apply(durable_, change);
    return true;
  });
}

void SimulatedDisk::lose_unsynced_names(const std::string& directory) {
  for (NameChange& change : unsynced_) {
    if (is_in(change, directory)) change.lost = true;
  }
}

void SimulatedDisk::cut_names(SeededRandom& random, CutPolicy policy, const Concerns& concerns) {
  // Directories one after another, in the order of their names, so that a seed decides alone.
  std::map<std::string, std::vector<const NameChange*>> directories;
  for (const NameChange& change : unsynced_) {
    const std::string& name = change.to.empty() ? change.from : change.to;
    if (!change.lost && concerns(name)) directories[parent_of(name)].push_back(&change);
  }
  for (const auto& [directory, changes] : directories) {
    const CutPolicy chosen = choose(random, policy);
    const std::size_t prefix = random.below(changes.size() + 1);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const bool kept = chosen == CutPolicy::All ||
                        (chosen == CutPolicy::Sectors && random.below(2) == 0) ||
                        ((chosen == CutPolicy::Prefix || chosen == CutPolicy::Torn) && i < prefix);
      if (kept) apply(durable_, *changes[i]);
    }
  }
  std::erase_if(unsynced_, [&](const NameChange& change) {
    return concerns(change.to.empty() ? change.from : change.to);
  });
}

void SimulatedDisk::cut(SeededRandom& random, CutPolicy policy, const Concerns& concerns) {
  const Concerns touched = concerns ? concerns : [](const std::string&) { return true; };
  cut_names(random, policy, touched);
  // What lies in a directory that is not there is not there.
  std::erase_if(durable_, [&](const auto& name) {
    for (std::string path = name.first;
         std::find(roots_.begin(), roots_.end(), path) == roots_.end();) {
      path = parent_of(path);
      const auto found = durable_.find(path);
      if (found == durable_.end() || found->second != nullptr) return true;
    }
    return false;
  });
  std::set<SimulatedFile*> done;
  for (const auto& [path, file] : durable_) {
    if (file && touched(path) && done.insert(file.get()).second) file->cut(random, policy);
  }
  std::erase_if(live_, [&](const auto& name) { return touched(name.first); });
  for (const auto& name : durable_) {
    if (touched(name.first)) live_.insert(name);
  }
}

std::uint64_t SimulatedDisk::used_bytes(std::string_view root) const {
  std::uint64_t used = 0;
  for (const auto& [path, file] : live_) {
    if (file && path.starts_with(root)) used += file->live().size();
  }
  return used;
}

std::string SimulatedDisk::find_bytes(const std::vector<Bytes>& needles) {
  const Needles any(needles);
  for (const auto& [path, file] : durable_) {
    if (file && any.in(file->durable().written())) return path;
  }
  // Nobody can write to them any more.
  std::erase_if(kept_, [](const auto& kept) {
    return kept.second.use_count() == 1 && kept.second->durable().is_zero();
  });
  for (const auto& [path, file] : kept_) {
    if (any.in(file->durable().written())) return path + (live_.contains(path) ? "" : ", freed");
  }
  return "";
}

std::map<std::string, Bytes> SimulatedDisk::durable_contents() const {
  std::map<std::string, Bytes> contents;
  for (const auto& [path, file] : durable_) {
    if (file) contents[path] = file->durable().whole();
  }
  return contents;
}

}  // namespace edgecase::test
