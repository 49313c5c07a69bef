#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hostless/operate/local_matrix.hpp"

namespace hostless {

/// What the inverted diagonal must be for a method.
enum class DiagonalSigns : std::uint8_t {
  positive,  ///< blocks symmetric positive definite
  absolute,  ///< of the diagonal |d| is inverted, 1 where it is 0; larger blocks as with `positive`
  any        ///< regular
};

/// A row whose diagonal, or whose block, is none of these.
struct BadDiagonal {
  std::int64_t row;  ///< first of its block
  bool finite;       ///< false: NaN or infinity lies there, which says nothing about signs
  bool regular;      ///< it and all that are like it have an inverse, as DiagonalSigns::any takes it
};

/// Inverts the diagonal ([owned], block false) or the diagonal blocks ([owned * b], block true) of `matrix`.
/// Returns the first local row that cannot be used; nothing if all can. Inverses of positive blocks are
/// symmetric bit for bit.
std::optional<BadDiagonal> invert_diagonal(LocalMatrix const& matrix, bool block,
                                           std::vector<double>& preconditioner_data,
                                           DiagonalSigns signs = DiagonalSigns::positive);
/// The same of diagonal blocks [block_rows * b * b], row-major, that are known already.
std::optional<BadDiagonal> invert_diagonal(std::vector<double> blocks, int b, bool block,
                                           std::vector<double>& preconditioner_data,
                                           DiagonalSigns signs = DiagonalSigns::positive);

}  // namespace hostless
