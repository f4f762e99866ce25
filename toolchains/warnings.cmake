# Warnings for our own code only; linked PRIVATE by every target of ours. GCC 12 finds overlapping copies in its own
# std::string where it optimizes much (-O3); from 13 on it takes a reference to an element of a list for one into what
# the element was made of. doctest counts its test cases by a macro that Clang 22 takes for news in C.
add_library(edgecase_warnings INTERFACE)
target_compile_options(edgecase_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,22>>:-Wno-c2y-extensions>
  $<$<BOOL:${EDGECASE_WARNINGS_AS_ERRORS}>:-Werror>)
