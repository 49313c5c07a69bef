#pragma once
// A runtime in the place of HIP's, for the host's half of src/solve/gpu/*.gpu.cpp on machines without a GPU:
// device memory is the host's, streams are done at once, kernels are compiled, noted when they are launched
// and not executed. Every call is counted and can be told to fail (fake_runtime.hpp); what was not given back
// is counted too.

#include <bit>
#include <cstddef>
#include <cstdint>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __HIP_MEMORY_SCOPE_SYSTEM 0
#define __hip_atomic_store(to, value, order, scope) __atomic_store_n(to, value, order)
#define __hip_atomic_load(from, order, scope) __atomic_load_n(from, order)
#define __builtin_amdgcn_wave_barrier() static_cast<void>(0)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline thread_local dim3 gridDim, blockDim;
inline thread_local dim3 blockIdx{0, 0, 0}, threadIdx{0, 0, 0};
inline void __syncthreads() {}
inline int __syncthreads_or(int value) { return value; }
inline void __threadfence() {}
inline void __threadfence_system() {}
inline int __all(bool value) { return value; }
inline int __any(bool value) { return value; }
inline long long clock64() { return 0; }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long value) { return std::bit_cast<double>(value); }
template <class T>
T __shfl_xor(T value, int, int) {
  return value;
}
template <class T>
T __shfl_up(T value, unsigned, int) {
  return value;
}
template <class T>
T atomicAdd(T* to, T value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

enum hipError_t {
  hipSuccess,
  hipErrorMemoryAllocation,
  hipErrorNotReady,
  hipErrorNotSupported,
  hipErrorPeerAccessAlreadyEnabled,
  hipErrorUnknown
};
enum hipMemcpyKind {
  hipMemcpyHostToDevice,
  hipMemcpyDeviceToHost,
  hipMemcpyDeviceToDevice,
  hipMemcpyDefault
};
enum hipDeviceAttribute_t { hipDeviceAttributeClockRate, hipDeviceAttributeMaxSharedMemoryPerBlock };
enum hipStreamCaptureMode { hipStreamCaptureModeRelaxed };
constexpr unsigned hipStreamNonBlocking = 1, hipHostMallocMapped = 2, hipHostMallocCoherent = 4,
                   hipIpcMemLazyEnablePeerAccess = 1, hipEventDefault = 0, hipEventBlockingSync = 1,
                   hipEventDisableTiming = 2, hipDeviceMallocFinegrained = 1;
struct hipDeviceProp_t {
  int multiProcessorCount = 0;
};
struct hipFuncAttributes {
  int numRegs = 0;
};
struct hipIpcMemHandle_t {
  unsigned char reserved[64];
};
struct hipKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  void** kernelParams;
  unsigned sharedMemBytes;
  void** extra;
};
using hipStream_t = struct FakeStream*;
using hipEvent_t = struct FakeEvent*;
using hipGraph_t = struct FakeGraph*;
using hipGraphNode_t = struct FakeNode*;
using hipGraphExec_t = struct FakeExec*;

char const* hipGetErrorString(hipError_t);
hipError_t hipGetLastError();
hipError_t hipMalloc(void**, std::size_t);
hipError_t hipExtMallocWithFlags(void**, std::size_t, unsigned);
hipError_t hipFree(void*);
hipError_t hipHostMalloc(void**, std::size_t, unsigned);
hipError_t hipHostFree(void*);
hipError_t hipHostGetDevicePointer(void**, void*, unsigned);
hipError_t hipMemset(void*, int, std::size_t);
hipError_t hipMemcpy(void*, void const*, std::size_t, hipMemcpyKind);
hipError_t hipMemcpyAsync(void*, void const*, std::size_t, hipMemcpyKind, hipStream_t);
hipError_t hipMemGetInfo(std::size_t*, std::size_t*);
hipError_t hipGetDevice(int*);
hipError_t hipGetDeviceCount(int*);
struct hipPointerAttribute_t {
  int device;
  void* devicePointer;
};
hipError_t hipPointerGetAttributes(hipPointerAttribute_t*, void const*);
hipError_t hipSetDevice(int);
hipError_t hipDeviceGetPCIBusId(char*, int, int);
hipError_t hipDeviceGetAttribute(int*, hipDeviceAttribute_t, int);
hipError_t hipGetDeviceProperties(hipDeviceProp_t*, int);
hipError_t hipDeviceCanAccessPeer(int*, int, int);
hipError_t hipDeviceEnablePeerAccess(int, unsigned);
hipError_t hipDeviceGetStreamPriorityRange(int*, int*);
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t*, void*);
hipError_t hipIpcOpenMemHandle(void**, hipIpcMemHandle_t, unsigned);
hipError_t hipIpcCloseMemHandle(void*);
hipError_t hipStreamCreateWithFlags(hipStream_t*, unsigned);
hipError_t hipStreamCreateWithPriority(hipStream_t*, unsigned, int);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamQuery(hipStream_t);
hipError_t hipStreamAddCallback(hipStream_t, void (*)(hipStream_t, hipError_t, void*), void*, unsigned);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned);
hipError_t hipStreamBeginCapture(hipStream_t, hipStreamCaptureMode);
hipError_t hipStreamEndCapture(hipStream_t, hipGraph_t*);
hipError_t hipEventCreateWithFlags(hipEvent_t*, unsigned);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventRecord(hipEvent_t, hipStream_t);
hipError_t hipEventQuery(hipEvent_t);
hipError_t hipEventSynchronize(hipEvent_t);
enum hipStreamCaptureStatus { hipStreamCaptureStatusNone, hipStreamCaptureStatusActive };
hipError_t hipStreamIsCapturing(hipStream_t, hipStreamCaptureStatus*);
hipError_t hipEventElapsedTime(float*, hipEvent_t, hipEvent_t);
hipError_t hipFuncGetAttributes(hipFuncAttributes*, void const*);
hipError_t hipLaunchKernel(void const*, dim3, dim3, void**, std::size_t, hipStream_t);
hipError_t hipGraphCreate(hipGraph_t*, unsigned);
hipError_t hipGraphDestroy(hipGraph_t);
hipError_t hipGraphAddKernelNode(hipGraphNode_t*, hipGraph_t, hipGraphNode_t const*, std::size_t,
                                 hipKernelNodeParams const*);
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t*, hipGraph_t, hipGraphNode_t const*, std::size_t,
                                     hipGraph_t);
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t*, hipGraph_t, unsigned long long);
hipError_t hipGraphExecDestroy(hipGraphExec_t);
hipError_t hipGraphLaunch(hipGraphExec_t, hipStream_t);
