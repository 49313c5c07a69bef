#include "stencil/initial_fields.hpp"

#include <algorithm>
#include <cstring>

#include "base/hash.hpp"

namespace hostless {
namespace {

using Indices = std::vector<std::int64_t>;

// Lattice coordinate along an axis with the middle of the grid at 0, in half cells.
std::int64_t from_middle(Indices const& shape, Indices const& index, std::size_t axis) {
  return 2 * index[axis] - (shape[axis] - 1);
}

// Whether all of |2 i - (n - 1)| are below `halves`(n).
template <class Halves>
bool is_inside(Indices const& shape, Indices const& index, Halves const& halves) {
  for (std::size_t a = 0; a < shape.size(); ++a) {
    std::int64_t const at = from_middle(shape, index, a);
    if ((at < 0 ? -at : at) >= halves(shape[a])) return false;
  }
  return true;
}

std::uint64_t number_of(Indices const& shape, Indices const& index) {
  std::int64_t number = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) number = number * shape[a] + index[a];
  return static_cast<std::uint64_t>(number);
}

// (1 - r^2 / R^2)^4 around the middle, R a quarter of the shortest axis.
double bump(Indices const& shape, Indices const& index) {
  auto const shortest = static_cast<double>(*std::min_element(shape.begin(), shape.end()));
  double const radius = shortest / 2;  // in half cells
  double squares = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    auto const at = static_cast<double>(from_middle(shape, index, a));
    squares += at * at;
  }
  double const left = 1 - squares / (radius * radius);
  return left > 0 ? (left * left) * (left * left) : 0;
}

// Pearson 1993: u = 1, v = 0, and in the middle, 20 cells wide, 1/2 and 1/4, each changed by up to one per
// cent, so that what grows has no symmetry.
double gray_scott(int field, Indices const& shape, Indices const& index) {
  constexpr std::int64_t halves = 20;
  if (!is_inside(shape, index, [](std::int64_t) { return halves; })) return field == 0 ? 1 : 0;
  std::uint64_t const bits = mixed(2 * number_of(shape, index) + static_cast<std::uint64_t>(field) + 1);
  double const change = static_cast<double>(bits >> 11) * 0x1p-52 - 1;  // from -1 to 1
  return (field == 0 ? 0.5 : 0.25) * (1 + 0.01 * change);
}

}  // namespace

double initial_value(std::string const& problem, int field, Indices const& shape, Indices const& index) {
  if (problem == "heat") return is_inside(shape, index, [](std::int64_t n) { return (n + 2) / 3; }) ? 1 : 0;
  if (problem == "wave") return bump(shape, index);
  if (problem == "life") return (mixed(number_of(shape, index) + 1) >> 61) < 3 ? 1 : 0;
  if (problem == "gray_scott") return gray_scott(field, shape, index);
  return index[0] == 0 ? 1 : 0;  // jacobi2d, jacobi3d
}

char const* initial_words(std::string const& problem) {
  if (problem == "heat") return "1 in the middle third of every axis, else 0";
  if (problem == "wave") return "a bump in the middle, at rest";
  if (problem == "life") return "three of eight cells alive, by chance and always the same";
  if (problem == "gray_scott") return "u 1, v 0; about 1/2 and 1/4 in a square of 20 x 20 in the middle";
  return "1 where the first index is 0, else 0";
}

void fill_initial(std::string const& problem, int field, Indices const& shape, Indices const& low,
                  Indices const& high, std::span<std::byte> cells, std::size_t value_bytes) {
  Indices index = low;
  for (std::size_t at = 0; at < cells.size(); at += value_bytes) {
    double const value = initial_value(problem, field, shape, index);
    auto const rounded = static_cast<float>(value);
    std::memcpy(cells.data() + at, value_bytes == 4 ? static_cast<void const*>(&rounded) : &value,
                value_bytes);
    for (std::size_t a = index.size(); a-- > 0;) {
      if (++index[a] < high[a]) break;
      index[a] = low[a];
    }
  }
}

}  // namespace hostless
