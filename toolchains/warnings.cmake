# Warnings for our own code only; linked PRIVATE by every target of ours.
add_library(edgecase_warnings INTERFACE)
target_compile_options(edgecase_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${EDGECASE_WARNINGS_AS_ERRORS}>:-Werror>)
