// Which entries of a file are the mirrors of others although rounding made them differ: those that are hardly numbers.
#include <gtest/gtest.h>

#include "hostless/files/matrix_file.hpp"
#include "samples.hpp"

namespace {

using namespace hostless;

// What rounding leaves of denormal entries is no small share of them.
TEST(Mirrors, DenormalEntriesMayDifferByTheirSpacing) {
  samples::Folder folder;
  auto const path = folder.write("a.mtx",
                                 "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 2e-323\n1 2 "
                                 "5e-324\n2 1 1e-323\n2 2 2e-323\n");
  for (int ranks : {1, 2}) {
    auto const entries = samples::collect(ranks, [&](Group& group) {
      auto rows = read_matrix(group, path);
      EXPECT_EQ(rows->only_rounded() ? rows->only_rounded()->share : 0, 0x1p-52);
      EXPECT_TRUE(check_symmetry(group, *rows, 0).refused);
      return rows;
    });
    EXPECT_EQ(entries.size(), 4U);
  }
}

}  // namespace
