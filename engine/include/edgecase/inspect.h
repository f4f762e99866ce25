// A look into one file of a store, or the whole, offline: what it says of itself, and whether it is
// whole.
#pragma once

#include <string>

#include "edgecase/options.h"
#include "edgecase/result.h"

namespace edgecase {

// Reads all of the file at `path`, checks every checksum in it, and returns lines of "name: value".
// Any file of a store: a table (`.val`, `.meta`), IDENTITY, CURRENT, a manifest, a WAL slot; under
// another name it is known by what it begins with. Memory: one item, block or record. Errors:
// InvalidArgument (no file of a store), NotFound, Unsupported (newer format), IoError, Corruption
// naming the first damaged place.
//
// With `options.encryption` the key ring in `options.metadata_directory` opens it; without, an
// encrypted file is NotAllowed. Nothing else of `options` matters.
Result<std::string> inspect_file(FileSystem& file_system, const std::string& path,
                                 const Options& options = {});

// What a store holds (the directories and the encryption of `options` say which), in lines of the
// same kind: from the manifest and the heads of the log, so that it takes no longer for a large
// store; it may be open meanwhile, and then what it says is a moment old or the manifest has just
// been replaced (NotFound, Corruption: ask again). Errors: NotFound (no store), Unavailable (wrong
// or missing values drive), Corruption, Unsupported, IoError.
Result<std::string> inspect_store(FileSystem& file_system, const Options& options);

}  // namespace edgecase
