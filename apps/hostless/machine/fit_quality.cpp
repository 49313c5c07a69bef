// Whether what was fitted to measured times can be relied on.
#include <algorithm>
#include <vector>

#include "machine/fit_shown.hpp"

namespace hostless {

PieceFit const* scattered_piece(Fit const& fit) {
  constexpr double most = 0.5;
  auto const worst = std::max_element(
      fit.pieces.begin(), fit.pieces.end(),
      [](PieceFit const& a, PieceFit const& b) { return a.median_residual < b.median_residual; });
  return worst != fit.pieces.end() && worst->median_residual > most ? &*worst : nullptr;
}

double worst_of_small_prices(Fit const& fit, NodeShape const& node,
                             std::vector<MessageSample> const& samples) {
  constexpr double small = 8;
  double worst = 1;
  for (MessageSpan const span : all_spans) {
    std::vector<double> off;
    for (MessageSample const& s : samples) {
      MessagePattern const& p = s.pattern;
      if (p.span != span || p.bytes > small || p.messages > 1 || p.active_ranks > 1) continue;
      double const ratio = price(fit.tables, node, p).seconds / s.seconds;
      off.push_back(std::max(ratio, 1 / ratio));
    }
    if (off.empty()) continue;
    auto const middle = off.begin() + static_cast<std::ptrdiff_t>((off.size() - 1) / 2);
    std::nth_element(off.begin(), middle, off.end());
    worst = std::max(worst, *middle);
  }
  return worst;
}

}  // namespace hostless
