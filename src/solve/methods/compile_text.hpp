#pragma once
// HOSTLESS_COMPILE_TEXT(Descriptor) makes an object file of a text: what runs on the processor, or, where a
// compiler for GPUs reads it, once for every block size, HOSTLESS_BLOCK, its kernels of Variant::plain.

#ifdef HOSTLESS_GPU_COMPILER
#include "solve/gpu/instance.gpu.hpp"
#define HOSTLESS_COMPILE_TEXT(Descriptor) \
  template hostless::gpu::Instance const& \
  hostless::gpu::instance_of<hostless::Descriptor, hostless::Variant::plain, HOSTLESS_BLOCK>()
#else
#include "solve/methods/run_on_host.impl.hpp"
#define HOSTLESS_COMPILE_TEXT(Descriptor)                            \
  template void hostless::run_on_host<hostless::Descriptor>(         \
      hostless::host::Engine&, hostless::RunKind, hostless::Variant, \
      hostless::MethodInput<hostless::AnyPreconditioner> const&)
#endif
