#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hostless {

/// Memory of the caller's and what to call it.
struct NamedMemory {
  std::string name;
  void const* first = nullptr;
  std::size_t bytes = 0;
};

/// Says which of what is written shares bytes with what is read, or with another that is written; empty:
/// none does.
std::string overlap(std::vector<NamedMemory> const& written, std::vector<NamedMemory> const& read);

}  // namespace hostless
