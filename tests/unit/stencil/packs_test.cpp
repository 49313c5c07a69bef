// What a kernel computes by packs has the bits of the loop over cells, whatever the length of rows and where they begin, and
// no other cell is written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "hostless/stencil/catalogue.hpp"
#include "hostless/stencil/pack.hpp"
#include "stencil/plain_update.hpp"

namespace hostless {
namespace {

constexpr std::int64_t rows = 3, edge = 4, stride = 256;

/// Numbers of all sizes, those below the smallest normal one too.
template <class T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<T> found;
  for (std::size_t k = 0; k < count; ++k) {
    T const small =
        k % 5 == 0 ? std::numeric_limits<T>::denorm_min() * static_cast<T>(engine() % 1000) : T(0);
    found.push_back(k % 5 == 0 ? small : static_cast<T>(engine()) / T(1 << 30) - T(2));
  }
  return found;
}

template <class T>
std::vector<T> updated(StencilKernel const& kernel, CellFunction update, std::vector<T> const& old,
                       std::int64_t cells, std::int64_t begin) {
  std::vector<T> out(static_cast<std::size_t>(kernel.fields * 8 * stride), T(7));
  std::vector<void const*> in(static_cast<std::size_t>(kernel.rows_read()));
  std::vector<std::int64_t> const strides(in.size(), stride);
  std::vector<void*> to;
  for (int f = 0; f < kernel.fields; ++f) to.push_back(out.data() + f * 8 * stride + stride + begin);
  for (std::size_t k = 0; k < in.size(); ++k)
    in[k] = old.data() + static_cast<std::int64_t>(k) * stride + edge;
  update({to.data(), in.data(), strides.data(), stride, rows, cells, kernel.parameters.data()});
  return out;
}

template <class T>
void compare(char const* name, int axes, bool of_zeros = false) {
  std::vector<double> parameters = defaults_of(named_stencil(name), axes);
  if (of_zeros) std::fill(parameters.begin(), parameters.end(), -0.0);
  StencilKernel const kernel = make_stencil(name, axes, sizeof(T), parameters);
  CellFunction const plain = plain_update(name, axes, sizeof(T));
  auto old = numbers<T>(static_cast<std::size_t>((kernel.rows_read() + rows) * stride), 7);
  if (of_zeros) std::fill(old.begin(), old.end(), T(-0.0));
  for (std::int64_t cells = 0; cells <= 140; ++cells)
    for (std::int64_t const begin : {0, 1, 6, 15}) {
      auto const expected = updated<T>(kernel, plain, old, cells, begin);
      auto const found = updated<T>(kernel, kernel.update, old, cells, begin);
      ASSERT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * sizeof(T)), 0)
          << name << " " << axes << " axes, " << sizeof(T) << " bytes, " << cells << " cells from " << begin;
    }
}

TEST(Packs, HaveTheBitsOfOneCellAfterTheOther) {
  for (NamedStencil const& one : named_stencils())
    for (int const axes : one.axes) {
      compare<float>(one.name, axes);
      compare<double>(one.name, axes);
    }
}

TEST(Packs, KeepTheSignOfZeros) {
  using Floats = Pack<float, 32>;
  float found[Floats::width];
  Floats(-0.0).store(found);
  for (float const one : found) EXPECT_TRUE(one == 0 && std::signbit(one));
  Floats(0.0).store(found);
  for (float const one : found) EXPECT_TRUE(one == 0 && !std::signbit(one));
  for (NamedStencil const& one : named_stencils())
    for (int const axes : one.axes) {
      compare<float>(one.name, axes, true);
      compare<double>(one.name, axes, true);
    }
}

}  // namespace
}  // namespace hostless
