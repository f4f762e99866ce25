# Everything that is not ours, found once, each as an imported target under `edgecase::third_party_*`.
# The portable builds bring everything themselves.
if(EDGECASE_BUNDLED)
  include(bundled)
  return()
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
add_library(edgecase::third_party_httplib ALIAS PkgConfig::HTTPLIB)

# paho's own CMake package wants OpenSSL; the plain asynchronous library is all we use.
find_path(PAHO_INCLUDE_DIRECTORY MQTTAsync.h REQUIRED)
find_library(PAHO_LIBRARY NAMES paho-mqtt3a REQUIRED)
add_library(edgecase_third_party_paho INTERFACE)
target_include_directories(edgecase_third_party_paho SYSTEM INTERFACE ${PAHO_INCLUDE_DIRECTORY})
target_link_libraries(edgecase_third_party_paho INTERFACE ${PAHO_LIBRARY} Threads::Threads)
add_library(edgecase::third_party_paho ALIAS edgecase_third_party_paho)

# Its own CMake package is not in Debian's.
find_path(MBEDTLS_INCLUDE_DIRECTORY mbedtls/ssl.h REQUIRED)
add_library(edgecase_third_party_mbedtls INTERFACE)
target_include_directories(edgecase_third_party_mbedtls SYSTEM
  INTERFACE ${MBEDTLS_INCLUDE_DIRECTORY})
foreach(part mbedtls mbedx509 mbedcrypto)  # as they depend on each other
  find_library(${part}_LIBRARY NAMES ${part} REQUIRED)
  target_link_libraries(edgecase_third_party_mbedtls INTERFACE ${${part}_LIBRARY})
endforeach()
# Digests and keys alone.
add_library(edgecase_third_party_mbedcrypto INTERFACE)
target_include_directories(edgecase_third_party_mbedcrypto SYSTEM
  INTERFACE ${MBEDTLS_INCLUDE_DIRECTORY})
target_link_libraries(edgecase_third_party_mbedcrypto INTERFACE ${mbedcrypto_LIBRARY})
add_library(edgecase::third_party_mbedcrypto ALIAS edgecase_third_party_mbedcrypto)
add_library(edgecase::third_party_mbedtls ALIAS edgecase_third_party_mbedtls)

# libnettle alone: AES-GCM needs no numbers larger than a word, so neither libhogweed nor GMP.
find_path(NETTLE_INCLUDE_DIRECTORY nettle/gcm.h REQUIRED)
find_library(NETTLE_LIBRARY NAMES nettle REQUIRED)
add_library(edgecase_third_party_nettle INTERFACE)
target_include_directories(edgecase_third_party_nettle SYSTEM INTERFACE ${NETTLE_INCLUDE_DIRECTORY})
target_link_libraries(edgecase_third_party_nettle INTERFACE ${NETTLE_LIBRARY})
add_library(edgecase::third_party_nettle ALIAS edgecase_third_party_nettle)

find_path(LZ4_INCLUDE_DIRECTORY lz4.h REQUIRED)
find_library(LZ4_LIBRARY NAMES lz4 REQUIRED)
add_library(edgecase_third_party_lz4 INTERFACE)
target_include_directories(edgecase_third_party_lz4 SYSTEM INTERFACE ${LZ4_INCLUDE_DIRECTORY})
target_link_libraries(edgecase_third_party_lz4 INTERFACE ${LZ4_LIBRARY})
add_library(edgecase::third_party_lz4 ALIAS edgecase_third_party_lz4)

pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
add_library(edgecase::third_party_zstd ALIAS PkgConfig::ZSTD)

# Its headers name Abseil's from the release of 2023 on: pkg-config knows which.
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
add_library(edgecase::third_party_re2 ALIAS PkgConfig::RE2)

find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Its own CMake package names the shared library; the headers alone do, and need no file beside us.
find_path(TOMLPLUSPLUS_INCLUDE_DIRECTORY toml++/toml.h REQUIRED)
add_library(edgecase_third_party_toml INTERFACE)
target_include_directories(edgecase_third_party_toml SYSTEM
  INTERFACE ${TOMLPLUSPLUS_INCLUDE_DIRECTORY})
add_library(edgecase::third_party_toml ALIAS edgecase_third_party_toml)
if(EDGECASE_TESTS)
  find_package(doctest REQUIRED)
endif()
