# Compiles the sources of a folder as one, and small folders of a library together: reading headers is most of what a
# whole build costs. A source that changes compiles all that is with it, so this is for builds made once, not for
# those one works in. Names in anonymous namespaces differ within a folder, and between folders that share a
# namespace. Sources that are replaced one by one stay alone (SKIP_UNITY_BUILD_INCLUSION).
option(EDGECASE_FOLDERS_AT_ONCE "Compile the sources of folders as one" OFF)

# For a compiler that has a GiB and a half. 0: each folder alone.
set(EDGECASE_BYTES_AT_ONCE 160000 CACHE STRING "Bytes of sources that are compiled as one, unless a folder has more")

function(edgecase_compile_folders_at_once)
  foreach(directory IN LISTS ARGN)
    get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      get_target_property(sources ${target} SOURCES)
      if(NOT type MATCHES "^(STATIC_LIBRARY|OBJECT_LIBRARY|EXECUTABLE)$")
        continue()
      endif()
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
      # What a class keeps of an anonymous namespace looks as if it came from a header; and where more is inlined,
      # GCC 12 takes more for not initialized. `release` has both warnings. GCC collects its garbage from so many
      # KiB on only: most sources are done before, in less time.
      target_compile_options(${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage -Wno-maybe-uninitialized
        --param=ggc-min-heapsize=800000>)
      set(folders)
      foreach(source IN LISTS sources)
        get_filename_component(folder ${source} DIRECTORY)
        get_filename_component(source ${source} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR}/${directory})
        string(MAKE_C_IDENTIFIER "in_${folder}" folder)
        if(NOT folder IN_LIST folders)
          list(APPEND folders ${folder})
          set(bytes_${folder} 0)
          set(sources_${folder})
        endif()
        if(EXISTS ${source})
          file(SIZE ${source} bytes)
          math(EXPR bytes_${folder} "${bytes_${folder}} + ${bytes}")
        endif()
        list(APPEND sources_${folder} ${source})
      endforeach()
      set(bytes_together ${EDGECASE_BYTES_AT_ONCE})
      foreach(folder IN LISTS folders)
        math(EXPR bytes_together "${bytes_together} + ${bytes_${folder}}")
        if(bytes_together GREATER EDGECASE_BYTES_AT_ONCE)
          set(group ${folder})
          set(bytes_together ${bytes_${folder}})
        endif()
        set_property(SOURCE ${sources_${folder}} DIRECTORY ${directory} PROPERTY UNITY_GROUP ${group})
      endforeach()
    endforeach()
  endforeach()
endfunction()
