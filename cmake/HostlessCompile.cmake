# Flags that hold for every target of the project: the order and rounding of sums are promises (docs/decisions/0001).
add_library(hostless_flags INTERFACE)
target_include_directories(hostless_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
  $<INSTALL_INTERFACE:include>)
target_compile_features(hostless_flags INTERFACE cxx_std_20)
target_compile_options(hostless_flags INTERFACE
  $<BUILD_INTERFACE:-ffp-contract=off;-fno-math-errno;-fno-trapping-math;-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion>)
if(HOSTLESS_SANITIZE)
  string(REPLACE "," ";" kinds "${HOSTLESS_SANITIZE}")
  foreach(kind IN LISTS kinds)
    target_compile_options(hostless_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${kind};-fno-omit-frame-pointer>)
    target_link_options(hostless_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${kind}>)
  endforeach()
  if("undefined" IN_LIST kinds)
    # Overflowing addresses: a third to a half of the time to compile, and AddressSanitizer sees what is read there.
    target_compile_options(hostless_flags INTERFACE
      $<BUILD_INTERFACE:-fno-sanitize-recover=undefined;-fno-sanitize=pointer-overflow>)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)  # loops that instrumented code keeps it from vectorizing are no news
    target_compile_options(hostless_flags INTERFACE $<BUILD_INTERFACE:-Wno-pass-failed>)
    find_program(HOSTLESS_LLD ld.lld)  # links sanitized programs in a fraction of the time
    if(HOSTLESS_LLD)
      target_link_options(hostless_flags INTERFACE $<BUILD_INTERFACE:-fuse-ld=lld>)
    endif()
  endif()
endif()
# Files that are compiled together hide each other's names; apart they are warned about.
target_compile_options(hostless_flags INTERFACE
  $<BUILD_INTERFACE:$<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow>>)
if(HOSTLESS_COVERAGE)
  target_compile_options(hostless_flags INTERFACE $<BUILD_INTERFACE:--coverage;-O1>)
  target_link_options(hostless_flags INTERFACE $<BUILD_INTERFACE:--coverage>)
endif()

# hostless_layer(name SOURCES ... LAYERS ... LIBRARIES ...): one static library a layer, linked only with the layers
# that the architecture lets it see.
function(hostless_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;LAYERS;LIBRARIES" ${ARGN})
  add_library(hostless_${name} STATIC ${arg_SOURCES})
  target_link_libraries(hostless_${name} PUBLIC hostless_flags)
  foreach(layer IN LISTS arg_LAYERS)
    target_link_libraries(hostless_${name} PUBLIC hostless_${layer})
  endforeach()
  target_link_libraries(hostless_${name} PRIVATE ${arg_LIBRARIES})
endfunction()
