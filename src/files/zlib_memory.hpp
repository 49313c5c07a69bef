#pragma once

#include <zlib.h>

#include <cstddef>
#include <new>

namespace hostless::files {

// zlib allocates through operator new, so that running out of memory (and tests of it) look the same
// everywhere.
inline voidpf zlib_allocate(voidpf, uInt items, uInt size) {
  return ::operator new(static_cast<std::size_t>(items) * size, std::nothrow);
}
inline void zlib_release(voidpf, voidpf memory) { ::operator delete(memory); }

}  // namespace hostless::files
