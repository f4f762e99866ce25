// The certificate that remains of an erasure: when it was asked for, since when nobody can read
// what it took, when the bytes were gone, how much it was, and who it was of, by pseudonym alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "edgecase/bytes.h"
#include "edgecase/result.h"
#include "erase/store_drives.h"

namespace edgecase::erase {

// Pseudonyms of each kind in one certificate; the counts count all.
inline constexpr std::size_t kPseudonymsMax = 100;

enum class ErasureState : unsigned char {
  Pending,  // invisible for good; bytes remain
  Done,
};

struct Certificate {
  std::uint64_t number = 0;
  ErasureState state = ErasureState::Pending;
  std::int64_t asked_ns = 0, invisible_ns = 0, gone_ns = 0;
  std::string asked_by;                        // as Principal::name
  std::optional<std::int64_t> from_ns, to_ns;  // of what was erased; none: from the beginning, to
                                               // the end
  bool with_names = false;                     // the names of devices or sensors went, too

  std::uint64_t devices = 0, series = 0;
  std::optional<std::uint64_t> readings, bytes;  // as counted when asked; none: it was not possible
  std::uint64_t rules = 0;                       // retention rules that named a device, gone too
  std::uint64_t messages = 0;                    // of `_rejected` that named one, gone too
  // Hexadecimal pseudonyms.
  std::vector<std::string> device_pseudonyms, series_pseudonyms;
  std::string owner_pseudonym;  // empty: not asked for by owner

  // Scopes whose values nobody can read since, whatever became of the bytes.
  std::uint64_t destroyed_keys = 0;
  // As its drives were when it was written; none: by a version that did not look.
  std::optional<ErasureLevel> level;
  std::string level_why;  // why no more than that; empty: Physical, or pending

  // Once done.
  std::uint64_t removed_files = 0, overwritten_bytes = 0, rewritten_bytes = 0;
};

// Whether all that it took was of whole devices, each of which has a key of its own.
inline bool is_of_whole_devices(const Certificate& certificate) {
  return certificate.with_names && certificate.devices > 0 && certificate.series_pseudonyms.empty();
}

// As it is stored.
std::string encode_certificate(const Certificate& certificate);
// Corruption, Unsupported.
Result<Certificate> decode_certificate(ByteView record);

}  // namespace edgecase::erase
