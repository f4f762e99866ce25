#include "support/simulated_disk.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "edgecase/status.h"

namespace edgecase::test {
namespace {

CutPolicy choose(SeededRandom& random, CutPolicy policy) {
  if (policy != CutPolicy::Any) return policy;
  return static_cast<CutPolicy>(random.below(static_cast<std::uint64_t>(CutPolicy::Any)));
}

// Appends up to this size are one write: what a buffering file hands to the kernel.
constexpr std::size_t kMergedAppendBytes = 4096;

}  // namespace

// --- SimulatedFile ---

void SimulatedFile::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return;
  if (write_once_) write_once_->note(offset, bytes);
  SparseBytes written(bytes);
  live_.write(offset, written);
  if (!unsynced_.empty()) {
    Write& last = unsynced_.back();
    if (!last.lost && last.offset + last.bytes.size() == offset &&
        last.bytes.size() + bytes.size() <= kMergedAppendBytes) {
      last.bytes.write(last.bytes.size(), bytes);
      return;
    }
  }
  unsynced_.push_back({offset, std::move(written), false});
}

void SimulatedFile::sync() {
  for (const Write& write : unsynced_) {
    if (!write.lost) change_durable().write(write.offset, write.bytes);
  }
  std::erase_if(unsynced_, [](const Write& write) { return !write.lost; });
}

void SimulatedFile::sync_range(std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t end = offset + size;
  std::vector<Write> rest;
  for (Write& write : unsynced_) {
    const std::uint64_t write_end = write.offset + write.bytes.size();
    const std::uint64_t from = std::max(offset, write.offset);
    const std::uint64_t to = std::min(end, write_end);
    if (from >= to) {
      rest.push_back(std::move(write));
      continue;
    }
    const auto part = [&](std::uint64_t begin, std::uint64_t until) {
      return write.bytes.part(begin - write.offset, until - begin);
    };
    if (!write.lost) change_durable().write(from, part(from, to));
    if (write.offset < from) rest.push_back({write.offset, part(write.offset, from), write.lost});
    if (to < write_end) rest.push_back({to, part(to, write_end), write.lost});
  }
  unsynced_ = std::move(rest);
}

void SimulatedFile::lose_unsynced() {
  for (Write& write : unsynced_) write.lost = true;
}

void SimulatedFile::fill(std::uint64_t size) {
  live_ = SparseBytes();
  live_.resize(size);
  change_durable() = live_;
}

void SimulatedFile::forget_behind(std::uint64_t size) {
  if (live_.size() > size) live_.resize(size);
  for (Write& write : unsynced_) {
    const std::uint64_t keep = size > write.offset ? size - write.offset : 0;
    if (write.bytes.size() > keep) write.bytes.resize(keep);
  }
}

void SimulatedFile::replace(SparseBytes bytes) {
  live_ = std::move(bytes);
  change_durable() = live_;
  unsynced_.clear();
}

void SimulatedFile::flip_bit(std::uint64_t byte, int bit) {
  if (!unsynced_.empty()) replace(live_);
  char c = '\0';
  EC_CHECK(live_.read(byte, 1, &c) == 1);
  c = static_cast<char>(c ^ (1 << bit));
  live_.write(byte, ByteView(&c, 1));
  change_durable().write(byte, ByteView(&c, 1));
}

void SimulatedFile::keep_sectors(SeededRandom& random, const Write& write) {
  const std::uint64_t end = write.offset + write.bytes.size();
  for (std::uint64_t offset = write.offset; offset < end;) {
    const std::uint64_t until = std::min((offset / kSectorBytes + 1) * kSectorBytes, end);
    if (random.below(2) == 0)
      change_durable().write(offset, write.bytes.part(offset - write.offset, until - offset));
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
      change_durable().write(begin, garbage);
    }
    begin = until;
  }
}

bool SimulatedFile::holds(const NeedleSet& needles) {
  if (durable_.written().size() < NeedleSet::kNeedleMinBytes) return false;
  if (holds_ || needles.size() == not_held_) return holds_;
  holds_ = needles.in(durable_.written(), not_held_);
  not_held_ = needles.size();
  return holds_;
}

SparseBytes& SimulatedFile::change_durable() {
  not_held_ = 0;
  holds_ = false;
  return durable_;
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
  for (std::size_t i = 0; i < whole; ++i)
    change_durable().write(unsynced_[i].offset, unsynced_[i].bytes);
  if (policy == CutPolicy::Sectors) {
    for (const Write& write : unsynced_) keep_sectors(random, write);
  }
  if ((policy == CutPolicy::Prefix || policy == CutPolicy::Torn) && whole < unsynced_.size()) {
    Write& last = unsynced_[whole];
    const std::size_t kept = random.below(last.bytes.size() + 1);
    change_durable().write(last.offset, last.bytes.part(0, kept));
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

// A file has one name: a rename that stays takes along those before it, whose names it goes on
// from.
void SimulatedDisk::apply(Names& names, const NameChange& change) {
  if (!change.from.empty()) names.erase(change.from);
  if (!change.from.empty() && change.file)
    std::erase_if(names, [&](const auto& name) { return name.second == change.file; });
  if (!change.to.empty()) names[change.to] = change.file;
}

void SimulatedDisk::change(NameChange change) {
  apply(live_, change);
  unsynced_.push_back(std::move(change));
}

void SimulatedDisk::add(const std::string& path, File file) {
  if (keeps_freed_ && file) kept_.emplace_back(path, file);
  if (written_twice_ && file) file->watch(std::make_unique<WriteOnce>(path, written_twice_));
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
  NeedleSet sought;
  for (const Bytes& needle : needles) sought.add(needle);
  return find_where([&](const SimulatedFile& file) { return sought.in(file.durable().written()); });
}

std::string SimulatedDisk::find_sought() {
  if (sought_.size() == 0) return "";
  return find_where([&](SimulatedFile& file) { return file.holds(sought_); });
}

std::string SimulatedDisk::find_where(const std::function<bool(SimulatedFile&)>& holds) {
  for (const auto& [path, file] : durable_) {
    if (file && holds(*file)) return path;
  }
  // Nobody can write to them any more.
  std::erase_if(kept_, [](const auto& kept) {
    return kept.second.use_count() == 1 && kept.second->durable().is_zero();
  });
  for (const auto& [path, file] : kept_) {
    if (holds(*file)) return path + (live_.contains(path) ? "" : ", freed");
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
