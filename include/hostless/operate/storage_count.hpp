#pragma once
// What a LocalMatrix would read in a product, without making it.

#include <array>
#include <cstdint>
#include <span>

#include "hostless/operate/local_matrix.hpp"
#include "hostless/plan/boxes.hpp"

namespace hostless {

/// The storage that a LocalMatrix of the same arguments chooses.
struct StorageCount {
  Format format = Format::csr;
  std::int64_t bytes_per_sweep = 0;  ///< LocalMatrix::bytes_per_sweep
  std::int64_t left_out = 0;         ///< values that are not stored, because the other triangle holds them
};
/// Reads `rows` once and stores no entry. Where a pattern is symmetric and values are not, bit for bit, the matrix is
/// stored in full, which this does not see: then say half_reach 0.
/// Errors  usage  as LocalMatrix
StorageCount count_storage(LocalRows const& rows, Tiling const& tiling, FormatRequest request = {});

/// About the same of a symmetric matrix whose rows are the cells of a lattice, the last axis running fastest, in
/// blocks of 1: LocalMatrix stores its diagonals in groups of 32 rows, those below the main one only beyond the
/// automatic reach. Within 3 % of LocalMatrix::bytes_per_sweep from 16^3 cells on, 7 % where slices of few groups end in
/// one that is not full (tests/unit/operate).
///
/// extent     cells along each axis
/// couplings  where the columns of a row lie besides its own, both ways
/// entries    of all rows; those that are not between cells of the lattice are of ghosts, each stored
/// slices     of the Tiling
double lattice_sweep_bytes(std::array<std::int64_t, 3> const& extent, std::span<Direction const> couplings,
                           double entries, int slices);

}  // namespace hostless
