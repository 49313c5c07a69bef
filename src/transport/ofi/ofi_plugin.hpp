#pragma once

#include "hostless/transport/transport.hpp"

// What the plugin offers to the loader. The names are C, the objects C++: plugin and library are built
// together, and the number says whether they still fit.
namespace hostless::ofi_plugin {

constexpr int interface_version = 1;

using InterfaceVersion = int();
/// Writes '+' and what libfabric says of itself and of the provider that would carry, or '-' and why none would.
using Describe = void(char* text, int capacity);
/// A new transport over `below`. Throws Error.
using Open = Transport*(Transport* below);

constexpr char const* interface_version_name = "hostless_ofi_interface_version";
constexpr char const* describe_name = "hostless_ofi_describe";
constexpr char const* open_name = "hostless_ofi_open";

}  // namespace hostless::ofi_plugin
