// A row of zeros only: what no method and no preconditioner helps.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "solve/methods/method_vectors.hpp"
#include "solve/setup/manufactured.hpp"
#include "solve/solver_parts.hpp"

namespace hostless {

// The first of all ranks: its product with any vector is exactly zero, which that of another row with random
// entries is not, and not twice. Collective; a product with A, two where there seems to be one.
std::optional<Solver::Parts::EmptyRow> Solver::Parts::find_empty_row() {
  if (matrix.local() == nullptr) return {};
  std::size_t const n = rhs.size();
  std::vector<double> u(n), product(n);
  std::vector<bool> is_zero(n, true);
  EmptyRow first;
  for (std::uint64_t const stream : {17, 18}) {
    for (std::size_t i = 0; i < n; ++i)
      u[i] = random_entry(stream, matrix.global_row(static_cast<std::int64_t>(i)));
    multiply(u.data(), product.data());
    EmptyRow mine{matrix.global_rows(), 0};
    for (std::size_t i = 0; i < n; ++i) {
      is_zero[i] = is_zero[i] && product[i] == 0;
      std::int64_t const row = matrix.global_row(static_cast<std::int64_t>(i));
      if (is_zero[i] && row < mine.row)
        mine = {row, there == nullptr ? rhs[i] : std::numeric_limits<double>::quiet_NaN()};
    }
    first = mine;
    for (EmptyRow const& one : group().all_gather(mine))
      if (one.row < first.row) first = one;
    if (first.row == matrix.global_rows()) return {};
  }
  return first;
}

// Alone where it is the reason, before `otherwise` where b asks nothing of that row, and nothing of it where
// there is none. Collective.
std::string Solver::Parts::name_empty_row(std::string const& otherwise) {
  auto const found = find_empty_row();
  if (!found) return otherwise;
  std::string const what_to_do = "Take that row and its column out, or put a 1 on its diagonal.";
  if (found->b == 0 || std::isnan(found->b))
    return fmt::format("row {} of A holds only zeros: A is singular. {} Else: {}", found->row + 1, what_to_do,
                       otherwise);
  return fmt::format("row {} of A holds only zeros, and b is {} there, which no x reaches. {}",
                     found->row + 1, found->b, what_to_do);
}

}  // namespace hostless
