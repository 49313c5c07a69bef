// What a queue over libfabric defers: its memory, and what a full queue of the provider leaves over. Two worlds of
// one process are the two ranks.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/variable.hpp"
#include "transport/ofi/ofi_world.hpp"

namespace hostless::ofi {
namespace {

class OfiWork : public testing::Test {
 protected:
  void SetUp() override {
    if (HOSTLESS_THREAD_SANITIZER) GTEST_SKIP() << "libfabric is not built for the thread sanitizer";
    std::string problem;
    if (find_provider(problem) == nullptr) GTEST_SKIP() << problem;
    for (int r = 0; r < 2; ++r) worlds_.push_back(std::make_shared<World>(r, 2));
    std::vector<Bytes> const addresses{worlds_[0]->address(), worlds_[1]->address()};
    for (auto const& world : worlds_) world->connect(addresses);
  }
  std::vector<std::shared_ptr<World>> worlds_;
};

// An operation is always under way when the next one begins: as in a loop that starts as soon as it has waited.
TEST_F(OfiWork, IsBoundedWhereTheLastOperationIsAlwaysUnderWay) {
  DeferredWork work(worlds_[0]->new_counter(), worlds_[0]->new_counter());
  fid_cntr* last = nullptr;
  for (int step = 0; step < 10000; ++step) {
    work.begin();
    work.add();
    work.add();
    fid_cntr* const now = work.counts();
    EXPECT_FALSE(work.is_done());
    if (last != nullptr) fi_cntr_add(last, 1);
    last = now;
    ASSERT_LE(work.size(), 200u) << step;
  }
  fi_cntr_add(last, 1);
  EXPECT_TRUE(work.is_done());
}

// Nothing is dropped while one of a half is under way, however many follow.
TEST_F(OfiWork, KeepsWhatHasNotEnded) {
  DeferredWork work(worlds_[0]->new_counter(), worlds_[0]->new_counter());
  fid_cntr* const first = work.counts();
  Deferred const* const kept = &work.add();
  for (int step = 0; step < 1000; ++step) {
    work.begin();
    work.add();
    fi_cntr_add(work.counts(), 1);
  }
  EXPECT_FALSE(work.is_done());
  EXPECT_GE(work.size(), 1001u - 2 * 64u);
  EXPECT_EQ(kept->work.threshold, 0u);  // still there, the address sanitizer says
  fi_cntr_add(first, 1);
  EXPECT_TRUE(work.is_done());
}

// More writes at once than a provider's queue holds. Nobody asks the senders: what was left over comes all the same.
TEST_F(OfiWork, WhatAFullQueueLeftOverComesWithoutAnybodyAskingForIt) {
  constexpr std::size_t messages = 1500, bytes = 64;
  std::vector<std::byte> out(messages * bytes), in(messages * bytes);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<std::byte>(k * 2654435761u >> 16);
  std::vector<std::unique_ptr<MessageSide>> sends, receives;
  for (std::size_t k = 0; k < messages; ++k) {
    sends.push_back(make_send_side(worlds_[0], 1, &out[k * bytes], bytes));
    receives.push_back(make_receive_side(worlds_[1], 0, &in[k * bytes], bytes, bytes));
    sends.back()->match(receives.back()->number(), bytes, Delivery::ready);
    receives.back()->match(sends.back()->number(), bytes, Delivery::ready);
  }
  for (auto const& one : receives) one->start();
  for (auto const& one : sends) one->start();
  Deadline const patience = Deadline::after(240);
  std::size_t came = 0;
  for (auto const& one : receives) {
    while (!one->complete() && !patience.passed()) std::this_thread::yield();
    came += one->complete();
  }
  EXPECT_EQ(came, messages);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), in.size()), 0);
}

}  // namespace
}  // namespace hostless::ofi
