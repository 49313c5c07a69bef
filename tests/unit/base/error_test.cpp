#include "hostless/base/error.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace hostless {
namespace {

TEST(Error, CarriesTextAndCode) {
  try {
    throw Error(ErrorCode::bad_input, "A.mtx:3: column 9 (the matrix has 8 columns). Correct the file.");
  } catch (std::runtime_error const& e) {  // catchable by callers that know only the standard types
    EXPECT_STREQ(e.what(), "A.mtx:3: column 9 (the matrix has 8 columns). Correct the file.");
    auto const* error = dynamic_cast<Error const*>(&e);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->code(), ErrorCode::bad_input);
  }
}

TEST(Error, ExitCodesAreTheDocumentedOnes) {
  auto const exit_code = [](ErrorCode code) { return Error(code, "x").exit_code(); };
  EXPECT_EQ(exit_code(ErrorCode::usage), 2);
  EXPECT_EQ(exit_code(ErrorCode::bad_input), 3);
  EXPECT_EQ(exit_code(ErrorCode::environment), 4);
  EXPECT_EQ(exit_code(ErrorCode::peer_lost), 4);
  EXPECT_EQ(exit_code(ErrorCode::aborted), 4);
}

}  // namespace
}  // namespace hostless
