#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hostless/base/error.hpp"

namespace hostless {

/// What a call that must be a usage error says; "accepted" where it is none.
inline std::string refused(std::function<void()> const& act) {
  try {
    act();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace hostless
