// What a queue over libfabric defers: its memory, and what a full queue of the provider leaves over. Two worlds of
// one process are the two ranks.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hostless/base/wait.hpp"
#include "transport/ofi/ofi_world.hpp"

namespace hostless::ofi {
namespace {

// Until the process is told to go, by the end of what it reads.
[[noreturn]] void answer_questions(int from_test, int to_test) {
  World world(1, 2);
  auto const bytes = static_cast<std::uint8_t>(world.address().size());
  bool const told = write(to_test, &bytes, 1) == 1 && write(to_test, world.address().data(), bytes) == bytes;
  char end = 0;
  _exit(told && read(from_test, &end, 1) == 0 ? 0 : 1);  // bounded: the test ends it
}

// Rank 1 is another process, which can be stopped. First of all, before this process has threads of libfabric.
class OfiPeer : public testing::Test {
 protected:
  void SetUp() override {
    if (HOSTLESS_THREAD_SANITIZER) GTEST_SKIP() << "libfabric is not built for the thread sanitizer";
    setenv("HOSTLESS_DEADLINE_SCALE", "0.05", 1);  // half a second for an answer
    int down[2], up[2];
    ASSERT_EQ(pipe(down) + pipe(up), 0);
    child_ = fork();
    if (child_ == 0) {
      close(down[1]);
      std::string missing;
      if (find_provider(missing) == nullptr) _exit(0);
      answer_questions(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    to_child_ = down[1];
    std::uint8_t bytes = 0;
    Bytes address;
    if (read(up[0], &bytes, 1) == 1) address.resize(bytes);
    bool const is_open = !address.empty() && read(up[0], address.data(), bytes) == bytes;
    close(up[0]);
    std::string problem;
    if (find_provider(problem) == nullptr) GTEST_SKIP() << problem;
    ASSERT_TRUE(is_open);
    world_ = std::make_unique<World>(0, 2);
    world_->connect({world_->address(), address});
  }
  void TearDown() override {
    world_.reset();
    unsetenv("HOSTLESS_DEADLINE_SCALE");
    if (child_ <= 0) return;
    close(to_child_);
    int status = 1;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
  }
  bool is_gone() {
    std::lock_guard const lock(world_->mutex);
    Bytes text;
    world_->receive(text);
    return world_->is_gone(1);
  }
  bool becomes(bool gone, double within_s) {
    return wait_for([&] { return is_gone() == gone; }, [] { return false; }, Deadline::after(within_s)) ==
           Waited::done;
  }
  void stop() const { kill(child_, SIGSTOP); }
  void go_on() const { kill(child_, SIGCONT); }

 private:
  pid_t child_ = -1;
  int to_child_ = -1;
  std::unique_ptr<World> world_;
};

// It is there again when it goes on.
TEST_F(OfiPeer, IsThereAgainAfterAStop) {
  constexpr double patience_s = 120;
  EXPECT_FALSE(is_gone());
  stop();
  EXPECT_TRUE(becomes(true, patience_s));
  go_on();
  EXPECT_TRUE(becomes(false, patience_s));
}

// A rank whose questions to itself are not answered, as where its provider has no core. The provider's own call does it,
// whose table is that of all its endpoints.
class NoOwnAnswers {
 public:
  NoOwnAnswers() {
    std::string problem;
    info_ = find_provider(problem);
    check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
    check(fi_domain(fabric_, info_.get(), &domain_, nullptr), "fi_domain");
    check(fi_endpoint(domain_, info_.get(), &endpoint_, nullptr), "fi_endpoint");
    real_ = endpoint_->rma->writemsg;
    endpoint_->rma->writemsg = write;
  }
  NoOwnAnswers(NoOwnAnswers const&) = delete;
  NoOwnAnswers& operator=(NoOwnAnswers const&) = delete;
  ~NoOwnAnswers() {
    endpoint_->rma->writemsg = real_;
    for (fid* const one : {&endpoint_->fid, &domain_->fid, &fabric_->fid}) fi_close(one);
  }

 private:
  static ssize_t write(fid_ep* endpoint, fi_msg_rma const* message, std::uint64_t flags) {
    return message->addr == 0 ? 0 : real_(endpoint, message, flags);
  }
  static inline ssize_t (*real_)(fid_ep*, fi_msg_rma const*, std::uint64_t) = nullptr;
  Info info_;
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  fid_ep* endpoint_ = nullptr;
};

TEST_F(OfiPeer, IsNotGoneWhileOurOwnProviderIsSilentToo) {
  constexpr double many_limits_s = 5;
  NoOwnAnswers const busy;
  EXPECT_FALSE(is_gone());
  stop();
  EXPECT_FALSE(becomes(true, many_limits_s));
  go_on();
}

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
    work.has_begun();
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
  work.has_begun();
  Deferred const* const kept = &work.add();
  for (int step = 0; step < 1000; ++step) {
    work.begin();
    work.add();
    work.has_begun();
    fi_cntr_add(work.counts(), 1);
  }
  EXPECT_FALSE(work.is_done());
  EXPECT_GE(work.size(), 1001u - 2 * 64u);
  EXPECT_EQ(kept->work.threshold, 0u);  // still there, the address sanitizer says
  fi_cntr_add(first, 1);
  EXPECT_TRUE(work.is_done());
}

// What is due when it is deferred is not deferred, and a provider whose queue is full refuses it: that is no loss.
TEST_F(OfiWork, WhatIsDueAtOnceWaitsForRoom) {
  constexpr int many = 20000;
  World& world = *worlds_[0];
  Counter const due = world.new_counter();
  std::vector<std::byte> words(sizeof(std::uint64_t));
  constexpr std::uint64_t key = 1234567;
  Region const there = worlds_[1]->lend(words.data(), words.size(), key, nullptr);
  DeferredWork work(world.new_counter(), world.new_counter());
  fi_cntr_add(due.get(), 1);
  for (int k = 0; k < many; ++k) {
    work.begin();
    world.defer_count(work.add(), {due.get(), 1, work.counts()}, {1, key, 0});
    work.has_begun();
  }
  Deadline const patience = Deadline::after(240);
  while (!work.is_done() && !patience.passed()) Backoff::give_core_away();
  EXPECT_TRUE(work.is_done());
  EXPECT_EQ(*reinterpret_cast<std::uint64_t const*>(words.data()), std::uint64_t{many});
}

// What the provider has no room for leaves later, in order, though who told it calls nothing any more.
TEST_F(OfiWork, LettersLeaveThoughNobodyCalls) {
  constexpr double patience_s = 60;
  auto const from = make_point_to_point(worlds_[0]), to = make_point_to_point(worlds_[1]);
  std::uint32_t told = 0, heard = 0;
  auto const is_left_over = [&] {
    std::lock_guard const lock(worlds_[0]->mutex);
    return !worlds_[0]->send_letters();
  };
  Deadline patience = Deadline::after(patience_s);
  do {
    Bytes text(sizeof told);
    std::memcpy(text.data(), &told, sizeof told);
    from->tell(1, text, nullptr);
    ++told;
  } while (!is_left_over() && !patience.passed());
  ASSERT_FALSE(patience.passed());
  patience = Deadline::after(patience_s);
  while (heard < told && !patience.passed()) {
    std::optional<Note> const note = to->hear();
    if (!note) {
      Backoff::give_core_away();
      continue;
    }
    std::uint32_t number = 0;
    ASSERT_EQ(note->text.size(), sizeof number);
    std::memcpy(&number, note->text.data(), sizeof number);
    ASSERT_EQ(number, heard++);
    patience = Deadline::after(patience_s);  // of silence: on a busy machine all of them take minutes
  }
  EXPECT_EQ(heard, told);
}

// A provider whose queue is full when a counter is turned leaves over what that should have set off, until the counter
// is counted again, be it by 0. Here the provider's own call does so once, for the thread that asks for it. Its table is
// that of all threads of the process: it is changed while no side is there whose counters others turn.
class FullOnce {
 public:
  explicit FullOnce(fi_ops_cntr* table) : table_(table) {
    real_ = table->add;
    left_over_ = nullptr;
    is_full_ = false;
    table->add = add;
  }
  FullOnce(FullOnce const&) = delete;
  FullOnce& operator=(FullOnce const&) = delete;
  ~FullOnce() { table_->add = real_; }
  static void fill() { is_full_ = true; }
  static bool has_left_over() { return !is_full_; }

