# What dependencies.cmake finds in a distribution, built from the pinned sources of sources.txt instead, under the
# same names. The sources are unpacked into the build tree. All of it is linked statically.
set(third_party ${CMAKE_BINARY_DIR}/third_party)

# What Zig links by itself it does not need to be told; what it says of it depends on what its cache holds.
foreach(language C CXX)
  set(CMAKE_${language}_IMPLICIT_LINK_LIBRARIES "")
  set(CMAKE_${language}_IMPLICIT_LINK_DIRECTORIES "")
endforeach()

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/sources.txt pins REGEX "^[^#]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/sources.txt)

# Unpacks the pinned file `name` and sets `directory` to the one directory, or the directory with all, it held.
function(edgecase_unpack name directory)
  while(pins)
    list(POP_FRONT pins head file sum)
    if(NOT head MATCHES "^${name} ")
      continue()
    endif()
    string(STRIP "${file}" file)
    string(STRIP "${sum}" sum)
    set(into ${third_party}/${name})
    set(archive ${EDGECASE_SOURCES}/${file})
    if(EDGECASE_SOURCES MATCHES "^[a-z]+://")
      set(archive ${third_party}/${file})
      file(DOWNLOAD ${EDGECASE_SOURCES}/${file} ${archive} EXPECTED_HASH SHA256=${sum})
    endif()
    if(NOT EXISTS ${archive})
      message(FATAL_ERROR "No ${archive}: toolchains/fetch-sources.sh fetches it")
    endif()
    set(stamp "")
    if(EXISTS ${into}.sha256)
      file(READ ${into}.sha256 stamp)
    endif()
    if(NOT stamp STREQUAL sum)
      file(SHA256 ${archive} found)
      if(NOT found STREQUAL sum)
        message(FATAL_ERROR "${archive} has SHA-256 ${found}, not ${sum}")
      endif()
      file(REMOVE_RECURSE ${into})
      file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${into})
      file(WRITE ${into}.sha256 ${sum})
    endif()
    file(GLOB inside LIST_DIRECTORIES true ${into}/*)
    list(LENGTH inside count)
    if(NOT count EQUAL 1)
      set(inside ${into})
    endif()
    set(${directory} ${inside} PARENT_SCOPE)
    return()
  endwhile()
  message(FATAL_ERROR "toolchains/sources.txt has no ${name}")
endfunction()

# A static library of others' C or C++: no warnings of ours, the same protections.
function(edgecase_third_party name)
  add_library(edgecase_third_party_${name} STATIC ${ARGN})
  set_target_properties(edgecase_third_party_${name} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
  target_compile_options(edgecase_third_party_${name} PRIVATE -w)
  add_library(edgecase::third_party_${name} ALIAS edgecase_third_party_${name})
endfunction()

find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Headers alone.
edgecase_unpack(cli11 cli11)
add_library(CLI11::CLI11 INTERFACE IMPORTED)
target_include_directories(CLI11::CLI11 SYSTEM INTERFACE ${cli11}/include)
edgecase_unpack(nlohmann-json nlohmann_json)
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE ${nlohmann_json}/single_include)
edgecase_unpack(doctest doctest)
add_library(doctest::doctest INTERFACE IMPORTED)
target_include_directories(doctest::doctest SYSTEM INTERFACE ${doctest})
list(APPEND CMAKE_MODULE_PATH ${doctest}/scripts/cmake)
# A Debian package: an archive in an archive.
edgecase_unpack(tomlplusplus tomlplusplus)
if(NOT EXISTS ${tomlplusplus}/usr)
  file(ARCHIVE_EXTRACT INPUT ${tomlplusplus}/data.tar.xz DESTINATION ${tomlplusplus} PATTERNS "*/include/*")
endif()
add_library(edgecase_third_party_toml INTERFACE)
target_include_directories(edgecase_third_party_toml SYSTEM INTERFACE ${tomlplusplus}/usr/include)
add_library(edgecase::third_party_toml ALIAS edgecase_third_party_toml)

edgecase_unpack(zlib zlib)
edgecase_third_party(zlib ${zlib}/adler32.c ${zlib}/compress.c ${zlib}/crc32.c ${zlib}/deflate.c ${zlib}/inffast.c
  ${zlib}/inflate.c ${zlib}/inftrees.c ${zlib}/trees.c ${zlib}/uncompr.c ${zlib}/zutil.c)
target_include_directories(edgecase_third_party_zlib SYSTEM PUBLIC ${zlib})
add_library(ZLIB::ZLIB ALIAS edgecase_third_party_zlib)

edgecase_unpack(lz4 lz4)
edgecase_third_party(lz4 ${lz4}/lib/lz4.c)
target_include_directories(edgecase_third_party_lz4 SYSTEM PUBLIC ${lz4}/lib)

# Without its slower levels, older formats, dictionaries of training and threads: a fifth of the whole.
edgecase_unpack(zstd zstd)
set(zstd_sources common/entropy_common common/error_private common/fse_decompress common/xxhash common/zstd_common
  compress/fse_compress compress/hist compress/huf_compress compress/zstd_compress compress/zstd_compress_literals
  compress/zstd_compress_sequences compress/zstd_compress_superblock compress/zstd_fast
  compress/zstd_ldm compress/zstd_preSplit
  decompress/huf_decompress decompress/zstd_ddict decompress/zstd_decompress decompress/zstd_decompress_block)
list(TRANSFORM zstd_sources PREPEND ${zstd}/lib/)
list(TRANSFORM zstd_sources APPEND .c)
edgecase_third_party(zstd ${zstd_sources})
target_compile_definitions(edgecase_third_party_zstd PRIVATE ZSTD_LEGACY_SUPPORT=0 ZSTD_DISABLE_ASM=1 DYNAMIC_BMI2=0
  ZSTD_STRIP_ERROR_STRINGS=1 ZSTD_NO_INLINE=1 HUF_FORCE_DECOMPRESS_X1=1 ZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT=1
  ZSTD_EXCLUDE_DFAST_BLOCK_COMPRESSOR=1 ZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR=1 ZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR=1
  ZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR=1 ZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR=1
  ZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR=1 ZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR=1)
target_include_directories(edgecase_third_party_zstd SYSTEM PUBLIC ${zstd}/lib)

# The last of Debian's without Abseil. Its tables are made as Debian makes them, of its data of Unicode.
edgecase_unpack(re2 re2)
edgecase_unpack(unicode-data unicode)
if(NOT EXISTS ${unicode}/usr)
  file(ARCHIVE_EXTRACT INPUT ${unicode}/data.tar.xz DESTINATION ${unicode}
    PATTERNS "*/CaseFolding.txt" "*/Scripts.txt" "*/UnicodeData.txt")
endif()
if(NOT EXISTS ${re2}/re2/unicode_groups.cc)
  file(READ ${re2}/re2/unicode.py script)
  string(REGEX REPLACE "_UNICODE_DIR = \"[^\"]*\"" "_UNICODE_DIR = \"${unicode}/usr/share/unicode\"" script "${script}")
  file(WRITE ${re2}/re2/unicode.py "${script}")
  execute_process(COMMAND perl ${re2}/re2/make_perl_groups.pl
    OUTPUT_FILE ${re2}/re2/perl_groups.cc COMMAND_ERROR_IS_FATAL ANY)
  foreach(table casefold groups)
    execute_process(COMMAND ${Python3_EXECUTABLE} ${re2}/re2/make_unicode_${table}.py
      OUTPUT_FILE ${re2}/re2/unicode_${table}.cc COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endif()
set(re2_sources bitstate compile dfa mimics_pcre nfa onepass parse perl_groups prog re2 regexp simplify
  stringpiece tostring unicode_casefold unicode_groups)
list(TRANSFORM re2_sources PREPEND ${re2}/re2/)
list(TRANSFORM re2_sources APPEND .cc)
edgecase_third_party(re2 ${re2_sources} ${re2}/util/rune.cc ${re2}/util/strutil.cc)
target_compile_features(edgecase_third_party_re2 PUBLIC cxx_std_20)
target_include_directories(edgecase_third_party_re2 SYSTEM PUBLIC ${re2})
target_compile_options(edgecase_third_party_re2 PRIVATE -Os)
target_link_libraries(edgecase_third_party_re2 PUBLIC Threads::Threads)

# Split as Debian does, with Debian's security patches; without OpenSSL.
edgecase_unpack(cpp-httplib httplib)
edgecase_unpack(cpp-httplib-patches httplib_patches)
if(NOT EXISTS ${httplib}/out/httplib.cc)
  file(STRINGS ${httplib_patches}/patches/series series)
  foreach(patch IN LISTS series)
    execute_process(COMMAND patch --silent --strip=1 --input ${httplib_patches}/patches/${patch}
      WORKING_DIRECTORY ${httplib} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  execute_process(COMMAND ${Python3_EXECUTABLE} ${httplib}/split.py -o ${httplib}/out
    OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endif()
edgecase_third_party(httplib ${httplib}/out/httplib.cc)
target_compile_features(edgecase_third_party_httplib PUBLIC cxx_std_20)
target_include_directories(edgecase_third_party_httplib SYSTEM PUBLIC ${httplib}/out)
target_compile_definitions(edgecase_third_party_httplib PUBLIC CPPHTTPLIB_ZLIB_SUPPORT)
target_compile_options(edgecase_third_party_httplib PRIVATE ${EDGECASE_SELDOM_RUN})  # of a request it sees one line
target_link_libraries(edgecase_third_party_httplib PUBLIC Threads::Threads ZLIB::ZLIB)

edgecase_unpack(paho-mqtt-c paho)
set(paho ${paho}/paho.mqtt.c/src)
function(edgecase_configure_paho)
  set(BUILD_TIMESTAMP "")
  set(PROJECT_VERSION 1.3.16)
  set(PROJECT_VERSION_MAJOR 1)
  set(PROJECT_VERSION_MINOR 3)
  set(PROJECT_VERSION_PATCH 16)
  configure_file(${paho}/VersionInfo.h.in ${third_party}/paho/VersionInfo.h @ONLY)
endfunction()
edgecase_configure_paho()
set(paho_sources MQTTTime MQTTProtocolClient Clients utf-8 MQTTPacket MQTTPacketOut Messages Tree Socket Log
  MQTTPersistence Thread MQTTProtocolOut MQTTPersistenceDefault SocketBuffer LinkedList MQTTProperties
  MQTTReasonCodes Base64 SHA1 WebSocket Proxy MQTTAsync MQTTAsyncUtils)
list(TRANSFORM paho_sources PREPEND ${paho}/)
list(TRANSFORM paho_sources APPEND .c)
edgecase_third_party(paho ${paho_sources})
# Without tracing and counting of its memory; what it says goes nowhere here.
target_compile_definitions(edgecase_third_party_paho
  PUBLIC PAHO_MQTT_STATIC=1 PRIVATE _GNU_SOURCE HIGH_PERFORMANCE=1)
target_include_directories(edgecase_third_party_paho SYSTEM PUBLIC ${paho} PRIVATE ${third_party}/paho)
target_link_libraries(edgecase_third_party_paho PUBLIC Threads::Threads)

# Nettle's own build makes its assembler files; "fat" chooses among them by what the processor has. On 64-bit ARM it
# asks the kernel for that where the libc is glibc, and elsewhere only if it is told that getauxval() is there.
edgecase_unpack(nettle nettle)
include(ExternalProject)
set(nettle_library ${third_party}/nettle-build/libnettle.a)
list(JOIN CMAKE_C_COMPILER_LAUNCHER " " launcher)
set(nettle_flags "-O2 -fPIC -fno-unwind-tables -fno-asynchronous-unwind-tables -ffile-prefix-map=${CMAKE_BINARY_DIR}/=")
string(APPEND nettle_flags " -DUSE_GETAUXVAL=1")
ExternalProject_Add(edgecase_nettle
  SOURCE_DIR ${nettle}
  BINARY_DIR ${third_party}/nettle-build
  CONFIGURE_COMMAND ${CMAKE_COMMAND} -E env "CC=${launcher} ${CMAKE_C_COMPILER}" CC_FOR_BUILD=cc
    "CFLAGS=${nettle_flags}" "ASM_FLAGS=" AR=${CMAKE_AR} RANLIB=${CMAKE_RANLIB}
    ${nettle}/configure --quiet --host=${CMAKE_SYSTEM_PROCESSOR}-linux --enable-fat --disable-shared
    --disable-public-key --disable-openssl --disable-documentation
  COMMAND make --silent clean  # of what other flags have made
  BUILD_COMMAND make --silent libnettle.a
  INSTALL_COMMAND ""
  BUILD_BYPRODUCTS ${nettle_library}
  LOG_CONFIGURE ON LOG_BUILD ON LOG_OUTPUT_ON_FAILURE ON)
# Its sources say <nettle/gcm.h> of files that lie beside each other.
file(MAKE_DIRECTORY ${third_party}/include)
file(CREATE_LINK ${nettle} ${third_party}/include/nettle SYMBOLIC)
add_library(edgecase_third_party_nettle INTERFACE)
add_dependencies(edgecase_third_party_nettle edgecase_nettle)
target_include_directories(edgecase_third_party_nettle SYSTEM INTERFACE ${third_party}/include
  ${third_party}/nettle-build)
target_link_libraries(edgecase_third_party_nettle INTERFACE ${nettle_library})
add_library(edgecase::third_party_nettle ALIAS edgecase_third_party_nettle)

# Cipher code of the library has been compiled wrongly at -O3. Its AES-GCM is Nettle's (mbedtls/gcm_alt.h).
edgecase_unpack(mbedtls mbedtls)
file(GLOB mbedtls_sources ${mbedtls}/library/*.c)
edgecase_third_party(mbedtls ${mbedtls_sources} ${CMAKE_CURRENT_LIST_DIR}/mbedtls/gcm_alt.c)
target_compile_definitions(edgecase_third_party_mbedtls
  PUBLIC "MBEDTLS_USER_CONFIG_FILE=\"${CMAKE_CURRENT_LIST_DIR}/mbedtls/config.h\"")
target_include_directories(edgecase_third_party_mbedtls
  SYSTEM PUBLIC ${mbedtls}/include ${CMAKE_CURRENT_LIST_DIR}/mbedtls)
target_compile_options(edgecase_third_party_mbedtls PRIVATE -O2)
target_link_libraries(edgecase_third_party_mbedtls
  PUBLIC Threads::Threads PRIVATE edgecase::third_party_nettle)
add_library(edgecase::third_party_mbedcrypto ALIAS edgecase_third_party_mbedtls)
