# The one list of host transports: name, folder, and what its ranks are (threads of one process, or processes). Whatever
# stands here is compiled from its folder, offered by its name (src/transport/host_transport.hpp), a row of `hostless doctor`
# where it belongs to src/, and runs the contracts of transports and of solves and the random plans.
set(HOSTLESS_HOST_TRANSPORTS
  "threads   src/transport/threads   threads"
  "processes src/transport/processes processes"
  "openmpi   src/transport/mpi       processes"
  "mpich     src/transport/mpi       processes"
  "loopback  tests/transport/loopback threads")

# hostless_transports_in(top result): of those whose folder is in `top`, result_NAMES, and result_FOLDERS, each once.
function(hostless_transports_in top result)
  set(names "")
  set(folders "")
  foreach(entry IN LISTS HOSTLESS_HOST_TRANSPORTS)
    string(REGEX MATCHALL "[^ ]+" words "${entry}")
    list(GET words 0 name)
    list(GET words 1 folder)
    if(folder MATCHES "^${top}/")
      list(APPEND names ${name})
      list(APPEND folders ${folder})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(${result}_NAMES ${names} PARENT_SCOPE)
  set(${result}_FOLDERS ${folders} PARENT_SCOPE)
endfunction()

# hostless_compile_transports(target top function): adds to `target` what the folders in `top` compile, and `function`, which
# returns their transports. A folder adds its sources to ${hostless_transport_target}.
function(hostless_compile_transports target top function)
  hostless_transports_in(${top} listed)
  set(declared "")
  set(called "")
  foreach(name IN LISTS listed_NAMES)
    string(APPEND declared "HostTransport ${name}_transport();\n")
    string(APPEND called "${name}_transport(), ")
  endforeach()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${file}" CONTENT
[=[// Written by cmake/HostTransports.cmake.
#include "transport/host_transport.hpp"
namespace hostless {
@declared@std::vector<HostTransport> const& @function@() {
  static std::vector<HostTransport> const all = {@called@};
  return all;
}
}  // namespace hostless
]=] @ONLY)
  target_sources(${target} PRIVATE "${file}")
  set(hostless_transport_target ${target})
  foreach(folder IN LISTS listed_FOLDERS)
    add_subdirectory("${PROJECT_SOURCE_DIR}/${folder}" "${PROJECT_BINARY_DIR}/${folder}")
  endforeach()
endfunction()

# hostless_test_transports(program prefix RANKS ... LABELS ... TSAN_LABELS ... PROPERTIES ...): a test of ctest for each
# transport (with RANKS: for those whose ranks are such), <prefix>_<name>, which runs the parts of a GoogleTest program whose
# parameter begins with its name: they can run side by side, and fail apart. TSAN_LABELS are of those whose ranks are threads.
function(hostless_test_transports program prefix)
  cmake_parse_arguments(arg "" "RANKS" "LABELS;TSAN_LABELS;PROPERTIES" ${ARGN})
  target_link_libraries(${program} PRIVATE tested_transports)
  foreach(entry IN LISTS HOSTLESS_HOST_TRANSPORTS)
    string(REGEX MATCHALL "[^ ]+" words "${entry}")
    list(GET words 0 name)
    list(GET words 2 ranks)
    if(arg_RANKS AND NOT ranks STREQUAL arg_RANKS)
      continue()
    endif()
    add_test(NAME ${prefix}_${name} COMMAND ${program} --gtest_filter=*/${name}_*)
    set(labels ${arg_LABELS})
    if(ranks STREQUAL "threads")
      list(APPEND labels ${arg_TSAN_LABELS})
    endif()
    set_tests_properties(${prefix}_${name} PROPERTIES ${arg_PROPERTIES} LABELS "${labels}")
  endforeach()
  get_property(plugins GLOBAL PROPERTY hostless_transport_plugins)
  if(plugins)
    add_dependencies(${program} ${plugins})
  endif()
endfunction()
