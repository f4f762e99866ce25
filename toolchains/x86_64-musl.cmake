# Portable build for x86-64 that needs nothing of the system: musl, fully static.
set(EDGECASE_ZIG_TARGET x86_64-linux-musl)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(EDGECASE_EMULATOR qemu-x86_64-static)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
