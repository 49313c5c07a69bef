// The instances of all methods of the list, of their variants and of all block sizes.
#include "operate/with_block.hpp"
#include "solve/gpu/instance.hpp"
#include "solve/methods/methods.hpp"

namespace hostless::gpu {
namespace {

// A library that only has to compile knows few of the blocks of cmake/GpuLibraries.cmake.
constexpr bool is_compiled([[maybe_unused]] int block) {
#if defined(HOSTLESS_FEW_BLOCKS)
  return block != 2 && block != 4 && block <= HOSTLESS_FEW_BLOCKS;
#else
  return true;
#endif
}

template <class Descriptor, Variant variant>
Instance const& of_block(int block) {
  return *with_block(block, [](auto size) -> Instance const* {
    constexpr int compiled = is_compiled(size) ? int{size} : 1;
    return &instance_of<Descriptor, variant, compiled>();
  });
}

template <class Descriptor>
Instance const& of_variant(Variant variant, int block) {
  if constexpr (Descriptor::offers.rounded) {
    if (variant == Variant::rounded) return of_block<Descriptor, Variant::rounded>(block);
  }
  if constexpr (Descriptor::offers.polynomial) {
    if (variant == Variant::polynomial) return of_block<Descriptor, Variant::polynomial>(block);
  }
  return of_block<Descriptor, Variant::plain>(block);
}

}  // namespace

Instance const& find_instance(TextKind text, int block) {
  Instance const* found = nullptr;
  with_descriptor(text.method, Methods{},
                  [&]<class Descriptor>() { found = &of_variant<Descriptor>(text.variant, block); });
  return *found;
}

}  // namespace hostless::gpu
