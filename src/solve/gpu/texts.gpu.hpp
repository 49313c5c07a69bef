#pragma once
// The texts as kernels call them, and what one instance (a method and a block size) offers to the host.

#include "run/gpu/persistent.gpu.hpp"
#include "solve/conjugate_gradient.impl.hpp"
#include "solve/one_reduction.impl.hpp"

namespace hostless {

template <class Run, class M, class Polynomial>
__device__ __forceinline__ void run_text(Run& run, ConjugateGradient<M, Polynomial> const& data) {
  conjugate_gradient(run, data);
}
template <class Run, class M>
__device__ __forceinline__ void run_text(Run& run, SingleReduction<M> const& data) {
  single_reduction_cg(run, data);
}
template <class Run, class M>
__device__ __forceinline__ void run_text(Run& run, Pipelined<M> const& data) {
  pipelined_cg(run, data);
}

}  // namespace hostless
