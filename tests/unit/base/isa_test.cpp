#include "hostless/base/isa.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace hostless {
namespace {

// The set is chosen once a process, so every choice is watched in a child of its own.
class IsaInChild : public ::testing::Test {
 protected:
  void SetUp() override { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  [[noreturn]] static void print_choice(char const* wanted) {
    if (wanted != nullptr) {
      setenv("HOSTLESS_ISA", wanted, 1);
    } else {
      unsetenv("HOSTLESS_ISA");
    }
    std::fprintf(stderr, "isa=%s.", name(active_isa()));
    std::exit(0);
  }
};

TEST_F(IsaInChild, BaselineCanAlwaysBeForced) {
  EXPECT_EXIT(print_choice("baseline"), ::testing::ExitedWithCode(0), "isa=baseline\\.");
}

TEST_F(IsaInChild, WithoutAWishTheBestIsChosen) {
#if defined(__x86_64__)
  bool const v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool const v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  char const* const expected = v4 ? "isa=v[34]\\." : v3 ? "isa=(v3|baseline)\\." : "isa=baseline\\.";
  char const* const exact = v3 && !v4 && __builtin_cpu_supports("bmi2") ? "isa=v3\\." : expected;
#else
  char const* const exact = "isa=baseline\\.";
#endif
  EXPECT_EXIT(print_choice(nullptr), ::testing::ExitedWithCode(0), exact);
  EXPECT_EXIT(print_choice("v9"), ::testing::ExitedWithCode(0), exact);
}

TEST(Isa, NamesAreTheOnesOfTheEnvironmentVariable) {
  EXPECT_STREQ(name(Isa::baseline), "baseline");
  EXPECT_STREQ(name(Isa::v3), "v3");
  EXPECT_STREQ(name(Isa::v4), "v4");
}

__attribute__((always_inline)) inline void products(double const* a, double const* b, double* sum,
                                                    std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = std::fma(a[i], b[i], sum[i]);
}
HOSTLESS_TARGET_BASELINE void products_baseline(double const* a, double const* b, double* sum,
                                                std::size_t n) {
  products(a, b, sum, n);
}
HOSTLESS_TARGET_V3 void products_v3(double const* a, double const* b, double* sum, std::size_t n) {
  products(a, b, sum, n);
}
HOSTLESS_TARGET_V4 void products_v4(double const* a, double const* b, double* sum, std::size_t n) {
  products(a, b, sum, n);
}

// The promise that lets the set be chosen at run time: it cannot change a bit.
TEST(Isa, EverySetGivesTheSameBits) {
  constexpr std::size_t n = 1003;  // no multiple of a vector length
  std::vector<double> a(n), b(n), start(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = 1.0 + static_cast<double>(i) / 7;
    b[i] = 3.0 / (1.0 + static_cast<double>(i));
    start[i] = -a[i] * b[i];  // cancellation shows whether the product was rounded before the sum
  }
  auto const expected = [&] {
    auto sum = start;
    products_baseline(a.data(), b.data(), sum.data(), n);
    return sum;
  }();
  double most = 0;
  for (double v : expected) most = std::max(most, std::fabs(v));
  EXPECT_GT(most, 0.0) << "the example does not cancel, so it would not notice a rounded product";
  auto const expect_same = [&](auto* kernel) {
    auto sum = start;
    kernel(a.data(), b.data(), sum.data(), n);
    EXPECT_EQ(std::memcmp(sum.data(), expected.data(), n * sizeof(double)), 0);
  };
  if (active_isa() >= Isa::v3) expect_same(products_v3);
  if (active_isa() >= Isa::v4) expect_same(products_v4);
}

}  // namespace
}  // namespace hostless
