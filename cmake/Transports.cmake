# The one list of transports: name, folder, and a face. Of a host face that is what its ranks are (threads of one process, or
# processes): it is compiled from its folder, offered by its name (src/transport/host_transport.hpp), a row of `hostless doctor`
# where it belongs to src/, and runs the contracts of transports and of solves and the random plans. A stream face (stream) is
# told by the folder's facts.hpp (NAME_facts), and the GPU libraries have all *.gpu.cpp of the folder, among which NAME_stream()
# is defined (src/transport/stream/stream_transports.hpp); those below tests/ are in no library but that of tests.
set(HOSTLESS_TRANSPORTS
  "threads   src/transport/threads   threads"
  "processes src/transport/processes processes"
  "openmpi   src/transport/mpi       processes"
  "mpich     src/transport/mpi       processes"
  "composite src/transport/composite processes"
  "loopback  tests/transport/loopback threads"
  "nodes     tests/transport/nodes   processes"
  "peer      src/transport/peer      stream"
  "nccl      src/transport/nccl      stream"
  "nvshmem   src/transport/nvshmem   stream"
  "mpi       src/transport/mpi       stream"
  "host      src/transport/staged    stream"
  "peer_nccl src/transport/composite stream"
  "peer_mpi  src/transport/composite stream"
  "peer_host src/transport/composite stream"
  "loopback  tests/transport/loopback stream"
  "loopback_nodes tests/transport/loopback_nodes stream")

# hostless_transports_in(top face result): of those whose folder is in `top` and whose face is such a one (host or stream),
# result_NAMES with a folder of result_OF for each, and result_FOLDERS, each once.
function(hostless_transports_in top wanted result)
  set(names "")
  set(folders "")
  foreach(entry IN LISTS HOSTLESS_TRANSPORTS)
    string(REGEX MATCHALL "[^ ]+" words "${entry}")
    list(GET words 0 name)
    list(GET words 1 folder)
    list(GET words 2 face)
    if(NOT face STREQUAL "stream")
      set(face host)
    endif()
    if(folder MATCHES "^${top}/" AND face STREQUAL wanted)
      list(APPEND names ${name})
      list(APPEND folders ${folder})
    endif()
  endforeach()
  set(${result}_OF ${folders} PARENT_SCOPE)
  list(REMOVE_DUPLICATES folders)
  set(${result}_NAMES ${names} PARENT_SCOPE)
  set(${result}_FOLDERS ${folders} PARENT_SCOPE)
endfunction()

# hostless_compile_transports(target top function): adds to `target` what the folders in `top` compile, and `function`, which
# returns their host transports; and what is known of their stream faces, gpu_`function`. A folder adds its sources to
# ${hostless_transport_target}.
function(hostless_compile_transports target top function)
  hostless_transports_in(${top} stream streams)
  set(included "")
  set(facts "")
  foreach(name folder IN ZIP_LISTS streams_NAMES streams_OF)
    string(APPEND included "#include \"${PROJECT_SOURCE_DIR}/${folder}/facts.hpp\"\n")
    string(APPEND facts "gpu::${name}_facts, ")
  endforeach()
  hostless_transports_in(${top} host listed)
  set(declared "")
  set(called "")
  foreach(name IN LISTS listed_NAMES)
    string(APPEND declared "HostTransport ${name}_transport();\n")
    string(APPEND called "${name}_transport(), ")
  endforeach()
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${file}" CONTENT
[=[// Written by cmake/Transports.cmake.
#include "transport/host_transport.hpp"
@included@namespace hostless {
@declared@std::vector<HostTransport> const& @function@() {
  static std::vector<HostTransport> const all = {@called@};
  return all;
}
std::vector<GpuTransportFacts> const& gpu_@function@() {
  static std::vector<GpuTransportFacts> const all = {@facts@};
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

# hostless_list_streams(file result tops...): writes `file`, with stream_transports() of the faces whose folders are in `tops`;
# result: the *.gpu.cpp of those folders, without endings, below the project's folder.
function(hostless_list_streams file result)
  set(declared "")
  set(called "")
  set(sources "")
  foreach(top IN LISTS ARGN)
    hostless_transports_in(${top} stream listed)
    foreach(name folder IN ZIP_LISTS listed_NAMES listed_OF)
      string(APPEND declared "StreamTransport ${name}_stream();\n")
      string(APPEND called "${name}_stream(), ")
      file(GLOB found CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*.gpu.cpp")
      list(APPEND sources ${found})
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT "${file}" CONTENT
[=[// Written by cmake/Transports.cmake.
#include "transport/stream/stream_transports.hpp"
namespace hostless::gpu {
@declared@std::vector<StreamTransport> const& stream_transports() {
  static std::vector<StreamTransport> const all = {@called@};
  return all;
}
}  // namespace hostless::gpu
]=] @ONLY)
  list(REMOVE_DUPLICATES sources)
  list(TRANSFORM sources REPLACE "\\.gpu\\.cpp$" "")
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

# hostless_test_transports(program prefix RANKS ... LABELS ... TSAN_LABELS ... PROPERTIES ...): a test of ctest for each
# transport (with RANKS: for those whose ranks are such), <prefix>_<name>, which runs the parts of a GoogleTest program whose
# parameter begins with its name: they can run side by side, and fail apart. TSAN_LABELS are of those whose ranks are threads.
function(hostless_test_transports program prefix)
  cmake_parse_arguments(arg "" "RANKS" "LABELS;TSAN_LABELS;PROPERTIES" ${ARGN})
  target_link_libraries(${program} PRIVATE tested_transports)
  foreach(entry IN LISTS HOSTLESS_TRANSPORTS)
    string(REGEX MATCHALL "[^ ]+" words "${entry}")
    list(GET words 0 name)
    list(GET words 2 ranks)
    if(ranks STREQUAL "stream" OR (arg_RANKS AND NOT ranks STREQUAL arg_RANKS))
      continue()
    endif()
    add_test(NAME ${prefix}_${name} COMMAND ${program} --gtest_filter=*/${name}_*)
    set(labels ${arg_LABELS})
    if(ranks STREQUAL "threads")
      list(APPEND labels ${arg_TSAN_LABELS})
    endif()
    set_tests_properties(${prefix}_${name} PROPERTIES ${arg_PROPERTIES} LABELS "${labels}")
    if(name STREQUAL "mpich")
      hostless_start_mpich(${prefix}_${name})
    endif()
  endforeach()
  if(TARGET hostless_one_session)
    add_dependencies(${program} hostless_one_session)
  endif()
  get_property(plugins GLOBAL PROPERTY hostless_transport_plugins)
  if(plugins)
    add_dependencies(${program} ${plugins})
  endif()
endfunction()
