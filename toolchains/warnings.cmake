# Warnings for our own code only; linked PRIVATE by every target of ours. doctest counts its test cases by a macro that
# Clang 22 takes for news in C.
add_library(edgecase_warnings INTERFACE)
target_compile_options(edgecase_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,22>>:-Wno-c2y-extensions>
  $<$<BOOL:${EDGECASE_WARNINGS_AS_ERRORS}>:-Werror>)
