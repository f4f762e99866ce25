#include "catalog/device_terms.h"

namespace edgecase::catalog {
namespace {

constexpr std::size_t kSizeBytes = 2;
// What a set takes beside its text: a node and its place in the table that finds it, a row, and
// what the allocator adds.
constexpr std::uint64_t kSetOverheadBytes = 144;

// A list is its texts, each behind its length.
void append_list_text(const std::vector<std::string>& terms, Bytes& out) {
  for (const std::string& each : terms) {
    out += static_cast<char>(each.size());
    out += each;
  }
}

}  // namespace

Bytes terms_text(const std::vector<std::string>& purposes,
                 const std::vector<std::string>& objections) {
  Bytes text(kSizeBytes, '\0');
  append_list_text(purposes, text);
  const std::size_t size = text.size() - kSizeBytes;
  text[0] = static_cast<char>(size & 0xff);
  text[1] = static_cast<char>(size >> 8);
  append_list_text(objections, text);
  return text;
}

bool holds_term(ByteView list, std::string_view term) {
  while (!list.empty()) {
    const std::size_t size = static_cast<unsigned char>(list.front());
    if (list.substr(1, size) == term) return true;
    list.remove_prefix(1 + size);
  }
  return false;
}

DeviceTerms::Slot DeviceTerms::key_of(std::string_view namespace_name,
                                      std::string_view device) const {
  SipHash hash(key_);
  hash.add(namespace_name);
  hash.add(std::string_view("\0", 1));  // no name holds it
  hash.add(device);
  const auto [first, second] = hash.finish();
  return {first, static_cast<std::uint32_t>(second), kNone};
}

// The place of the device, or where it would be put.
std::size_t DeviceTerms::place_of(const Slot& key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = key.hash & mask;
  while (slots_[i].set != kNone &&
         (slots_[i].hash != key.hash || slots_[i].more_hash != key.more_hash)) {
    i = (i + 1) & mask;
  }
  return i;
}

bool DeviceTerms::contains(std::string_view namespace_name, std::string_view device) const {
  return slots_[place_of(key_of(namespace_name, device))].set != kNone;
}

TermsView DeviceTerms::find(std::string_view namespace_name, std::string_view device) const {
  if (count_ == 0) return {};
  const Slot& slot = slots_[place_of(key_of(namespace_name, device))];
  if (slot.set == kNone) return {};
  const ByteView text = *sets_[slot.set].text;
  const std::size_t size =
      static_cast<unsigned char>(text[0]) | std::size_t{static_cast<unsigned char>(text[1])} << 8;
  return {text.substr(kSizeBytes, size), text.substr(kSizeBytes + size)};
}

void DeviceTerms::set(std::string_view namespace_name, std::string_view device,
                      const Bytes& terms) {
  const std::uint32_t id = take_set(terms);
  Slot slot = key_of(namespace_name, device);
  std::size_t place = place_of(slot);
  if (slots_[place].set != kNone) {
    release_set(slots_[place].set);
  } else if (++count_ * 4 > slots_.size() * 3) {
    grow();
    place = place_of(slot);
  }
  slot.set = id;
  slots_[place] = slot;
}

// Removes a device; slots behind it move up, as far as they may.
void DeviceTerms::remove(std::string_view namespace_name, std::string_view device) {
  std::size_t gap = place_of(key_of(namespace_name, device));
  if (slots_[gap].set == kNone) return;
  release_set(slots_[gap].set);
  --count_;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = (gap + 1) & mask; slots_[i].set != kNone; i = (i + 1) & mask) {
    const std::size_t wanted = slots_[i].hash & mask;
    if (((i - wanted) & mask) < ((i - gap) & mask)) continue;
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap] = {};
}

void DeviceTerms::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.set != kNone) slots_[place_of(slot)] = slot;
  }
}

std::uint32_t DeviceTerms::take_set(const Bytes& terms) {
  const auto [at, is_new] = ids_.try_emplace(terms, 0);
  if (is_new) {
    set_bytes_ += set_bytes(terms);
    if (free_ids_.empty()) {
      at->second = static_cast<std::uint32_t>(sets_.size());
      sets_.emplace_back();
    } else {
      at->second = free_ids_.back();
      free_ids_.pop_back();
    }
    sets_[at->second] = {&at->first, 0};
  }
  ++sets_[at->second].devices;
  return at->second;
}

void DeviceTerms::release_set(std::uint32_t id) {
  Set& set = sets_[id];
  if (--set.devices > 0) return;
  set_bytes_ -= set_bytes(*set.text);
  ids_.erase(ids_.find(*set.text));
  set.text = nullptr;
  free_ids_.push_back(id);
}

std::uint64_t DeviceTerms::set_bytes(const Bytes& terms) {
  return kSetOverheadBytes + terms.size();
}

std::uint64_t DeviceTerms::memory_bytes(std::size_t devices, std::uint64_t more_set_bytes) const {
  std::uint64_t slots = slots_.size();
  while ((count_ + devices) * 4 > slots * 3) slots *= 2;
  return slots * sizeof(Slot) + set_bytes_ + more_set_bytes;
}

}  // namespace edgecase::catalog
