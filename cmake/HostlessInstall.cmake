# What `cmake --install` puts where: the layers and the umbrella hostless::hostless as a CMake package, a pkg-config
# file, the headers, the command line and the MPI plugins.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Every static or interface library under src/ and cmake/ belongs to the package, whoever added it: a layer that links
# a target outside the export set would make the installed package unusable. The MPI libraries (hostless_with_*) are
# not part of it: only the plugins see them, and those are loaded at run time; nor those of MPIS_..., of which a program takes
# one: hostlessConfig.cmake names them.
function(hostless_libraries_below directory out)
  get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  set(found "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC|INTERFACE)_LIBRARY$" AND NOT target MATCHES "^hostless_(with|mpis)_")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(folder IN LISTS folders)
    hostless_libraries_below("${folder}" below)
    list(APPEND found ${below})
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

set(hostless_exported "")
get_property(root_targets DIRECTORY "${PROJECT_SOURCE_DIR}" PROPERTY BUILDSYSTEM_TARGETS)
foreach(target IN LISTS root_targets)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    list(APPEND hostless_exported ${target})
  endif()
endforeach()
hostless_libraries_below("${PROJECT_SOURCE_DIR}/src" hostless_below_src)
list(APPEND hostless_exported ${hostless_below_src})

add_library(hostless INTERFACE)
add_library(hostless::hostless ALIAS hostless)
set(hostless_archives "")
foreach(target IN LISTS hostless_exported)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_link_libraries(hostless INTERFACE ${target})
    string(APPEND hostless_archives " -l${target}")
  endif()
  string(REGEX REPLACE "^hostless_" "" short ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${short})
endforeach()

install(TARGETS hostless ${hostless_exported} EXPORT hostlessTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT hostlessTargets NAMESPACE hostless:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hostless)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hostless" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
install(TARGETS hostless_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY "${PROJECT_SOURCE_DIR}/machines" DESTINATION ${CMAKE_INSTALL_DATADIR}/hostless FILES_MATCHING PATTERN "*.json")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR})

string(REPLACE ";" " " hostless_mpis_flavours "${HOSTLESS_MPI_VENDORS};threads")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/hostlessConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/hostlessConfig.cmake" INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hostless)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/hostlessConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/hostlessConfig.cmake" "${PROJECT_BINARY_DIR}/hostlessConfigVersion.cmake"
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hostless)
file(RELATIVE_PATH hostless_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")  # wherever it is installed
string(REGEX REPLACE "/$" "" hostless_up "${hostless_up}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/hostless.pc.in" "${PROJECT_BINARY_DIR}/hostless.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/hostless.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
foreach(flavour IN LISTS HOSTLESS_MPI_VENDORS ITEMS threads)
  set(flavour_words "whose compiler wrapper brings MPI")
  set(flavour_includes "")
  if(flavour STREQUAL threads)
    set(flavour_words "whose ranks are threads, without MPI")
    set(flavour_includes " -I\${includedir}/hostless/mpis/threads")
  endif()
  configure_file("${PROJECT_SOURCE_DIR}/cmake/hostless_mpis.pc.in" "${PROJECT_BINARY_DIR}/hostless_mpis_${flavour}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/hostless_mpis_${flavour}.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
