# Portable build for 64-bit ARM that needs nothing of the system: musl, fully static.
set(EDGECASE_ZIG_TARGET aarch64-linux-musl)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(EDGECASE_EMULATOR qemu-aarch64-static)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
