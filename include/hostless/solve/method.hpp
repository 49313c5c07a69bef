#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace hostless {

/// How a system is solved. Numbered as the list of src/solve/methods/methods.hpp has them.
enum class Method : std::uint8_t { cg, single_reduction_cg, pipelined_cg, bicgstab, minres, cr };

char const* name(Method method);
/// Errors  usage  unknown name
Method method_from(char const* text);
/// All of them, in the order of the list.
std::span<Method const> methods();
/// "cg, single-reduction-cg, ... or minres".
std::string method_names(char const* before_last = " or ");

}  // namespace hostless
