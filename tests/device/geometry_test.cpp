// How rows lie on a GPU: few slices and many, long ones whose vectors do not fit into shared memory, slices
// that are empty, every block size, rows of very different lengths. Against the host, bit for bit.
#include <algorithm>
#include <cmath>

#include "gpu_setting.hpp"
#include "operate/device_rows.hpp"

namespace hostless::test {
namespace {

struct Shape {
  std::string name;
  System system;
  int block, slices;  // of the plan; 0: as the library chooses
};

// Slices that give every block of this GPU `turns` tiles of them, the last one not for all.
int slices_for(int turns) { return 2 * multiprocessors() * turns - 3; }

void check(Shape const& shape, std::vector<std::string> const& formats, std::int64_t iterations = 8) {
  if (under_a_tool()) iterations = 3;
  auto const b = random_vector(shape.system.rows(), 5);
  for (Method method : all_methods()) {
    for (PreconditionerKind kind : gpu_preconditioners(method)) {
      if (under_a_tool() && method != Method::cg && kind != PreconditionerKind::none) continue;
      Setting setting;
      setting.matrix.block = shape.block;
      setting.matrix.slices = shape.slices;
      setting.solve.method = method;
      setting.solve.preconditioner = kind;
      setting.solve.rtol = 0;
      // A polynomial makes several iterations' progress in one: nothing must end before the limit.
      setting.solve.max_iterations =
          kind == PreconditionerKind::chebyshev ? (iterations + 1) / 2 : iterations;
      contract::Outcome const expected = solve(shape.system, b, setting);
      EXPECT_EQ(expected.status, Status::iteration_limit) << shape.name << ": choose fewer iterations";
      for (std::string const& format : formats) {
        for (RunKind run : gpu_runs()) {
          EXPECT_EQ(solve(shape.system, b, on_gpu(setting, format, run)).difference(expected), "")
              << shape.name << ' ' << name(method) << ' ' << name(kind) << ' ' << format << ' ' << name(run);
        }
      }
    }
  }
}

System cube(std::int64_t n) { return System::problem(problem("poisson7", n, n, n)); }

class GpuGeometry : public Gpu {};

class GpuBlockSizes : public GpuWith<int> {};

TEST_P(GpuBlockSizes, AllFormats) {
  int const block = GetParam();
  System const a = block == 3 ? System::problem(problem("elasticity-hex8", 6, 5, 7))
                              : System::problem(problem("poisson7", 24, 5, 7));
  check({"block " + std::to_string(block), a, block, 0}, {"diagonals", "diagonals-full", "sell", "csr"});
}
INSTANTIATE_TEST_SUITE_P(All, GpuBlockSizes, testing::Values(1, 2, 3, 4, 6));

TEST_F(GpuGeometry, RowsThatFillNothing) {  // no slice, slot or tile is whole
  for (std::int64_t n : {31, 257, 4099})
    check({"path " + std::to_string(n), System::path(n), 1, 0}, {"auto", "sell", "csr"});
}

TEST_F(GpuGeometry, SlicesWithoutBlockRows) {
  if (!under_a_tool()) check({"more slices than leaves", cube(7), 1, 700}, {"auto", "sell", "csr"});
  check({"a slice a leaf", cube(6), 1, 216}, {"auto", "sell", "csr"});
}

TEST_F(GpuGeometry, SeveralRounds) {
  for (int turns : {2, 5})
    check({std::to_string(turns) + " turns", cube(24), 1, slices_for(turns)}, {"auto", "sell"});
  check({"blocks of 3, 3 turns", System::problem(problem("elasticity-hex8", 8, 9, 9)), 3, slices_for(3)},
        {"auto", "csr"});
}

TEST_F(GpuGeometry, AsManySlicesAsFit) {
  int const most = std::min(2 * multiprocessors() * gpu::most_turns, 2 * gpu::most_tiles);
  check({"all turns", cube(24), 1, most}, {"auto"});
}

// One block has all rows: 227 KiB of shared memory hold a part of the vectors, the rest stays outside.
TEST_F(GpuGeometry, MoreThanSharedMemoryHolds) {
  check({"one slice", cube(24), 1, 1}, {"auto", "sell", "csr"});
  check({"two slices, blocks of 2", System::problem(problem("poisson7", 32, 24, 24)), 2, 2}, {"auto"});
  check({"two slices, blocks of 3", System::problem(problem("elasticity-hex8", 16, 16, 16)), 3, 2}, {"auto"});
}

// Columns further apart than 16 bits tell.
TEST_F(GpuGeometry, WideColumns) {
  System const a = System::problem(problem("circuit", 300, 300, 1));
  Setting setting;
  setting.matrix.gpus = 1;
  setting.matrix.gpu_format = "sell";
  with_matrix(a, setting.matrix, [](Matrix const& matrix) {
    EXPECT_GT(matrix.device_rows()->wide.size(), 0u) << "no group has wide columns";
  });
  check({"circuit", a, 1, 0}, {"auto", "sell", "csr"}, 5);
}

// 2 x + 1 in one last bit: both triangles must then be stored.
TEST_F(GpuGeometry, TrianglesThatDifferInOneBit) {
  System a = cube(10);
  a.at(500, 501) = std::nextafter(a.at(500, 501), 0.0);
  check({"one bit", a, 1, 0}, {"auto", "diagonals"});
}

// A row as long as the matrix, beside rows of two entries.
TEST_F(GpuGeometry, OneFullRow) {
  System a;
  std::int64_t const n = 3000;
  for (std::int64_t i = 0; i + 1 < n; ++i)
    a.row({{i, 2.0 + 1e-3 * static_cast<double>(i % 7)}, {n - 1, -1e-2}});
  std::vector<std::pair<std::int64_t, double>> last;
  for (std::int64_t j = 0; j + 1 < n; ++j) last.emplace_back(j, -1e-2);
  last.emplace_back(n - 1, 9.0);
  a.row(last);
  check({"arrow", a, 1, 0}, {"auto", "sell", "csr"}, 3);
}

}  // namespace
}  // namespace hostless::test
