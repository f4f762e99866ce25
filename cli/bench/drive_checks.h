// What is looked at before a workload writes to directories that the user named.
#pragma once

#include <cstdint>
#include <string>

#include "edgecase/result.h"

namespace edgecase::cli::bench {

// InvalidArgument if the directory (empty: the working one) holds a store of EdgeCase.
Status check_no_store(const std::string& directory);
// InvalidArgument if both lead to one directory, through links too.
Status check_apart(const std::string& one, const std::string& other);
// OutOfSpace unless so many bytes are free where the directory (empty: the working one) lies.
Status check_room(const std::string& directory, std::uint64_t bytes);

}  // namespace edgecase::cli::bench
