// Several right-hand sides whose direction is formed in the sweep (decision 0017): what is read early, and by other
// threads' shares.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "columns.hpp"

namespace hostless::test {
namespace {

using Block = std::vector<double>;  // by rows

Block transposed(Block const& block, int b, double times) {
  Block turned(block.size());
  for (int i = 0; i < b; ++i)
    for (int j = 0; j < b; ++j)
      turned[static_cast<std::size_t>(i * b + j)] = block[static_cast<std::size_t>(j * b + i)] * times;
  return turned;
}

struct Coupled {
  int block_rows, block, far;
};
/// Each block row couples to the next two and, in the first half, to one that is `far`; in the second half what
/// couples to the one after the next is an ulp or more from its mirror, as of sums in another order.
System of_uneven_blocks(Coupled of) {
  int const b = of.block;
  std::mt19937 generator(7);
  std::normal_distribution<double> normal;
  std::map<std::pair<int, int>, Block> blocks;
  auto const random_block = [&] {
    Block block(static_cast<std::size_t>(b * b));
    std::generate(block.begin(), block.end(), [&] { return normal(generator); });
    return block;
  };
  auto const couple = [&](int i, int j, bool exactly) {
    blocks[{i, j}] = random_block();
    blocks[{j, i}] = transposed(blocks[{i, j}], b, exactly ? 1 : 1 + 1e-15);
  };
  for (int i = 0; i < of.block_rows; ++i) {
    Block const any = random_block(), turned = transposed(any, b, 1);
    Block& own = blocks[{i, i}] = any;
    for (std::size_t k = 0; k < own.size(); ++k) own[k] = 0.2 * (any[k] + turned[k]);
    for (int k = 0; k < b; ++k) own[static_cast<std::size_t>(k * b + k)] += 12;
    if (i + 1 < of.block_rows) couple(i, i + 1, true);
    if (i + 2 < of.block_rows) couple(i, i + 2, i < of.block_rows / 2);
    if (i < of.block_rows / 2 && i + of.far < of.block_rows) couple(i, i + of.far, true);
  }
  System system;
  for (auto first = blocks.begin(); first != blocks.end();) {
    auto const last = blocks.lower_bound({first->first.first + 1, 0});
    for (int r = 0; r < b; ++r) {
      std::vector<std::pair<std::int64_t, double>> row;
      for (auto one = first; one != last; ++one)
        for (int c = 0; c < b; ++c)
          row.emplace_back(one->first.second * b + c, one->second[static_cast<std::size_t>(r * b + c)]);
      system.row(row);
    }
    first = last;
  }
  return system;
}

TEST(ColumnsOrder, BlocksThatAreMultipliedBeforeTheirRowsReadTheNewDirection) {
  struct Case {
    Coupled of;
    int slices, threads;
  };
  for (Case const& one :
       {Case{{600, 2, 150}, 8, 1}, Case{{2000, 3, 200}, 50, 1}, Case{{2000, 3, 200}, 50, 2}}) {
    System const a = of_uneven_blocks(one.of);
    Setting s;
    s.solve.run.kind = one.threads > 1 ? RunKind::persistent : RunKind::host;
    s.solve.run.threads = s.matrix.format.threads = one.threads;
    s.matrix.slices = one.slices;
    s.matrix.block = one.of.block;
    s.solve.rtol = 1e-10;
    s.solve.max_iterations = 300;
    expect_as_alone(
        a, random_columns(a.rows(), 4), s,
        std::to_string(one.of.block_rows) + " block rows, " + std::to_string(one.threads) + " threads");
  }
}

// Two systems that nothing couples, the second indefinite: one column is of both, and ends inside the loop.
TEST(ColumnsOrder, AColumnThatEndsLeavesTheOthersTheirSteps) {
  constexpr int rows = 300;
  System a;
  for (int i = 0; i < rows; ++i) {
    std::vector<std::pair<std::int64_t, double>> row;
    if (i >= 2) row.emplace_back(i - 2, -1.0);
    row.emplace_back(i, i % 2 == 0 ? 2.05 : 1.99);
    if (i + 2 < rows) row.emplace_back(i + 2, -1.0);
    a.row(row);
  }
  Columns columns = random_columns(rows, 4);
  for (std::size_t c : {0u, 2u, 3u})
    for (std::size_t i = 1; i < rows; i += 2) columns.b[c][i] = 0;
  Setting s;
  s.ranks = 3;
  s.solve.run.kind = RunKind::persistent;
  s.solve.run.threads = s.matrix.format.threads = 2;
  s.matrix.slices = 3;
  s.solve.rtol = 1e-10;
  s.solve.max_iterations = 400;
  for (int time = 0; time < 20; ++time) expect_as_alone(a, columns, s, "time " + std::to_string(time));
}

}  // namespace
}  // namespace hostless::test
