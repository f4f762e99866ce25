// A small store of which one file is any bytes: looked into, opened and read, checked, repaired.
// Whatever the bytes, each of these ends, in words where it cannot be done.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "edgecase/bytes.h"
#include "file/file_names.h"

namespace edgecase::test {

// The files of a store that has something of everything, by path. The same at each call.
std::map<std::string, Bytes> store_files();

// `bytes`: the first says what is done with the store, the second which of its files of this type
// the rest is. What is missing at the file's end is zeros where it has a fixed size.
void take_store_file(engine::FileType type, std::string_view bytes);

}  // namespace edgecase::test
