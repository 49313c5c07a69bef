#include "exchange/overlap.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace hostless {
namespace {

bool share(NamedMemory const& a, NamedMemory const& b) {
  auto const at_a = reinterpret_cast<std::uintptr_t>(a.first),
             at_b = reinterpret_cast<std::uintptr_t>(b.first);
  if (a.bytes == 0 || b.bytes == 0) return false;
  return at_a <= at_b ? at_b - at_a < a.bytes : at_a - at_b < b.bytes;
}

std::string shared(NamedMemory const& a, NamedMemory const& b) {
  return fmt::format("{} and {} share bytes", a.name, b.name);
}

}  // namespace

std::string overlap(std::vector<NamedMemory> const& written, std::vector<NamedMemory> const& read) {
  for (std::size_t k = 0; k < written.size(); ++k) {
    for (NamedMemory const& other : read)
      if (share(written[k], other)) return shared(written[k], other);
    for (std::size_t j = 0; j < k; ++j)
      if (share(written[k], written[j])) return shared(written[k], written[j]);
  }
  return {};
}

}  // namespace hostless
