// Finds devices by words of their names and places: the terms, and the search over them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/random.h"

namespace edgecase::catalog {

using SipKey = std::array<std::uint64_t, 2>;

// SipHash-2-4 with 128 bits: of names that others choose, and that must not be taken for each other
// by their hashes alone. Without the key nobody can make two with the same one. Pure functions.
class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d ^ 0xee),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      word_ |= std::uint64_t{static_cast<unsigned char>(byte)} << 8 * (size_ % 8);
      if (++size_ % 8 == 0) take_word();
    }
  }
  std::array<std::uint64_t, 2> finish() {
    word_ |= size_ << 56;
    take_word();
    v2_ ^= 0xee;
    rounds(4);
    const std::uint64_t first = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    rounds(4);
    return {first, v0_ ^ v1_ ^ v2_ ^ v3_};
  }

 private:
  void take_word() {
    v3_ ^= word_;
    rounds(2);
    v0_ ^= word_;
    word_ = 0;
  }
  void rounds(int count) {
    for (; count > 0; --count) {
      v0_ += v1_;
      v2_ += v3_;
      v1_ = std::rotl(v1_, 13) ^ v0_;
      v3_ = std::rotl(v3_, 16) ^ v2_;
      v0_ = std::rotl(v0_, 32);
      v2_ += v1_;
      v0_ += v3_;
      v1_ = std::rotl(v1_, 17) ^ v2_;
      v3_ = std::rotl(v3_, 21) ^ v0_;
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t word_ = 0;
  std::uint64_t size_ = 0;
};

// Purposes and objections, as one text.
Bytes terms_text(const std::vector<std::string>& purposes,
                 const std::vector<std::string>& objections);

struct TermsView {
  ByteView purposes, objections;  // lists, as they are in terms_text()

  bool is_empty() const { return purposes.empty() && objections.empty(); }
};
bool holds_term(ByteView list, std::string_view term);

// Purposes and objections of devices in memory, since every read asks for them. Each device takes
// 12 bytes of a hash of its name, by a key that nobody knows, and which of the sets of purposes and
// objections is its own; a set that many have is there once. Thread-compatible.
//
// A table of open addressing; what is removed leaves no gap behind.
class DeviceTerms {
 public:
  explicit DeviceTerms(Random& random)
      : key_{random.next(), random.next()}, slots_(kFirstCapacity) {}
  DeviceTerms(const DeviceTerms&) = delete;
  DeviceTerms& operator=(const DeviceTerms&) = delete;

  std::size_t size() const { return count_; }
  bool contains(std::string_view namespace_name, std::string_view device) const;
  // Empty where there is no such device. Until the next change.
  TermsView find(std::string_view namespace_name, std::string_view device) const;
  void set(std::string_view namespace_name, std::string_view device, const Bytes& terms);
  void remove(std::string_view namespace_name, std::string_view device);

  bool has_set(const Bytes& terms) const { return ids_.contains(terms); }
  static std::uint64_t set_bytes(const Bytes& terms);
  // With so many devices, and bytes of sets, more.
  std::uint64_t memory_bytes(std::size_t devices = 0, std::uint64_t more_set_bytes = 0) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kFirstCapacity = 64;  // a power of two, a quarter of it always empty

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t more_hash = 0;
    std::uint32_t set = kNone;  // kNone: the slot is empty
  };
  struct Set {
    const Bytes* text = nullptr;  // a key of ids_
    std::uint32_t devices = 0;
  };

  Slot key_of(std::string_view namespace_name, std::string_view device) const;
  std::size_t place_of(const Slot& key) const;
  std::uint32_t take_set(const Bytes& terms);
  void release_set(std::uint32_t id);
  void grow();

  const SipKey key_;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
  std::unordered_map<Bytes, std::uint32_t> ids_;  // of sets
  std::vector<Set> sets_;
  std::vector<std::uint32_t> free_ids_;
  std::uint64_t set_bytes_ = 0;
};

}  // namespace edgecase::catalog
