// A program of its own: it measures the most memory that its process ever had.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>

#include "hostless/files/matrix_market.hpp"
#include "samples.hpp"

namespace {

using namespace hostless;

constexpr bool sanitized = HOSTLESS_ADDRESS_SANITIZER || HOSTLESS_THREAD_SANITIZER;

std::int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

// The lower triangle of a 7-point grid with coefficients of 17 digits, written line by line.
void write_grid(std::string const& path, int side) {
  std::FILE* const out = std::fopen(path.c_str(), "w");
  ASSERT_NE(out, nullptr);
  long const n = static_cast<long>(side) * side * side, entries = 4 * n - 3L * side * side;
  std::fprintf(out, "%%%%MatrixMarket matrix coordinate real symmetric\n%ld %ld %ld\n", n, n, entries);
  for (long row = 0; row < n; ++row) {
    long const x = row % side, y = row / side % side, z = row / side / side;
    auto const line = [&](long column) {
      std::fprintf(out, "%ld %ld %.17g\n", row + 1, column + 1,
                   row == column ? 6.0 : -1.0 - 1e-9 * static_cast<double>(row + column));
    };
    if (z > 0) line(row - static_cast<long>(side) * side);
    if (y > 0) line(row - side);
    if (x > 0) line(row - 1);
    line(row);
  }
  ASSERT_EQ(std::fclose(out), 0);
}

// The bound, on a smaller file: a rank holds no more than its share of the file's bytes plus 10 %.
TEST(Memory, ARankHoldsNoMoreThanItsShareOfTheFile) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep memory of their own";
  samples::Folder folder;
  auto const path = folder.file("grid.mtx");
  write_grid(path, 70);
  auto const bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  ASSERT_GT(bytes, 30'000'000);
  std::int64_t const before = peak_bytes();
  run_on_threads(2, [&](Group& group) {
    auto const rows = read_matrix_market(group, path);
    std::int64_t const held = rows->stored_bytes();
    EXPECT_EQ(held, 12 * rows->entries() + 8 * (rows->last_row() - rows->first_row() + 1));
  });
  // Two ranks of one process: their peaks together against both shares.
  EXPECT_LE(peak_bytes() - before, bytes * 11 / 10);
  std::printf("file %.1f MB, two ranks grew by %.1f MB\n", 1e-6 * static_cast<double>(bytes),
              1e-6 * static_cast<double>(peak_bytes() - before));
}

}  // namespace
