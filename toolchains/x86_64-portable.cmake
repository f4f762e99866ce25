# Portable build for x86-64: any Linux with glibc 2.27 or later; everything but libc is linked in.
set(EDGECASE_ZIG_TARGET x86_64-linux-gnu.2.27)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
