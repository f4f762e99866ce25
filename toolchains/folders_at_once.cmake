# Compiles the sources of a folder as one: reading headers is most of what a whole build costs. A source that
# changes compiles its whole folder, so this is for builds made once, not for those one works in. Names in the
# anonymous namespaces of a folder differ. Sources that are replaced one by one stay alone
# (SKIP_UNITY_BUILD_INCLUSION).
option(EDGECASE_FOLDERS_AT_ONCE "Compile the sources of each folder as one" OFF)

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
      # GCC 12 takes more for not initialized. `release` has both warnings.
      target_compile_options(${target} PRIVATE
        $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage -Wno-maybe-uninitialized>)
      foreach(source IN LISTS sources)
        get_filename_component(folder ${source} DIRECTORY)
        string(MAKE_C_IDENTIFIER "in_${folder}" group)
        get_filename_component(source ${source} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR}/${directory})
        set_property(SOURCE ${source} DIRECTORY ${directory} PROPERTY UNITY_GROUP ${group})
      endforeach()
    endforeach()
  endforeach()
endfunction()
