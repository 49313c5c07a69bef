#pragma once
// Queues of the type nccl: a rank has a GPU of its own.

#include <string>

#include "on_gpus.hpp"

namespace hostless::test {

constexpr Shared by_nccl(int ranks) { return {ranks, ranks, QueueType::nccl}; }

class ByNccl : public OnGpus {
 protected:
  void SetUp() override {
    OnGpus::SetUp();
    if (IsSkipped()) return;
    try {
      gpu::message_library().group_ranks(0, 0, 1, 10);
    } catch (Error const& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

/// What a call was refused with as unsupported, or why that is wrong.
template <class Call>
std::string unsupported(Call const& call) {
  try {
    call();
  } catch (QueueError const& e) {
    return e.why() == Refusal::unsupported ? e.what() : "another refusal: " + std::string(e.what());
  } catch (Error const& e) {
    return "another error: " + std::string(e.what());
  }
  return "it was accepted";
}
inline bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

}  // namespace hostless::test
