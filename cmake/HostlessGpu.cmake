# Compiles the same sources (*.gpu.cpp) as CUDA and as HIP, by calling the vendor's compiler as a tool: CMake's own
# languages would let one project speak only one of them, and old versions know neither the newest toolkit nor C++20.
include(GNUInstallDirs)
find_program(HOSTLESS_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
find_program(HOSTLESS_HIPCC hipcc HINTS ENV ROCM_PATH PATH_SUFFIXES bin PATHS /opt/rocm/bin)
mark_as_advanced(HOSTLESS_NVCC HOSTLESS_HIPCC)
# hostless_seen_architectures(out): those of this machine's GPUs that the compiler knows and the kernels can use (7.5 and
# later); without one that of the H100 and H200.
function(hostless_seen_architectures out)
  set(seen "")
  if(HOSTLESS_GPU AND HOSTLESS_NVCC)
    execute_process(COMMAND "${HOSTLESS_NVCC}" --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader TIMEOUT 20 OUTPUT_VARIABLE lines
      RESULT_VARIABLE code ERROR_QUIET)
    if(code STREQUAL "0")
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" lines "${lines}")
      foreach(line IN LISTS lines)
        string(REPLACE "." "" architecture "${line}")
        if(architecture GREATER_EQUAL 75 AND known MATCHES "compute_${architecture}[^0-9]")
          list(APPEND seen "${architecture}")
        endif()
      endforeach()
      list(REMOVE_DUPLICATES seen)
      list(SORT seen COMPARE NATURAL)
    endif()
  endif()
  if(NOT seen)
    set(seen "90")
  endif()
  set(${out} "${seen}" PARENT_SCOPE)
endfunction()
set(HOSTLESS_CUDA_ARCHITECTURES "" CACHE STRING "Compute capabilities to compile for, as 80;90; newer GPUs translate the \
last one when they load it. Empty: those of this machine, looked for at each configuring")
if(NOT HOSTLESS_CUDA_ARCHITECTURES)  # what was found is not kept: the next machine of a shared folder has other GPUs
  hostless_seen_architectures(HOSTLESS_CUDA_ARCHITECTURES)
endif()
set(HOSTLESS_HIP_ARCHITECTURES "gfx90a" CACHE STRING "AMD GPUs to compile for")
option(HOSTLESS_GPU_RESOURCES "Let the compiler say what registers and stack each kernel takes (tools/check_registers.py)" OFF)
option(HOSTLESS_GPU_QUICK "Compile the GPU libraries to see that they compile, not to run them: slow kernels in a third of the time" OFF)

set(hostless_gpu_flags -std=c++20 -O3 -DHOSTLESS_GPU_COMPILER "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/src")
set(hostless_cuda_compiler "${HOSTLESS_NVCC}")
set(hostless_cuda_program nvcc)
set(hostless_cuda_package "it is part of NVIDIA's CUDA toolkit, 12.4 or later")
set(hostless_cuda_flags -x cu ${hostless_gpu_flags} --fmad=false -diag-suppress 20011,20012,20013,20014 -diag-error 20015
  -Xcompiler -ffp-contract=off,-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-parentheses)
set(hostless_cuda_link --cudart=static -Xlinker --no-undefined)
foreach(architecture IN LISTS HOSTLESS_CUDA_ARCHITECTURES)
  list(APPEND hostless_cuda_flags "-gencode=arch=compute_${architecture},code=sm_${architecture}")
  set(hostless_cuda_last "${architecture}")
endforeach()
set(hostless_hip_compiler "${HOSTLESS_HIPCC}")
set(hostless_hip_program hipcc)
set(hostless_hip_package "on Debian 12 the package hipcc brings it, elsewhere AMD's ROCm")
# Pragmas ask for unrolling that this compiler may decline: it says so for each, which is no warning to act on.
set(hostless_hip_flags -x hip ${hostless_gpu_flags} -ffp-contract=off -fPIC -fvisibility=hidden -Wall -Wextra
  -Wno-unused-command-line-argument -Wno-pass-failed)
if(HOSTLESS_GPU_RESOURCES)
  list(APPEND hostless_cuda_flags -Xptxas=-v)
endif()
if(NOT HOSTLESS_GPU_QUICK)
  set(hostless_cuda_blocks 1 2 3 4 6)
  set(hostless_hip_blocks 1 2 3 4 6)
  list(APPEND hostless_cuda_flags "-gencode=arch=compute_${hostless_cuda_last},code=compute_${hostless_cuda_last}")
else()
  execute_process(COMMAND "${HOSTLESS_NVCC}" --help OUTPUT_VARIABLE hostless_nvcc_help ERROR_QUIET)
  if(hostless_nvcc_help MATCHES "--Ofast-compile")  # since 12.9: a quarter of the time
    list(APPEND hostless_cuda_flags --Ofast-compile=max)
  endif()
  # Without inlining, at -O0, it does not compile. Loops stay loops (blocks of 3: 80 s instead of 560), instructions in the order
  # they were written in.
  list(APPEND hostless_hip_flags -O1 -Xarch_host -O0 -fno-unroll-loops -mllvm -enable-misched=false -DHOSTLESS_GPU_QUICK
    -DHOSTLESS_STENCIL_SAMPLE)
  # Of the many shapes of tiles one.
  list(APPEND hostless_cuda_flags -DHOSTLESS_STENCIL_SAMPLE)
  # Of the sizes of blocks 1, 3 and 6, and HIP, which takes twice as long for each (88 s), without the last: the same text.
  set(hostless_cuda_blocks 1 3 6)
  set(hostless_hip_blocks 1 3)
  list(APPEND hostless_cuda_flags -DHOSTLESS_FEW_BLOCKS=6)
  list(APPEND hostless_hip_flags -DHOSTLESS_FEW_BLOCKS=3)
endif()
set(hostless_hip_link -Wl,--no-undefined)
foreach(architecture IN LISTS HOSTLESS_HIP_ARCHITECTURES)
  list(APPEND hostless_hip_flags "--offload-arch=${architecture}")
  list(APPEND hostless_hip_link "--offload-arch=${architecture}")  # else it looks for the GPUs of this machine
endforeach()

# hostless_gpu_usable(vendor usable reason): whether this vendor's compiler is there and compiles C++20 with the flags
# above (old ones do not), and a line for people that says so.
function(hostless_gpu_usable vendor usable reason)
  set(compiler "${hostless_${vendor}_compiler}")
  string(TOUPPER ${vendor} upper)
  string(REPLACE ";" ", " architectures "${HOSTLESS_${upper}_ARCHITECTURES}")
  set(${usable} FALSE PARENT_SCOPE)
  if(NOT HOSTLESS_GPU)
    set(${reason} "NOT compiled (HOSTLESS_GPU is off)" PARENT_SCOPE)
    return()
  elseif(NOT compiler)
    set(${reason} "NOT compiled (no ${hostless_${vendor}_program} was found: ${hostless_${vendor}_package})" PARENT_SCOPE)
    return()
  endif()
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/probe_${vendor}")
  set(command "${compiler}" ${hostless_${vendor}_flags} -c "${probe}.gpu.cpp" -o "${probe}.o")
  if(NOT "${command}" STREQUAL "${HOSTLESS_PROBED_${vendor}}")
    file(WRITE "${probe}.gpu.cpp" "#include <concepts>\n#include \"device/runtime.hpp\"\n"
      "static_assert(std::integral<int>);\n"
      "__global__ void probe(HOSTLESS_PARAMETER int const value, int* to) { *to = value; }\n")
    execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_FILE "${probe}.txt" ERROR_FILE "${probe}.txt")
    set(HOSTLESS_PROBE_CODE_${vendor} "${code}" CACHE INTERNAL "")
    set(HOSTLESS_PROBED_${vendor} "${command}" CACHE INTERNAL "")
  endif()
  if("${HOSTLESS_PROBE_CODE_${vendor}}" STREQUAL "0")
    set(${usable} TRUE PARENT_SCOPE)
    set(quickly "")
    if(HOSTLESS_GPU_QUICK)
      set(quickly ", quickly: not to be run (HOSTLESS_GPU_QUICK)")
    endif()
    set(${reason} "compiled for ${architectures} with ${compiler}${quickly}" PARENT_SCOPE)
  else()
    set(${reason} "NOT compiled (${compiler} cannot compile C++20 for ${architectures}: ${probe}.txt)" PARENT_SCOPE)
  endif()
