// The records of DeviceIndex as bytes, and what may stand in them; layout: device_index.h.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "catalog/device_index.h"
#include "edgecase/bytes.h"

namespace edgecase::catalog {

// "namespace 0 device", as keys end in it, and back.
Bytes name_bytes(const DeviceName& name);
DeviceName parse_name(ByteView bytes);

// What the keys of a term begin with: kind, term, zero byte. And the first key behind all that
// begin so.
Bytes term_prefix(char kind, std::string_view term);
Bytes end_of(Bytes prefix);
// The prefixes of every term by which a device can be found.
std::vector<Bytes> index_prefixes(const DeviceMetadata& metadata);
std::vector<Bytes> prefixes_of(const DeviceFilter& filter);

// The key of the note that a term was taken back from a device, and back: device, term_prefix().
Bytes taken_back_key(const DeviceName& name, const Bytes& prefix);
std::pair<DeviceName, Bytes> parse_taken_back(ByteView key);

Bytes encode_metadata(const DeviceMetadata& metadata);
// Corruption; Unsupported: written by a newer version.
Result<DeviceMetadata> decode_metadata(ByteView record);

// InvalidArgument: a name, or more terms than a device may have.
Status check_metadata(const DeviceName& name, const DeviceMetadata& metadata);
// `after` keeps what consents there were, of one owner alone, and has another one where somebody
// says something else of owner, purposes or objections than `before`.
void note_consent(const DeviceMetadata& before, const Saying& saying, DeviceMetadata& after);
// Sorted, each once.
void tidy(std::vector<std::string>& terms);

}  // namespace edgecase::catalog
