# Portable build for 64-bit ARM: any Linux with glibc 2.27 or later; everything but libc is linked in.
set(EDGECASE_ZIG_TARGET aarch64-linux-gnu.2.27)
# Its tests find a glibc where debian-sysroot.sh put one.
set(EDGECASE_EMULATOR qemu-aarch64-static;-L;${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-arm64)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