endfunction()

# What ccache asks nvcc for is the device's half of a file: it would take an object whose host half has changed. With
# CCACHE_DEPEND it compares the files that the compiler read; with CCACHE_BASEDIR other checkouts' objects serve too.
set(hostless_gpu_launcher "")
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(hostless_gpu_launcher "${CMAKE_COMMAND}" -E env CCACHE_DEPEND=1
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# hostless_gpu_source(name out): the file that a name means: with its ending where it is not .gpu.cpp.
function(hostless_gpu_source name out)
  if(NOT name MATCHES "\\.cpp$")
    string(APPEND name ".gpu.cpp")
  endif()
  foreach(folder "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_BINARY_DIR}")
    set(source "${folder}/${name}")
    if(EXISTS "${source}")
      break()
    endif()
  endforeach()
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

# hostless_gpu_object(vendor name out FLAGS...): <name>.gpu.cpp, of src/ or of the project's folder, as one object, named after its flags too; depends on the
# headers that it included.
function(hostless_gpu_object vendor name out)
  string(REGEX REPLACE "[^A-Za-z0-9_]+" "_" object "${name}${ARGN}")
  hostless_gpu_source("${name}" source)
  set(object "${vendor}/${object}.o")  # relative, as in the file of dependencies, which a cache may bring from elsewhere
  add_custom_command(OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${object}"
    COMMAND ${hostless_gpu_launcher} "${hostless_${vendor}_compiler}" ${hostless_${vendor}_flags} ${ARGN}
      -MD -MF "${object}.d" -c "${source}" -o "${object}"
    DEPENDS "${source}" DEPFILE "${CMAKE_CURRENT_BINARY_DIR}/${object}.d" COMMENT "Compiling ${name} ${ARGN} as ${vendor}"
    VERBATIM COMMAND_EXPAND_LISTS)
  set(${out} "${CMAKE_CURRENT_BINARY_DIR}/${object}" PARENT_SCOPE)
endfunction()

# hostless_compile_together(name pattern): the sources of both libraries that match become one, which includes them.
function(hostless_compile_together name pattern)
  set(text "")
  set(seen "")
  foreach(list hostless_gpu_sources hostless_gpu_sources_of_tests)
    set(rest "")
    foreach(one IN LISTS ${list})
      if(NOT one MATCHES "${pattern}")
        list(APPEND rest "${one}")
        continue()
      endif()
      list(APPEND rest "all_${name}")
      if(one IN_LIST seen)
        continue()
      endif()
      list(APPEND seen "${one}")
      hostless_gpu_source("${one}" source)
      file(RELATIVE_PATH source "${CMAKE_CURRENT_BINARY_DIR}" "${source}")
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    list(REMOVE_DUPLICATES rest)
    set(${list} ${rest} PARENT_SCOPE)
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/all_${name}.gpu.cpp" CONTENT "${text}")
endfunction()

# hostless_gpu_library_of_tests(vendor): lib/hostless_tests/libhostless_<vendor>.so of hostless_gpu_sources_of_tests, whose
# other objects are those of the library.
function(hostless_gpu_library_of_tests vendor)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib/hostless_tests")
  set(objects "")
  foreach(name IN LISTS hostless_gpu_sources_of_tests)
    if(name IN_LIST hostless_gpu_sources)
      string(REGEX REPLACE "[^A-Za-z0-9_]+" "_" object "${name}")
      list(APPEND objects "${CMAKE_CURRENT_BINARY_DIR}/${vendor}/${object}.o")
    else()
      hostless_gpu_object(${vendor} ${name} object)
      list(APPEND objects "${object}")
    endif()
  endforeach()
  set(library "${PROJECT_BINARY_DIR}/lib/hostless_tests/libhostless_${vendor}.so")
  add_custom_command(OUTPUT "${library}"
    COMMAND "${hostless_${vendor}_compiler}" ${hostless_${vendor}_link} -shared ${objects} -o "${library}"
    DEPENDS ${objects} COMMENT "Linking libhostless_${vendor}.so of tests" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(hostless_${vendor}_tests ALL DEPENDS "${library}")
  add_dependencies(hostless_${vendor}_tests hostless_${vendor})  # which compiles what both have
endfunction()

# hostless_gpu_library(vendor): lib/hostless/libhostless_<vendor>.so of hostless_gpu_sources, and of
# hostless_gpu_methods once for each of hostless_<vendor>_blocks.
function(hostless_gpu_library vendor)
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${vendor}" "${PROJECT_BINARY_DIR}/lib/hostless")
  set(objects "")
  set(methods ${hostless_gpu_methods})
  if(HOSTLESS_GPU_QUICK)  # headers are read once for all of them: a fifth of the time
    set(text "")
    foreach(method IN LISTS methods)
      hostless_gpu_source("${method}" source)
      file(RELATIVE_PATH source "${CMAKE_CURRENT_BINARY_DIR}" "${source}")
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(methods all_methods)
    file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/all_methods.gpu.cpp" CONTENT "${text}")
  endif()
  foreach(method IN LISTS methods)  # the long ones first
    foreach(block IN LISTS hostless_${vendor}_blocks)
      hostless_gpu_object(${vendor} ${method} object "-DHOSTLESS_BLOCK=${block}")
      list(APPEND objects "${object}")
    endforeach()
  endforeach()
  foreach(name IN LISTS hostless_gpu_sources)
    hostless_gpu_object(${vendor} ${name} object)
    list(APPEND objects "${object}")
  endforeach()
  set(library "${PROJECT_BINARY_DIR}/lib/hostless/libhostless_${vendor}.so")
  add_custom_command(OUTPUT "${library}"
    COMMAND "${hostless_${vendor}_compiler}" ${hostless_${vendor}_link} -shared ${objects} -o "${library}"
    DEPENDS ${objects} COMMENT "Linking libhostless_${vendor}.so" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(hostless_${vendor} ALL DEPENDS "${library}")
  install(FILES "${library}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/hostless")
endfunction()
