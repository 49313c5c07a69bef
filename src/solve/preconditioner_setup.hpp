#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hostless/operate/local_matrix.hpp"

namespace hostless {

/// Inverts the diagonal ([owned], block false) or the diagonal blocks ([owned * b], block true) of `matrix`.
/// Returns the first local row whose diagonal, or whose block's Cholesky factor, is not positive; nothing if
/// all are. Inverses are symmetric bit for bit.
std::optional<std::int64_t> invert_diagonal(LocalMatrix const& matrix, bool block,
                                            std::vector<double>& inverse);

}  // namespace hostless
