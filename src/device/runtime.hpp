#pragma once
// The one header that knows CUDA from HIP: HOSTLESS_GPU(Malloc) is cudaMalloc or hipMalloc, and the few
// instructions that the two spell differently. Without either compiler it offers what bodies need to be
// tested on the host.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "hostless/base/host_device.hpp"

#if defined(__CUDACC__)
#include <cuda.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#define HOSTLESS_GPU(name) cuda##name
#define HOSTLESS_GPU_NAME "CUDA"
/// Of kernel parameters: read where the launch has put them, never copied.
#define HOSTLESS_PARAMETER __grid_constant__
/// Of kernels of which so many blocks of so many threads must fit on a multiprocessor: no more registers than that.
#define HOSTLESS_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define HOSTLESS_CLOCK_RATE cudaDevAttrClockRate
#define HOSTLESS_MEMORY_CLOCK_RATE cudaDevAttrMemoryClockRate
#define HOSTLESS_MEMORY_BUS_WIDTH cudaDevAttrGlobalMemoryBusWidth
#define HOSTLESS_MOST_SHARED_MEMORY cudaDevAttrMaxSharedMemoryPerBlockOptin
/// Shared memory and the first-level cache are one memory here: what fields on chip take, loads in flight
/// miss. Measured on an H200: 164 of 228 KiB are best, whatever the matrix.
#define HOSTLESS_ON_CHIP_KIB 164
#define HOSTLESS_DEVICE_PROPERTIES cudaDeviceProp
#define HOSTLESS_MAPPED_ALLOCATE(to, bytes) cudaHostAlloc(to, bytes, cudaHostAllocMapped)
#define HOSTLESS_MAPPED_FREE cudaFreeHost
#define HOSTLESS_LAUNCH_HOST_FUNCTION cudaLaunchHostFunc
/// By a timer of the whole GPU, for a kernel that does nothing else: it costs a microsecond.
#define HOSTLESS_READ_NANOSECONDS(to) asm volatile("mov.u64 %0, %globaltimer;" : "=l"(to))
#include "device/driver_launch.hpp"
#elif defined(__HIPCC__)
#include <dlfcn.h>
#include <hip/hip_runtime.h>
#define HOSTLESS_GPU(name) hip##name
#define HOSTLESS_GPU_NAME "HIP"
#define HOSTLESS_PARAMETER
/// The vendor's second number is of waves (of 64) on each of a multiprocessor's four SIMDs.
#define HOSTLESS_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, ((threads) * (blocks) + 255) / 256)
#define HOSTLESS_CLOCK_RATE hipDeviceAttributeClockRate
#define HOSTLESS_MEMORY_CLOCK_RATE hipDeviceAttributeMemoryClockRate
#define HOSTLESS_MEMORY_BUS_WIDTH hipDeviceAttributeMemoryBusWidth
#define HOSTLESS_ON_CHIP_KIB 64
#define HOSTLESS_MOST_SHARED_MEMORY hipDeviceAttributeMaxSharedMemoryPerBlock
#define HOSTLESS_DEVICE_PROPERTIES hipDeviceProp_t
/// Coherent must be said: other flags alone leave it to an environment variable.
#define HOSTLESS_MAPPED_ALLOCATE(to, bytes) \
  hipHostMalloc(to, bytes, hipHostMallocMapped | hipHostMallocCoherent)
#define HOSTLESS_MAPPED_FREE hipHostFree
/// By the older call: Debian's library has no hipLaunchHostFunc.
inline hipError_t hostless_host_function(hipStream_t stream, void (*function)(void*), void* user) {
  using Call = std::pair<void (*)(void*), void*>;
  auto const work = [](hipStream_t, hipError_t, void* of) {
    std::unique_ptr<Call> const call(static_cast<Call*>(of));
    call->first(call->second);
  };
  return hipStreamAddCallback(stream, work, new Call(function, user), 0);
}
#define HOSTLESS_LAUNCH_HOST_FUNCTION hostless_host_function
/// That timer has 100 MHz.
#define HOSTLESS_READ_NANOSECONDS(to) to = 10 * static_cast<std::uint64_t>(__builtin_amdgcn_s_memrealtime())
#endif

