// The instances of all methods of the list, of their variants and of all block sizes.
#include "solve/gpu/instance.hpp"
#include "solve/methods/methods.hpp"

namespace hostless::gpu {
namespace {

template <class Descriptor, Variant variant>
Instance const& of_block(int block) {
  switch (block) {
    case 2:
      return instance_of<Descriptor, variant, 2>();
    case 3:
      return instance_of<Descriptor, variant, 3>();
    case 4:
      return instance_of<Descriptor, variant, 4>();
    case 6:
      return instance_of<Descriptor, variant, 6>();
    default:
      return instance_of<Descriptor, variant, 1>();
  }
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
