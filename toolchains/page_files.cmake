# Makes a C++ source of the files of the page, compressed: for `cmake -P`, so that a build needs nothing more.
#   OUT   the source to write
#   DIR   the folder of the files; then their names, separated by commas, in FILES
string(REPLACE "," ";" FILES "${FILES}")
set(text "// Made of daemon/http/page/ by toolchains/page_files.cmake.\n#include \"http/page_files.h\"\n
namespace edgecase::http {\nnamespace {\n\n")
set(rows)
set(number 0)
foreach(file IN LISTS FILES)
  file(ARCHIVE_CREATE OUTPUT ${OUT}.gz PATHS ${DIR}/${file} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${OUT}.gz bytes HEX)
  # Without the time at which it was compressed: the same files make the same program.
  string(SUBSTRING "${bytes}" 0 8 head)
  string(SUBSTRING "${bytes}" 16 -1 rest)
  set(bytes "${head}00000000${rest}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  file(SIZE ${DIR}/${file} size)
  file(SHA256 ${DIR}/${file} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  string(APPEND text "constexpr unsigned char kFile${number}[] = {\n${bytes}};\n\n")
  string(APPEND rows "    {\"${file}\", \"${hash}\", kFile${number}, sizeof kFile${number}, ${size}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(REMOVE ${OUT}.gz)
string(APPEND text "constexpr PageFile kFiles[] = {\n${rows}};\n\n}  // namespace\n
std::span<const PageFile> page_files() {\n  return kFiles;\n}\n\n}  // namespace edgecase::http\n")
file(WRITE ${OUT} "${text}")
