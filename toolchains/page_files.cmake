# Makes a C++ source of the files of the page, compressed: for `cmake -P`, so that a build needs nothing more.
#   OUT   the source to write
#   DIR   the folder of the files; then their names, separated by commas, in FILES
# What index.html links as style.css stands in it: a page is first painted when its style is there. The policy allows
# this very style by its hash.
string(REPLACE "," ";" FILES "${FILES}")
set(text "// Made of daemon/http/page/ by toolchains/page_files.cmake.\n#include \"http/http_routes.h\"\n
namespace edgecase::http {\nnamespace {\n\n")
set(rows)
set(number 0)

# "sha256-…" of a text, as policies name it.
function(policy_hash text result)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 left "${text}")
  string(APPEND left 00) # a third byte for the last two
  set(base64 "")
  while(NOT left STREQUAL "")
    string(SUBSTRING ${left} 0 6 three)
    string(SUBSTRING ${left} 6 -1 left)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${three} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endwhile()
  string(REGEX REPLACE ".$" "=" base64 ${base64})
  set(${result} sha256-${base64} PARENT_SCOPE)
endfunction()

file(READ ${DIR}/style.css style)
policy_hash("${style}" style_hash)
set(link "<link rel=\"stylesheet\" href=\"/page/style.css\">")
foreach(file IN LISTS FILES)
  file(READ ${DIR}/${file} whole)
  string(REPLACE "${link}" "<style>${style}</style>" whole "${whole}")
  file(WRITE ${OUT}.whole "${whole}")
  file(ARCHIVE_CREATE OUTPUT ${OUT}.gz PATHS ${OUT}.whole FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${OUT}.gz bytes HEX)
  # Without the time at which it was compressed: the same files make the same program.
  string(SUBSTRING "${bytes}" 0 8 head)
  string(SUBSTRING "${bytes}" 16 -1 rest)
  set(bytes "${head}00000000${rest}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  file(SIZE ${OUT}.whole size)
  file(SHA256 ${OUT}.whole hash)
  string(SUBSTRING ${hash} 0 16 hash)
  string(APPEND text "constexpr unsigned char kFile${number}[] = {\n${bytes}};\n\n")
  string(APPEND rows "    {\"${file}\", \"${hash}\", kFile${number}, sizeof kFile${number}, ${size}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(REMOVE ${OUT}.gz ${OUT}.whole)
string(APPEND text "constexpr PageFile kFiles[] = {\n${rows}};\n\n}  // namespace\n
std::span<const PageFile> page_files() {\n  return kFiles;\n}\n
std::string_view page_style_hash() {\n  return \"${style_hash}\";\n}\n\n}  // namespace edgecase::http\n")
file(WRITE ${OUT} "${text}")
