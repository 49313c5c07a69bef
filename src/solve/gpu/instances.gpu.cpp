// The instances of all texts and block sizes, by name.
#include "solve/gpu/instance.hpp"

namespace hostless::gpu {
namespace {

template <TextKind text>
Instance const& instance_of_block(int block) {
  switch (block) {
    case 2:
      return instance_of<text, 2>();
    case 3:
      return instance_of<text, 3>();
    case 4:
      return instance_of<text, 4>();
    case 6:
      return instance_of<text, 6>();
    default:
      return instance_of<text, 1>();
  }
}

}  // namespace

Instance const& find_instance(TextKind text, int block) {
  switch (text) {
    case TextKind::cg:
      return instance_of_block<TextKind::cg>(block);
    case TextKind::single_reduction_cg:
      return instance_of_block<TextKind::single_reduction_cg>(block);
    case TextKind::pipelined_cg:
      return instance_of_block<TextKind::pipelined_cg>(block);
    case TextKind::chebyshev_cg:
      return instance_of_block<TextKind::chebyshev_cg>(block);
    case TextKind::rounded_cg:
      return instance_of_block<TextKind::rounded_cg>(block);
    case TextKind::communication:
      return communication_instance(block, true);
  }
  return instance_of_block<TextKind::cg>(block);
}

}  // namespace hostless::gpu
