// The instances of all methods of the list, of their variants and of all block sizes.
#include <iterator>
#include <utility>

#include "solve/gpu/instance.hpp"
#include "solve/methods/methods.hpp"

namespace hostless::gpu {
namespace {

// As cmake/GpuLibraries.cmake has them. A library that only has to compile knows few.
#if defined(HOSTLESS_FEW_BLOCKS)
constexpr int blocks[] = {1, 3, 6};
#else
constexpr int blocks[] = {1, 2, 3, 4, 6};
#endif

template <class Descriptor, Variant variant>
Instance const& of_block(int block) {
  Instance const* found = nullptr;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((blocks[k] == block ? void(found = &instance_of<Descriptor, variant, blocks[k]>()) : void()), ...);
  }
  (std::make_index_sequence<std::size(blocks)>{});
  return *found;
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
