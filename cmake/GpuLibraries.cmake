# The GPU libraries, one a vendor, loaded at run time; nothing else ever sees a GPU.
include(HostlessGpu)
set(hostless_gpu_sources  # below src/
    operate/gpu/caller_arrays operate/gpu/caller_rows operate/gpu/device_rows_copy operate/gpu/host_copy operate/gpu/matrix_work
    transport/stream/stream_endpoint transport/stream/stream_transports transport/stream/hosted_stream
    transport/staged/staged_stream transport/mpi/mpi_stream transport/nccl/nccl_stream transport/nvshmem/nvshmem
    transport/nvshmem/nvshmem_stream transport/memory/opened_memory transport/memory/paths transport/peer/ping_pong
    exchange/gpu/added_items exchange/gpu/bound_exchange exchange/gpu/item_list exchange/gpu/packed_items
    exchange/gpu/solver_exchange transport/peer/peer_stream
    run/gpu/peer_window run/gpu/merge_product run/gpu/vendor_product
    solve/gpu/bound_solve solve/gpu/communication solve/gpu/instances solve/gpu/library solve/gpu/runner solve/gpu/run_persistent solve/gpu/run_stream
    solve/gpu/run_graph)
set(hostless_gpu_methods solve/gpu/conjugate_gradient solve/gpu/rounded_gradient solve/gpu/single_reduction
    solve/gpu/pipelined solve/gpu/chebyshev)
set(hostless_gpu_blocks 1 2 3 4 6)
set(report "")
foreach(vendor cuda hip)
  hostless_gpu_usable(${vendor} usable reason)
  if(usable)
    hostless_gpu_library(${vendor})
  endif()
  string(APPEND report "GPU library ${vendor}: ${reason}\n")
  message(STATUS "hostless: GPU library ${vendor}: ${reason}")
endforeach()
file(WRITE "${PROJECT_BINARY_DIR}/gpu-libraries.txt" "${report}")  # `make test` ends with it
