#pragma once

#include <cstdint>

namespace hostless {

/// Products with A in one application, at most: nobody hears a signal or sees a time limit in between, and
/// rounding has long ended what a higher degree gains.
constexpr int most_chebyshev_degree = 1000;

/// The numbers of a Chebyshev polynomial that do not depend on the upper bound; lower = upper / ratio.
struct ChebyshevNumbers {
  int degree = 0;    ///< products with A; 0: there is no polynomial
  double sigma = 0;  ///< theta / delta: centre over half width of [lower, upper]
  double first = 0;  ///< upper / theta
  double later = 0;  ///< 2 upper / delta

  static ChebyshevNumbers of(int degree, double ratio) {
    return {degree, (ratio + 1) / (ratio - 1), 2 * ratio / (ratio + 1), 4 * ratio / (ratio - 1)};
  }
};

/// Bytes of vectors that one application and the direction move per row, from the text's own account; m: of
/// M, per row and use.
constexpr std::int64_t chebyshev_vector_bytes(int degree, std::int64_t m) {
  return 24 + m + degree * (32 + m) + (degree - 1) * 24 + 40;
}

}  // namespace hostless
