#pragma once

#include <cstdint>
#include <span>

#include "files/elements.hpp"

namespace hostless::files {

/// Reads the sizes behind class id `id` of an object of PETSc's, whose integers have 32 or 64 bits: the first
/// bytes tell which. Returns the type of the object's integers; the data begins behind id and sizes.
/// Errors  bad_input  another id, or a header that is cut short
ElementType petsc_sizes(ByteSource& source, std::int32_t id, std::span<std::int64_t> sizes);

/// Whether the object is a vector.
bool is_petsc_vector(ByteSource& source);

/// The type of the `count` values that begin at byte `begin`. Nothing in the file names it; its length does:
/// values are followed by the end of the file or by another object.
/// Errors  bad_input  complex values, or fewer bytes than any real ones take
ElementType petsc_values(ByteSource& source, ElementType index, std::int64_t begin, std::int64_t count);

}  // namespace hostless::files
