#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "files/file.hpp"

namespace hostless::files {

/// Reads the sizes behind class id `id`; returns where the data begins. Throws Error for another id and for a
/// header that is cut short. One rank's own.
std::int64_t petsc_sizes(File const& file, std::int32_t id, std::span<std::int32_t> sizes);

/// Throws the Error for files of a PETSc with 64-bit indices.
[[noreturn]] void refuse_wide_indices(std::string const& path);

}  // namespace hostless::files
