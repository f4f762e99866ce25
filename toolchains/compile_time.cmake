# Builds are long, and helped by one of two: a compiler cache where there is one, or else headers that nearly
# every source of a target reads, compiled once, which takes a build from nothing to less than half its time.
# Where CI is set in the environment nothing is taken from a cache, so that a build proves what it compiles.
if(CMAKE_CXX_COMPILER MATCHES ccache)  # a directory of its links comes first in PATH
  set(compiler_cache ON)
elseif(NOT DEFINED ENV{CI})
  find_program(CCACHE_PROGRAM ccache)
  if(CCACHE_PROGRAM)
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
    set(compiler_cache ON)
  endif()
endif()
if(compiler_cache)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
# OFF shows includes that a source forgot.
option(EDGECASE_PRECOMPILED_HEADERS "Compile the headers that most sources read once" ${precompile})

set(standard_headers <algorithm> <array> <chrono> <cstdint> <functional> <map> <memory> <mutex> <optional>
  <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>)

function(edgecase_precompile)
  cmake_parse_arguments(PARSE_ARGV 0 given "" "" "TARGETS;HEADERS")
  foreach(target ${given_TARGETS})
    if(TARGET ${target})
      target_precompile_headers(${target} PRIVATE ${standard_headers} ${given_HEADERS})
      # From a precompiled header GCC 12 warns of what it wrongly sees in its own std::string, too.
      target_compile_options(${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow>)
    endif()
  endforeach()
endfunction()

# Called when all targets are there.
function(edgecase_precompile_headers)
  if(NOT EDGECASE_PRECOMPILED_HEADERS)
    return()
  endif()
  edgecase_precompile(TARGETS edgecase_engine edgecase_app edgecase_audit edgecase_erase edgecase_query
    edgecase_wire edgecase_crash_support planted_tests)
  edgecase_precompile(TARGETS edgecase_mqtt edgecase_bench HEADERS <nlohmann/json.hpp>)
  edgecase_precompile(TARGETS edgecase_http HEADERS <nlohmann/json.hpp> <httplib.h>)
  edgecase_precompile(TARGETS edgecase_cli HEADERS <nlohmann/json.hpp> <CLI/CLI.hpp>)
  edgecase_precompile(TARGETS engine_tests HEADERS <doctest/doctest.h>)
  edgecase_precompile(TARGETS daemon_tests cli_tests HEADERS <doctest/doctest.h> <nlohmann/json.hpp>)
endfunction()
