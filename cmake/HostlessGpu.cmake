# Compiles the same sources (*.gpu.cpp) as CUDA and as HIP, by calling the vendor's compiler as a tool: CMake's own
# languages would let one project speak only one of them, and old versions know neither the newest toolkit nor C++20.
find_program(HOSTLESS_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda/bin)
find_program(HOSTLESS_HIPCC hipcc HINTS ENV ROCM_PATH PATHS /opt/rocm/bin)
mark_as_advanced(HOSTLESS_NVCC HOSTLESS_HIPCC)
set(HOSTLESS_CUDA_ARCHITECTURES "90" CACHE STRING "Compute capabilities to compile for, as 80;90")
set(HOSTLESS_HIP_ARCHITECTURES "gfx90a" CACHE STRING "AMD GPUs to compile for")

set(hostless_gpu_flags -std=c++20 -O3 "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/src")
set(hostless_cuda_flags -x cu ${hostless_gpu_flags} --fmad=false -diag-suppress 20011,20012,20013,20014
  -Xcompiler -ffp-contract=off,-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-parentheses)
foreach(architecture IN LISTS HOSTLESS_CUDA_ARCHITECTURES)
  list(APPEND hostless_cuda_flags "-gencode=arch=compute_${architecture},code=sm_${architecture}")
endforeach()
set(hostless_hip_flags -x hip ${hostless_gpu_flags} -ffp-contract=off -fPIC -fvisibility=hidden -Wall -Wextra
  -Wno-unused-command-line-argument
  -Wno-pass-failed)  # pragmas ask for unrolling that the compiler may decline
foreach(architecture IN LISTS HOSTLESS_HIP_ARCHITECTURES)
  list(APPEND hostless_hip_flags "--offload-arch=${architecture}")
endforeach()

# hostless_gpu_objects(vendor compiler flags out SOURCES...): one object a source, with the headers it included as
# dependencies.
function(hostless_gpu_objects vendor compiler flags out)
  set(objects "")
  foreach(source IN LISTS ARGN)
    get_filename_component(name "${source}" NAME_WE)
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${vendor}/${name}.o")
    add_custom_command(OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/${vendor}"
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${compiler}" ${${flags}} -MD -MF "${object}.d" -c "${source}" -o "${object}"
      DEPENDS "${source}" DEPFILE "${object}.d" COMMENT "Compiling ${name} as ${vendor}" VERBATIM COMMAND_EXPAND_LISTS)
    list(APPEND objects "${object}")
  endforeach()
  set(${out} "${objects}" PARENT_SCOPE)
endfunction()

# hostless_gpu_library(vendor compiler flags link SOURCES...): lib/hostless/libhostless_<vendor>.so
function(hostless_gpu_library vendor compiler flags link)
  hostless_gpu_objects(${vendor} "${compiler}" ${flags} objects ${ARGN})
  set(library "${PROJECT_BINARY_DIR}/lib/hostless/libhostless_${vendor}.so")
  add_custom_command(OUTPUT "${library}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/lib/hostless"
    COMMAND "${compiler}" ${${link}} -shared ${objects} -o "${library}"
    DEPENDS ${objects} COMMENT "Linking libhostless_${vendor}.so" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(hostless_${vendor} ALL DEPENDS "${library}")
  install(FILES "${library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/hostless")
endfunction()