// Compiled only to see that it compiles (HOSTLESS_GPU_QUICK), nothing is unrolled, and what is long and
// stands in many places is compiled once: AMD's compiler needs half the time.
#if (defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)) && !defined(HOSTLESS_GPU_QUICK)
#define HOSTLESS_UNROLL _Pragma("unroll")
#define HOSTLESS_UNROLL_BY_4 _Pragma("unroll 4")
#else
#define HOSTLESS_UNROLL
#define HOSTLESS_UNROLL_BY_4
#endif
/// HOSTLESS_LONG of kernels alone.
#if defined(HOSTLESS_GPU_QUICK)
#define HOSTLESS_LONG_KERNEL __device__ __attribute__((noinline))
#else
#define HOSTLESS_LONG_KERNEL __device__ __forceinline__
#endif

namespace hostless::gpu {

/// Reads what no kernel writes: values and columns of a matrix.
template <class T>
HOSTLESS_HOST_DEVICE T load_constant(T const* from) {
#if defined(__CUDA_ARCH__)
  return __ldg(from);
#else
  return *from;
#endif
}

/// What will be read soon by load_constant.
HOSTLESS_HOST_DEVICE void prefetch(void const* what) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L1 [%0];" ::"l"(what));
#else
  static_cast<void>(what);
#endif
}

/// Like load_constant, of what is read once: it leaves the first-level cache to the vector.
HOSTLESS_HOST_DEVICE double load_once(double const* from) {
#if defined(__CUDA_ARCH__)
  double value;
  asm("ld.global.nc.L1::no_allocate.f64 %0, [%1];" : "=d"(value) : "l"(from));
  return value;
#else
  return *from;
#endif
}

HOSTLESS_HOST_DEVICE float load_once(float const* from) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(value) : "l"(from));
  return value;
#else
  return *from;
#endif
}

/// A value and the epoch it belongs to: {low 32, epoch, high 32, epoch}, accepted when both epochs match, so
/// that only 8-byte stores need be indivisible (PTX and PCIe promise no more).
struct alignas(16) FlaggedWord {
  std::uint32_t part[4];
};

#if defined(__CUDACC__) || defined(__HIPCC__)

