# Distribution cross build for 64-bit ARM: Debian's Clang (the portable programs are Clang's too) with what
# its cross GCC brings; the arm64 libraries of the same release in EDGECASE_SYSROOT (debian-sysroot.sh makes one),
# tests under qemu's user mode.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Checks that CMake compiles in projects of its own read this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EDGECASE_SYSROOT)
if(NOT EDGECASE_SYSROOT)
  message(FATAL_ERROR "EDGECASE_SYSROOT is not set: toolchains/debian-sysroot.sh arm64 DIRECTORY fills one")
endif()

foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET aarch64-linux-gnu)
endforeach()
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)

# Debian's cross compiler brings libc, libstdc++ and the linker, of the same release, so only the search for packages
# is turned towards the sysroot; what libraries need of each other is looked up there too.
set(CMAKE_FIND_ROOT_PATH ${EDGECASE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${EDGECASE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${EDGECASE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${EDGECASE_SYSROOT}/usr/share/pkgconfig)
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT
       " -Wl,-rpath-link,${EDGECASE_SYSROOT}/usr/lib/aarch64-linux-gnu"
       " -Wl,-rpath-link,${EDGECASE_SYSROOT}/lib/aarch64-linux-gnu")

# Headers that Debian keeps apart for each architecture, OpenSSL's among them; the compiler's own come first.
string(APPEND CMAKE_CXX_FLAGS_INIT " -idirafter ${EDGECASE_SYSROOT}/usr/include/aarch64-linux-gnu")

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${EDGECASE_SYSROOT})
