# What the portable toolchain files have in common: Zig's Clang with its own libc++, for EDGECASE_ZIG_TARGET. Each
# of them sets that, CMAKE_SYSTEM_PROCESSOR and EDGECASE_EMULATOR, then includes this.
set(CMAKE_SYSTEM_NAME Linux)

# Checks that CMake compiles in projects of its own read this file again.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EDGECASE_SOURCES)
set(EDGECASE_SOURCES ${CMAKE_CURRENT_LIST_DIR}/../build/sources CACHE STRING
  "Directory, or URL of one, with the files of toolchains/sources.txt")
set(EDGECASE_ZIG ${EDGECASE_SOURCES}/zig/ziglang/zig CACHE FILEPATH "The compiler")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EDGECASE_ZIG)
if(NOT EXISTS ${EDGECASE_ZIG})
  message(FATAL_ERROR "No compiler at ${EDGECASE_ZIG}: toolchains/fetch-sources.sh fetches it")
endif()
file(REAL_PATH ${EDGECASE_ZIG} zig)

# One program each, as CMake and ccache want it. Zig's linker writes a path of the build into the symbols, which
# the installed file does not have.
set(tools ${CMAKE_BINARY_DIR}/tools)
foreach(tool "zig-clang:cc -target ${EDGECASE_ZIG_TARGET}" "zig-clang++:c++ -target ${EDGECASE_ZIG_TARGET}"
             "zig-ar:ar" "zig-ranlib:ranlib" "zig-strip:objcopy --strip-all")
  string(REGEX MATCH "^([^:]+):(.*)$" matched "${tool}")
  set(script "#!/bin/sh\nexec ${zig} ${CMAKE_MATCH_2} \"$@\"\n")
  if(NOT EXISTS ${tools}/${CMAKE_MATCH_1})
    file(WRITE ${tools}/${CMAKE_MATCH_1} "${script}")
    file(CHMOD ${tools}/${CMAKE_MATCH_1} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
      WORLD_READ WORLD_EXECUTE)
  endif()
endforeach()
# Zig's driver has no word for folding functions that are the same (--icf): what it ran last is run again.
if(NOT EXISTS ${tools}/zig-link)
  file(WRITE ${tools}/zig-link "#!/bin/sh
said=$(ZIG_VERBOSE_LINK=1 ${zig} c++ -target ${EDGECASE_ZIG_TARGET} \"$@\" 2>&1)
line=$(echo \"$said\" | grep '^ld[.]lld ' | tail -n 1)
[ -n \"$line\" ] || { echo \"$said\" >&2; exit 1; }
exec ${zig} ld.lld --icf=safe --no-warnings \${line#ld.lld }
")
  file(CHMOD ${tools}/zig-link PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
endif()
# The layout of std::function that needs no class, with its tables and names, for each function it holds: 3 % of the
# program. All C++ of the program is compiled here, so that nobody expects the other one.
set(CMAKE_CXX_FLAGS_INIT "-D_LIBCPP_ABI_OPTIMIZED_FUNCTION")
set(CMAKE_CXX_LINK_EXECUTABLE
  "${tools}/zig-link <FLAGS> <CMAKE_CXX_LINK_FLAGS> <LINK_FLAGS> <OBJECTS> -o <TARGET> <LINK_LIBRARIES>")
set(CMAKE_C_COMPILER ${tools}/zig-clang)
set(CMAKE_CXX_COMPILER ${tools}/zig-clang++)
set(CMAKE_AR ${tools}/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${tools}/zig-ranlib CACHE FILEPATH "")

# Nothing of the machine that builds is to be found.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_BINARY_DIR}/third_party)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

set(EDGECASE_BUNDLED ON)
if(NOT CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL CMAKE_SYSTEM_PROCESSOR AND EDGECASE_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${EDGECASE_EMULATOR})
endif()
