#include "outcome.hpp"

#include <cstring>
#include <utility>

namespace hostless::contract {

Outcome Outcome::of(Result const& r, std::vector<double> x) {
  return {r.status, r.iterations, r.restarts, r.true_residual, r.residual_history, std::move(x)};
}

Bytes Outcome::bytes() const {
  std::vector<double> all{static_cast<double>(status), static_cast<double>(iterations),
                          static_cast<double>(restarts), true_residual, static_cast<double>(history.size())};
  all.insert(all.end(), history.begin(), history.end());
  all.insert(all.end(), x.begin(), x.end());
  Bytes raw(all.size() * sizeof(double));
  std::memcpy(raw.data(), all.data(), raw.size());
  return raw;
}

Outcome Outcome::from(Bytes const& raw) {
  std::vector<double> all(raw.size() / sizeof(double));
  std::memcpy(all.data(), raw.data(), raw.size());
  Outcome o;
  o.status = static_cast<Status>(static_cast<int>(all[0]));
  o.iterations = static_cast<std::int64_t>(all[1]);
  o.restarts = static_cast<std::int64_t>(all[2]);
  o.true_residual = all[3];
  auto const end = all.begin() + 5 + static_cast<std::ptrdiff_t>(all[4]);
  o.history.assign(all.begin() + 5, end);
  o.x.assign(end, all.end());
  return o;
}

std::string Outcome::difference(Outcome const& other) const {
  if (status != other.status)
    return std::string("status ") + hostless::name(status) + ", not " + hostless::name(other.status);
  if (iterations != other.iterations)
    return std::to_string(iterations) + " iterations, not " + std::to_string(other.iterations);
  if (restarts != other.restarts)
    return std::to_string(restarts) + " restarts, not " + std::to_string(other.restarts);
  auto const first = [](std::vector<double> const& a, std::vector<double> const& b) {
    std::size_t i = 0;
    while (i < a.size() && i < b.size() && std::memcmp(&a[i], &b[i], sizeof(double)) == 0) ++i;
    return i == a.size() && i == b.size() ? -1 : static_cast<std::int64_t>(i);
  };
  if (auto const i = first(history, other.history); i >= 0)
    return "residual " + std::to_string(i) + " differs";
  if (auto const i = first(x, other.x); i >= 0) return "x[" + std::to_string(i) + "] differs";
  if (std::memcmp(&true_residual, &other.true_residual, sizeof(double)) != 0)
    return "the true residual differs";
  return {};
}

}  // namespace hostless::contract
