#include "solve/setup/manufactured.hpp"

#include <cmath>

#include "base/hash.hpp"

namespace hostless {
namespace {

template <class Term>
double total(Matrix const& matrix, Term const& term) {
  double sum = 0;
  for (std::int64_t i = 0; i < matrix.owned(); ++i) sum += term(matrix.global_row(i));
  return matrix.transport().group().sum(sum);
}

}  // namespace

double random_entry(std::uint64_t seed, std::int64_t row) {
  std::uint64_t const bits =
      mixed(mixed(seed * 0x9e3779b97f4a7c15ull) + static_cast<std::uint64_t>(row) * 0x9e3779b97f4a7c15ull);
  return static_cast<double>(static_cast<std::int64_t>(bits) >> 11) * 0x1p-52;
}

double manufactured_norm(Matrix const& matrix, std::uint64_t seed) {
  return std::sqrt(total(matrix, [&](std::int64_t row) {
    double const v = random_entry(seed, row);
    return v * v;
  }));
}

double manufactured_mean(Matrix const& matrix, std::uint64_t seed) {
  return total(matrix, [&](std::int64_t row) { return random_entry(seed, row); }) /
         static_cast<double>(matrix.global_rows());
}

}  // namespace hostless
