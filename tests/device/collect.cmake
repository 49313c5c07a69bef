# Puts programs, the command, the GPU libraries and the shared libraries that another machine may lack into one folder.
#   cmake -D folder=... -D build=... -D programs=<path,path,...> -P collect.cmake
if(quick)
  message(FATAL_ERROR "The GPU libraries of this build were compiled quickly (their kernels are not those that users run). "
    "Configure with -DHOSTLESS_GPU_QUICK=OFF.")
endif()
string(REPLACE "," ";" programs "${programs}")
function(carry libraries to)  # as the loader asks for them, not as links: some ways of carrying lose those
  foreach(library IN LISTS libraries)
    get_filename_component(name "${library}" NAME)
    file(REAL_PATH "${library}" real)
    file(COPY_FILE "${real}" "${to}/${name}")
  endforeach()
endfunction()
file(REMOVE_RECURSE "${folder}")
file(MAKE_DIRECTORY "${folder}")
file(GLOB gpu_libraries "${build}/lib/hostless/libhostless_cuda.so" "${build}/lib/hostless/libhostless_hip.so")
file(GLOB of_tests "${build}/lib/hostless_tests/libhostless_*.so")
file(COPY ${of_tests} DESTINATION "${folder}/of_tests")
file(GLOB mpi_plugins "${build}/lib/hostless/libhostless_mpi_*.so")
file(COPY ${programs} ${gpu_libraries} ${mpi_plugins} "${CMAKE_CURRENT_LIST_DIR}/run_suite.sh"
  "${CMAKE_CURRENT_LIST_DIR}/every_gpu_transport.py" "${CMAKE_CURRENT_LIST_DIR}/kill_ranks.py"
  "${CMAKE_CURRENT_LIST_DIR}/queue/kill_queues.py"
  "${CMAKE_CURRENT_LIST_DIR}/same_bits.py" "${CMAKE_CURRENT_LIST_DIR}/../cli/hostless_command.py"
  "${CMAKE_CURRENT_LIST_DIR}/../../bench/transport_table.py" "${CMAKE_CURRENT_LIST_DIR}/cupy_in_place.py"
  "${CMAKE_CURRENT_LIST_DIR}/cupy_exchange.py" "${CMAKE_CURRENT_LIST_DIR}/stencil/cupy_stencil.py" "${CMAKE_CURRENT_LIST_DIR}/../python/exchange_worlds.py"
  "${CMAKE_CURRENT_LIST_DIR}/queue/cupy_queue.py" "${CMAKE_CURRENT_LIST_DIR}/../python/queues/halo_worlds.py"
  "${CMAKE_CURRENT_LIST_DIR}/../../bench/python_cg.py" DESTINATION "${folder}")
# The Python package, where this build has one; for the Python version that it was built with.
file(GLOB modules "${build}/python/hostless/_core.*.so")
if(modules)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E copy_directory "${build}/python/hostless" "${folder}/python/hostless"
    COMMAND_ERROR_IS_FATAL ANY)
  # What every Python brings is not carried to it: its other modules may need a newer one.
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${modules} RESOLVED_DEPENDENCIES_VAR beside
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s|z)\\.so")
  carry("${beside}" "${folder}/python/hostless")
endif()
# The MPI itself, and all that it loads, is the other machine's: its launcher belongs to it.
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${programs} LIBRARIES ${mpi_plugins} RESOLVED_DEPENDENCIES_VAR found
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so" "^libmpi(ch)?\\.so"
    "^libopen-(rte|pal)\\.so")
if(missing)
  message(FATAL_ERROR "These libraries are not on this machine: ${missing}.")
endif()
carry("${found}" "${folder}")
message(STATUS "${folder}: run run_suite.sh in it on a machine with a GPU.")
