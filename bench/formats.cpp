// How fast one core multiplies with each format, against the bandwidth of plain reading and against a plain
// CSR loop.
//
//   formats [points of the scalar cubes = 96] [nodes of the cubes of blocks = 44] [sweeps = 15]     0: left
//   out
//
// GB/s is LocalMatrix::bytes_per_sweep plus x read once and the result written once, over the fastest sweep
// (cores and memory may be shared with others).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "hostless/operate/local_matrix.hpp"

namespace {

using namespace hostless;

/// A cube of n^3 points with `dof` unknowns each and a box or star stencil; the values are only numbers.
class Cube final : public LocalRows {
 public:
  Cube(int n, int dof, bool star) : n_(n), dof_(dof), star_(star) {}
  std::int64_t owned() const override { return std::int64_t{n_} * n_ * n_ * dof_; }
  std::int64_t ghosts() const override { return 0; }
  void panel(std::int64_t first_row, std::int64_t count, LocalPanel& out) const override {
    out.clear();
    for (std::int64_t row = first_row; row < first_row + count; ++row) {
      std::int64_t const point = row / dof_;
      int const x = static_cast<int>(point % n_), y = static_cast<int>(point / n_ % n_),
                z = static_cast<int>(point / n_ / n_);
      for (int dz = -1; dz <= 1; ++dz) {
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            if (star_ && dx * dx + dy * dy + dz * dz > 1) continue;
            if (x + dx < 0 || x + dx >= n_ || y + dy < 0 || y + dy >= n_ || z + dz < 0 || z + dz >= n_)
              continue;
            std::int64_t const other = point + (std::int64_t{dz} * n_ + dy) * n_ + dx;
            for (int c = 0; c < dof_; ++c) {
              out.column.push_back(static_cast<std::int32_t>(other * dof_ + c));
              out.value.push_back(other * dof_ + c == row
                                      ? 30.0
                                      : -0.3 - 1e-3 * static_cast<double>((row + other * dof_ + c) % 97));
            }
          }
        }
      }
      out.offset.push_back(static_cast<std::int64_t>(out.column.size()));
    }
  }

 private:
  int n_, dof_;
  bool star_;
};

template <class Work>
double best_seconds(int repeats, Work&& work) {
  double best = 1e30;
  for (int i = 0; i < repeats; ++i) {
    auto const begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

HOSTLESS_TARGET_V3 double sum_v3(double const* value, std::int64_t n) {
  double sum[32] = {};
  for (std::int64_t i = 0; i + 32 <= n; i += 32) {
    // Fetched ahead like in the kernels: without it reading is slower than they are.
    for (int k = 0; k < 32; k += 8) {
      __builtin_prefetch(
          reinterpret_cast<void const*>(reinterpret_cast<std::uintptr_t>(value + i + k) + 3072));
    }
    for (int k = 0; k < 32; ++k) sum[k] += value[i + k];
  }
  double total = 0.0;
  for (double part : sum) total += part;
  return total;
}

double read_bandwidth(int repeats) {
  std::vector<double> value(std::size_t{1} << 25, 1.0);  // 256 MB, ordinary pages
  volatile double sink = 0.0;
  double const seconds =
      best_seconds(repeats, [&] { sink = sum_v3(value.data(), static_cast<std::int64_t>(value.size())); });
  return static_cast<double>(value.size() * sizeof(double)) / seconds * 1e-9;
}

/// What any text book writes: 32-bit columns, one row after another.
double plain_csr_seconds(LocalPanel const& a, std::vector<double> const& x, std::vector<double>& y,
                         int repeats) {
  return best_seconds(repeats, [&] {
    for (std::size_t i = 0; i < y.size(); ++i) {
      double sum = 0.0;
      for (std::int64_t k = a.offset[i]; k < a.offset[i + 1]; ++k) sum += a.value[k] * x[a.column[k]];
      y[i] = sum;
    }
  });
}

void compare(char const* title, Cube const& rows, int block, int repeats, double bandwidth) {
  Tiling const tiling{rows.owned() / block, block, 264};
  std::vector<double> x(static_cast<std::size_t>(rows.owned())), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  double plain = 0.0;
  {
    LocalPanel all;
    rows.panel(0, rows.owned(), all);
    plain = plain_csr_seconds(all, x, y, repeats);
    double const bytes = static_cast<double>(all.column.size()) * 12.0 + 24.0 * static_cast<double>(x.size());
    fmt::print("{}: {} rows, {} entries\n  plain CSR loop             {:8.3f} ms {:6.2f} GB/s\n", title,
               rows.owned(), all.column.size(), plain * 1e3, bytes / plain * 1e-9);
  }
  for (char const* format : {"csr", "bsr", "halved bsr", "sell"}) {
    bool const bsr = std::strstr(format, "bsr") != nullptr;
    if (block == 1 && bsr) continue;
    for (char const* columns : {"auto", "16", "32"}) {
      if (std::strcmp(columns, "auto") == 0 && (block > 1 || std::strcmp(format, "sell") != 0)) continue;
      FormatRequest request = FormatRequest::from(bsr ? "bsr" : format, columns);
      if (std::strcmp(format, "bsr") == 0) request.half_reach = 0;
      for (Isa isa : {Isa::v3, Isa::v4, Isa::baseline}) {
        if (isa > active_isa() || (isa == Isa::baseline && active_isa() != isa)) continue;
        LocalMatrix const a(rows, tiling, request, isa);
        double const seconds = best_seconds(repeats, [&] { a.multiply(x.data(), y.data()); });
        double const bytes = static_cast<double>(a.bytes_per_sweep()) + 16.0 * static_cast<double>(x.size());
        fmt::print("  {:12} {:4} {:8} {:8.3f} ms {:6.2f} GB/s {:4.0f} % of reading, {:5.2f} x plain CSR\n",
                   format, columns, name(isa), seconds * 1e3, bytes / seconds * 1e-9,
                   bytes / seconds * 1e-7 / bandwidth, plain / seconds);
      }
    }
  }
  fmt::print("  auto: {}\n", LocalMatrix(rows, tiling).why());
}

}  // namespace

int main(int count, char** words) {
  auto const number = [&](int at, int otherwise) { return count > at ? std::atoi(words[at]) : otherwise; };
  int const points = number(1, 96), nodes = number(2, 44), repeats = number(3, 15);
  if (points < 0 || nodes < 0 || repeats < 1) {
    fmt::print(stderr, "formats [points] [nodes] [sweeps >= 1]\n");
    return 2;
  }
  double const bandwidth = active_isa() == Isa::baseline ? 0.0 : read_bandwidth(repeats);
  fmt::print("reading 256 MB: {:.2f} GB/s, one core, {} kernels\n", bandwidth, name(active_isa()));
  if (points > 0) {
    compare("7-point", Cube(points, 1, true), 1, repeats, bandwidth);
    compare("27-point", Cube(points * 2 / 3, 1, false), 1, repeats, bandwidth);
  }
  if (nodes > 0) {
    compare("hex8, 3 dof", Cube(nodes, 3, false), 3, repeats, bandwidth);
    compare("27-point, 2 dof", Cube(nodes, 2, false), 2, repeats, bandwidth);
    compare("27-point, 4 dof", Cube(nodes * 3 / 4, 4, false), 4, repeats, bandwidth);
    compare("27-point, 6 dof", Cube(nodes * 2 / 3, 6, false), 6, repeats, bandwidth);
  }
  return 0;
}
