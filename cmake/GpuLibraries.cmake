# The GPU libraries, one a vendor, loaded at run time; nothing else ever sees a GPU.
include(HostlessGpu)
set(hostless_gpu_sources  # below src/
    operate/gpu/caller_arrays operate/gpu/caller_rows operate/gpu/device_rows_copy operate/gpu/host_copy operate/gpu/matrix_work
    transport/stream/stream_endpoint transport/stream/stream_transports transport/stream/hosted_stream
    transport/stream/known_transports transport/memory/borrowing transport/memory/opened_memory transport/memory/paths
    transport/composite/composite_lists.cpp transport/composite/composite_nodes.cpp
    exchange/duty_share.cpp exchange/gpu/added_items exchange/gpu/bound_exchange exchange/gpu/exchange_steps exchange/gpu/grouped_sends exchange/gpu/item_list exchange/gpu/kernel_window exchange/gpu/packed_items
    exchange/gpu/solver_exchange exchange/gpu/sparse_product exchange/gpu/workbench
    queue/gpu/bench_kernels queue/gpu/group_ranks queue/gpu/halo_kernels queue/gpu/message_kernels queue/gpu/message_pool queue/gpu/messages queue/gpu/stream_bench
    run/gpu/peer_window run/gpu/stamps run/gpu/merge_product run/gpu/vendor_product
    solve/gpu/bound_solve solve/gpu/communication solve/gpu/instances solve/gpu/library solve/gpu/runner solve/gpu/run_persistent solve/gpu/run_stream
    solve/gpu/run_graph
    stencil/gpu/bound_stencil stencil/gpu/cells stencil/gpu/parts/grid_part stencil/gpu/parts/halo_rows stencil/gpu/library
    stencil/gpu/texts/gray_scott stencil/gpu/texts/heat stencil/gpu/texts/jacobi stencil/gpu/texts/life stencil/gpu/texts/wave)
hostless_list_streams("${CMAKE_CURRENT_BINARY_DIR}/listed_streams.gpu.cpp" of_transports src)
list(APPEND hostless_gpu_sources listed_streams ${of_transports})
# The library of tests: exchanges alone, over all transports of the list. Nobody installs it.
hostless_list_streams("${CMAKE_CURRENT_BINARY_DIR}/tested_streams.gpu.cpp" of_transports src tests)
set(hostless_gpu_sources_of_tests tested_streams tests/transport/exchanges_alone tests/transport/own_kernel ${of_transports})
foreach(name IN LISTS hostless_gpu_sources)
  if(name MATCHES "^(transport/(stream|memory|composite)|exchange)/")
    list(APPEND hostless_gpu_sources_of_tests ${name})
  endif()
endforeach()
if(HOSTLESS_GPU_QUICK)  # headers are read once for a few files together: 47 s of nvcc instead of 195
  hostless_compile_together(exchanges "^(transport/(stream|memory|composite)|exchange)/")
  hostless_compile_together(transports "^src/transport/")
  hostless_compile_together(messages "^queue/")
  hostless_compile_together(products "^(operate|run)/")
  hostless_compile_together(solves "^(solve/|listed_streams)")
  hostless_compile_together(stencils "^stencil/")
  hostless_compile_together(tests "^(tests/|tested_streams)")
endif()
file(GLOB hostless_gpu_methods RELATIVE "${PROJECT_SOURCE_DIR}/src" CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/src/solve/methods/texts/*.cpp"  # a method of methods.hpp each
  "${PROJECT_SOURCE_DIR}/src/solve/gpu/texts/*.gpu.cpp")  # a variant of one each
list(TRANSFORM hostless_gpu_methods REPLACE "\\.gpu\\.cpp$" "")
set(report "")
foreach(vendor cuda hip)
  hostless_gpu_usable(${vendor} usable reason)
  if(usable)
    hostless_gpu_library(${vendor})
    if(HOSTLESS_BUILD_TESTS OR HOSTLESS_GPU_ALONE)
      hostless_gpu_library_of_tests(${vendor})
    endif()
  endif()
  string(APPEND report "GPU library ${vendor}: ${reason}\n")
  message(STATUS "hostless: GPU library ${vendor}: ${reason}")
endforeach()
file(WRITE "${PROJECT_BINARY_DIR}/gpu-libraries.txt" "${report}")  # `make test` ends with it
