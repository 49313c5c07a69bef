#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "hostless/base/error.hpp"
#include "hostless/transport/group.hpp"

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

/// Every rank leaves `act` with the same usage error, which has `part`.
inline void expect_refused_by_all(std::size_t ranks, std::string const& part,
                                  std::function<void(Group&)> const& act) {
  std::vector<std::string> texts(ranks);
  run_on_threads(static_cast<int>(ranks), [&](Group& group) {
    try {
      act(group);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      texts[static_cast<std::size_t>(group.rank())] = error.what();
    }
  });
  for (std::string const& text : texts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' does not say " << part;
    EXPECT_EQ(text, texts[0]);
  }
}

}  // namespace hostless
