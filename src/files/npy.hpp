#pragma once

#include <cstdint>
#include <string>

#include "files/file.hpp"

namespace hostless::files {

/// Checks the header of a .npy file of `n` little-endian float64 and the file's size; returns where the data
/// begins. Throws Error for everything else. One rank's own.
std::int64_t npy_data(File const& file, std::int64_t n);

/// The header of a .npy file of n little-endian float64.
std::string npy_header(std::int64_t n);

}  // namespace hostless::files