 private:
  static int add(fid_cntr* counter, std::uint64_t by) {
    if (by != 0 && is_full_) {
      is_full_ = false;
      left_over_ = counter;
      return 0;
    }
    fid_cntr* expected = counter;
    return real_(counter, left_over_.compare_exchange_strong(expected, nullptr) ? by + 1 : by);
  }
  static inline int (*real_)(fid_cntr*, std::uint64_t) = nullptr;
  static inline thread_local bool is_full_ = false;  // of the thread of the test, who asks
  static inline std::atomic<fid_cntr*> left_over_{nullptr};
  fi_ops_cntr* table_;
};

class OfiLeftOver : public OfiWork {
 protected:
  void SetUp() override {
    OfiWork::SetUp();
    if (worlds_.empty()) return;  // skipped
    Counter const any = worlds_[0]->new_counter();
    full_.emplace(any->ops);
  }
  void TearDown() override {
    send_.reset();
    receive_.reset();
    worlds_.clear();  // and with them the threads that turn counters
    full_.reset();
  }
  void match(Delivery how) {
    send_ = make_send_side(worlds_[0], 1, out_.data(), out_.size());
    receive_ = make_receive_side(worlds_[1], 0, in_.data(), in_.size(), in_.size());
    send_->match(receive_->number(), out_.size(), how);
    receive_->match(send_->number(), out_.size(), how);
  }
  static bool is_completed(MessageSide& side) {
    constexpr double patience_s = 240;
    Deadline const patience = Deadline::after(patience_s);
    while (!side.complete() && !patience.passed()) Backoff::give_core_away();
    return side.complete();
  }
  std::vector<std::byte> out_{100, std::byte{7}}, in_{100, std::byte{0}};
  std::unique_ptr<MessageSide> send_, receive_;
  std::optional<FullOnce> full_;
};

TEST_F(OfiLeftOver, AWriteLeavesThoughNobodyAsksItsSender) {
  match(Delivery::standard);
  receive_->start();
  FullOnce::fill();
  send_->start();
  EXPECT_TRUE(FullOnce::has_left_over());
  EXPECT_TRUE(is_completed(*receive_));
  EXPECT_EQ(in_, out_);
}

// The receiver has all it waits for; only the sender's next wait asks for what was left over.
TEST_F(OfiLeftOver, ASmallMessageIsSaidToBeTakenThoughItsSideIsComplete) {
  match(Delivery::small);
  receive_->start();
  send_->start();
  EXPECT_TRUE(is_completed(*send_));
  FullOnce::fill();
  EXPECT_TRUE(is_completed(*receive_));
  EXPECT_TRUE(FullOnce::has_left_over());
  EXPECT_EQ(in_, out_);
  send_->start();
  EXPECT_TRUE(is_completed(*send_));
}

}  // namespace
}  // namespace hostless::ofi
