#pragma once
// What the texts of the contract of the transports share.

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::contract {

inline void expect(bool holds, std::string const& what) {
  if (!holds) throw std::runtime_error("not kept: " + what);
}

template <class Body>
std::string expect_error(ErrorCode code, std::string const& what, Body const& body) {
  try {
    body();
  } catch (Error const& e) {
    expect(e.code() == code, what + ": wrong kind of error: " + e.what());
    return e.what();
  }
  throw std::runtime_error("not kept: " + what + ": no error");
}

inline double seconds_of(auto const& body) {
  auto const start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// The promises of Group.
void group_case(Transport& transport);
void exchange_case(Transport& transport);
void big_exchange_case(Transport& transport);
void together_case(Transport& transport);
// Of ranks that end otherwise than in order.
void leave_case(Transport& transport);
void last_words_case(Transport& transport);
void silent_case(Transport& transport);
void alone_case(Transport& transport);

}  // namespace hostless::contract
