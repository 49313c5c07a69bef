#pragma once

namespace hostless {

/// Instruction sets that the kernels are compiled for. Which one runs cannot change a bit: `fma` is written
/// out and contraction is off. Without hardware fma the baseline is right but 2 to 4 times slower.
enum class Isa : int { baseline, v3, v4 };
char const* name(Isa isa);

/// The best set this processor has, or the one that the environment variable HOSTLESS_ISA names (baseline,
/// v3, v4), if the processor has it. Decided once.
Isa active_isa();
/// Whether this processor is one of Intel's: what is fetched ahead, and how much at once, was measured apart for these.
bool runs_on_intel();

}  // namespace hostless

/// One function compiled three times, its callees inlined into each: no file needs flags of its own, so no
/// inline function of the standard library can be merged into a build that the processor cannot run.
#define HOSTLESS_TARGET_BASELINE __attribute__((flatten))
#if defined(__x86_64__)
#define HOSTLESS_TARGET_V3 __attribute__((flatten, target("avx,avx2,fma,bmi,bmi2,lzcnt,movbe,f16c")))
#define HOSTLESS_TARGET_V4 \
  __attribute__((          \
      flatten,             \
      target("avx,avx2,fma,bmi,bmi2,lzcnt,movbe,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512cd")))
#else
#define HOSTLESS_TARGET_V3 __attribute__((flatten))
#define HOSTLESS_TARGET_V4 __attribute__((flatten))
#endif
