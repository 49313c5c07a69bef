# cmake -D build=... -D source=... -D work=... -D cxx=... -P check_install.cmake
# Installs the build into a fresh tree, then configures, builds and runs a user's project against that tree alone, by
# find_package and, where pkg-config exists, by its file.
function(must)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "failed (${code}): ${command}\n${out}")
  endif()
  message(STATUS "${out}")
endfunction()

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
must("${CMAKE_COMMAND}" --install "${build}" --prefix "${work}/prefix")
file(COPY "${source}/uses_hostless" DESTINATION "${work}")
must("${CMAKE_COMMAND}" -S "${work}/uses_hostless" -B "${work}/by-cmake" -G Ninja -DCMAKE_BUILD_TYPE=Release
  "-DCMAKE_CXX_COMPILER=${cxx}" "-DCMAKE_PREFIX_PATH=${work}/prefix")
must("${CMAKE_COMMAND}" --build "${work}/by-cmake")
must("${work}/by-cmake/uses_hostless")

if(NOT EXISTS "${work}/prefix/bin/hostless")
  message(FATAL_ERROR "the command line was not installed")
endif()
file(GLOB_RECURSE headers RELATIVE "${source}/../../include" "${source}/../../include/hostless/*.h*")
foreach(header IN LISTS headers)
  if(NOT EXISTS "${work}/prefix/include/${header}")
    message(FATAL_ERROR "${header} was not installed")
  endif()
endforeach()

find_program(pkg_config pkg-config)
if(NOT pkg_config)
  message(STATUS "skipped: no pkg-config on this machine, hostless.pc was not tried")
  return()
endif()
# The file names the prefix of its build; a relocated tree says so on the command line.
file(GLOB_RECURSE pc "${work}/prefix/*/hostless.pc")
get_filename_component(pc_folder "${pc}" DIRECTORY)
set(ENV{PKG_CONFIG_PATH} "${pc_folder}")
execute_process(COMMAND "${pkg_config}" --define-variable=prefix=${work}/prefix --cflags --libs hostless
  OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "pkg-config does not accept hostless.pc")
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
must("${cxx}" "${work}/uses_hostless/main.cpp" -o "${work}/by-pkg-config" ${flags})
must("${work}/by-pkg-config")