#if defined(__CUDACC__)
__device__ __forceinline__ double exchange_lanes(double value, int distance) {
  return __shfl_xor_sync(0xffffffffu, value, distance);
}
/// Of one of the 32 threads; its number counts modulo 32.
template <class T>
__device__ __forceinline__ T of_thread(T value, int lane) {
  return __shfl_sync(0xffffffffu, value, lane);
}
/// The 32 lanes see each other's shared memory.
__device__ __forceinline__ void sync_lanes() { __syncwarp(); }
/// Asked by all 32 lanes; lanes of the other half of a wider wave may be asked too.
__device__ __forceinline__ bool all_lanes(bool value) { return __all_sync(0xffffffffu, value) != 0; }
__device__ __forceinline__ bool any_lane(bool value) { return __any_sync(0xffffffffu, value) != 0; }
__device__ __forceinline__ void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
__device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ __forceinline__ void store_flagged_word(FlaggedWord* to, std::uint32_t low, std::uint32_t high,
                                                   std::uint32_t epoch) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %2};" ::"l"(to), "r"(low), "r"(epoch),
               "r"(high)
               : "memory");
}
__device__ __forceinline__ FlaggedWord load_flagged_word(FlaggedWord const* from) {
  FlaggedWord word;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.part[0]), "=r"(word.part[1]), "=r"(word.part[2]), "=r"(word.part[3])
               : "l"(from)
               : "memory");
  return word;
}
/// What nobody reads again before it is stored anew: it leaves the second-level cache to what will be read.
__device__ __forceinline__ uint4 load_last(uint4 const* from) { return __ldcs(from); }
/// Memory of the host, mapped: one load or store there and back over the bus.
__device__ __forceinline__ std::uint32_t load_host(std::uint32_t const* from) {
  std::uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
/// Costs what another load costs, where a fence costs 1.5 us.
__device__ __forceinline__ std::uint64_t load_acquiring(std::uint64_t const* from) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
// What dependent_launch.hpp speaks of.
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void let_next_kernel_come() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ __forceinline__ void await_kernel_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#else
__device__ __forceinline__ void let_next_kernel_come() {}
__device__ __forceinline__ void await_kernel_before() {}
#endif
constexpr int first_to_launch_early = 9;  ///< the major part of what a GPU can
/// Memory of the GPU in use whose kernels see what other GPUs store there while they run: any.
inline auto allocate_polled(void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); }
#else
__device__ __forceinline__ double exchange_lanes(double value, int distance) {
  return __shfl_xor(value, distance, 32);
}
template <class T>
__device__ __forceinline__ T of_thread(T value, int lane) {
  return __shfl(value, lane & 31, 32);
}
__device__ __forceinline__ void sync_lanes() { __builtin_amdgcn_wave_barrier(); }
__device__ __forceinline__ bool all_lanes(bool value) { return __all(value) != 0; }
__device__ __forceinline__ bool any_lane(bool value) { return __any(value) != 0; }
__device__ __forceinline__ void fence_gpu() { __threadfence(); }
__device__ __forceinline__ void fence_system() { __threadfence_system(); }
__device__ __forceinline__ void store_flagged_word(FlaggedWord* to, std::uint32_t low, std::uint32_t high,
                                                   std::uint32_t epoch) {
  auto* const halves = reinterpret_cast<unsigned long long*>(to);
  unsigned long long const mark = static_cast<unsigned long long>(epoch) << 32;
  __hip_atomic_store(halves, mark | low, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_store(halves + 1, mark | high, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ __forceinline__ FlaggedWord load_flagged_word(FlaggedWord const* from) {
  auto* const halves = reinterpret_cast<unsigned long long const*>(from);
  auto const a = __hip_atomic_load(halves, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  auto const b = __hip_atomic_load(halves + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  return {{static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), static_cast<std::uint32_t>(b),
           static_cast<std::uint32_t>(b >> 32)}};
}
template <class Value>
__device__ __forceinline__ Value load_last(Value const* from) {
  return *from;
}
__device__ __forceinline__ std::uint32_t load_host(std::uint32_t const* from) {
  return __hip_atomic_load(from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ __forceinline__ std::uint64_t load_acquiring(std::uint64_t const* from) {
  return __hip_atomic_load(from, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ __forceinline__ void let_next_kernel_come() {}
__device__ __forceinline__ void await_kernel_before() {}
inline auto launch_early(void const* kernel, dim3 blocks, dim3 threads, void** parameters,
                         hipStream_t stream) {
  return hipLaunchKernel(kernel, blocks, threads, parameters, 0, stream);
}
constexpr int first_to_launch_early = 1 << 20;  ///< none does
/// Ordinary memory is seen by others only when a kernel has ended.
inline auto allocate_polled(void** memory, std::size_t bytes) {
  return hipExtMallocWithFlags(memory, bytes, hipDeviceMallocFinegrained);
}
#endif
#if defined(__CUDACC__) && CUDART_VERSION >= 12040
/// Nodes of a graph that repeat a body for as long as a kernel has left their condition true.
constexpr bool has_while_nodes = true;
using Condition = cudaGraphConditionalHandle;
__device__ __forceinline__ void set_condition(Condition condition, bool value) {
  cudaGraphSetConditional(condition, value ? 1u : 0u);
}
inline cudaError_t create_condition(Condition* condition, cudaGraph_t graph) {
  return cudaGraphConditionalHandleCreate(condition, graph, 0, 0);
}
inline cudaError_t add_while_node(cudaGraphNode_t* node, cudaGraph_t graph, cudaGraphNode_t const* after,
                                  std::size_t count, Condition condition, cudaGraph_t* body) {
  cudaGraphNodeParams parameters{};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = condition;
  parameters.conditional.type = cudaGraphCondTypeWhile;
  parameters.conditional.size = 1;
#if CUDART_VERSION >= 13000
  cudaError_t const code = cudaGraphAddNode(node, graph, after, nullptr, count, &parameters);
#else
  cudaError_t const code = cudaGraphAddNode(node, graph, after, count, &parameters);
#endif
  if (code == cudaSuccess) *body = parameters.conditional.phGraph_out[0];
  return code;
}
#else
constexpr bool has_while_nodes = false;
using Condition = unsigned long long;
__device__ __forceinline__ void set_condition(Condition, bool) {}
inline auto create_condition(Condition*, HOSTLESS_GPU(Graph_t)) { return HOSTLESS_GPU(ErrorNotSupported); }
inline auto add_while_node(HOSTLESS_GPU(GraphNode_t) *, HOSTLESS_GPU(Graph_t),
                           HOSTLESS_GPU(GraphNode_t) const*, std::size_t, Condition,
                           HOSTLESS_GPU(Graph_t) *) {
  return HOSTLESS_GPU(ErrorNotSupported);
}
#endif
/// Ranges that profilers of the vendor show (NVTX, rocTX); nothing without one of them. And graphs that are
/// brought to the GPU before they are launched.
#if defined(__CUDACC__)
inline void begin_range(char const* name) { nvtxRangePushA(name); }
inline void end_range() { nvtxRangePop(); }
inline cudaError_t upload_graph(cudaGraphExec_t graph, cudaStream_t stream) {
  return cudaGraphUpload(graph, stream);
}
#else
inline hipError_t upload_graph(hipGraphExec_t, hipStream_t) { return hipSuccess; }
inline void* of_roctx(char const* function) {
  static void* const library = dlopen("libroctx64.so", RTLD_LAZY);
  return library == nullptr ? nullptr : dlsym(library, function);
}
inline void begin_range(char const* name) {
  static auto const push = reinterpret_cast<int (*)(char const*)>(of_roctx("roctxRangePushA"));
  if (push != nullptr) push(name);
}
inline void end_range() {
  static auto const pop = reinterpret_cast<int (*)()>(of_roctx("roctxRangePop"));
  if (pop != nullptr) pop();
}
#endif
class Range {
 public:
  explicit Range(char const* name) { begin_range(name); }
  Range(Range const&) = delete;
  Range& operator=(Range const&) = delete;
  ~Range() { end_range(); }
};
/// Of this multiprocessor, at its clock rate; cheap, where a timer of the whole GPU costs a microsecond.
__device__ __forceinline__ std::uint64_t cycles() { return static_cast<std::uint64_t>(clock64()); }

#endif

// Copies from memory into a block's shared memory that a thread queues and goes on; where the compiler knows none,
// loads and stores.

/// Of 4, 8 or 16 bytes, aligned to as many.
template <int bytes>
HOSTLESS_HOST_DEVICE void copy_async(void* to_shared, void const* from) {
#if defined(__CUDA_ARCH__)
  auto const to = static_cast<std::uint32_t>(__cvta_generic_to_shared(to_shared));
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(bytes) : "memory");
#else
  __builtin_memcpy(to_shared, from, bytes);
#endif
}
/// What this thread has queued since the last call is a group.
HOSTLESS_HOST_DEVICE void end_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Until of this thread's groups all but the last `left` are there, for itself.
template <int left>
HOSTLESS_HOST_DEVICE void await_copies() {
#if defined(__CUDA_ARCH__)
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

}  // namespace hostless::gpu
