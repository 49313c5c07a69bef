#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "operate/device_rows.hpp"

namespace hostless::test {

/// Whether two arrays hold the same bits: of numbers 0.0 is not -0.0, and a NaN is itself.
template <class Array>
bool same_bytes(Array const& a, Array const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0);
}

inline void expect_same_layout(DeviceRows const& made, DeviceRows const& expected, std::string const& what) {
  EXPECT_EQ(made.format, expected.format) << what;
  EXPECT_EQ(made.farthest, expected.farthest) << what;
  EXPECT_EQ(made.origin, expected.origin) << what;
  EXPECT_EQ(made.diagonals, expected.diagonals) << what;
  EXPECT_EQ(made.rows_before(), expected.rows_before()) << what;
  EXPECT_EQ(made.rows_after(), expected.rows_after()) << what;
  EXPECT_EQ(made.first_group, expected.first_group) << what;
  EXPECT_TRUE(same_bytes(made.group, expected.group)) << what;
  EXPECT_EQ(made.mask, expected.mask) << what;
  EXPECT_EQ(made.narrow, expected.narrow) << what;
  EXPECT_EQ(made.wide, expected.wide) << what;
  EXPECT_EQ(made.start, expected.start) << what;
  EXPECT_TRUE(same_bytes(made.value, expected.value)) << what;
  EXPECT_EQ(made.bytes_per_sweep(), expected.bytes_per_sweep()) << what;
}

}  // namespace hostless::test
