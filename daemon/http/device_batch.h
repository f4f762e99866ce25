// What POST /api/v1/devices takes: one object, an array of them, or NDJSON, each as GET
// /api/v1/device answers it:
//
//   {"namespace"?,"device","owner"?,"purposes"?,"objections"?,"location"?,"labels"?,
//    "consents"?:[{"since","by","purposes","objections"}]}
//
// What is given replaces what was said; empty takes it back; a label that is not given stays.
// Consents, as reports and backups tell them, are taken of devices that nothing is said of yet.
// Anything else in an object is refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/device_index.h"

namespace edgecase::http {

inline constexpr std::size_t kDescribedMax = 10'000;            // devices of one request
inline constexpr std::size_t kDescriptionsMaxBytes = 4u << 20;  // of one request

// InvalidArgument names the description that is wrong, by its number.
Result<std::vector<catalog::DeviceChange>> decode_descriptions(
    std::string_view body, const std::string& default_namespace);

}  // namespace edgecase::http
