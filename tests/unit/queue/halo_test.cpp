// Halos of grids that queues of threads fill: two by hand, random ones on 1 to 8 ranks, what is refused on which
// ranks, and who outlives whom.
#include "hostless/queue/halo.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "halos/queue_halos.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"
#include "sample.hpp"

namespace hostless {
namespace {

// 4 x 4 cells on 2 x 2 ranks; cell (i, j) is 10 i + j.
constexpr int plain = -1;
HaloGrid four_boxes(HaloReach reach, bool periodic) {
  return {{2, 2}, {periodic, periodic}, {2, 2}, 1, reach};
}
std::array<std::int32_t, 16> box_of(int rank) {
  std::array<std::int32_t, 16> cells{};
  cells.fill(plain);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      cells[static_cast<std::size_t>(4 * (i + 1) + j + 1)] = 10 * (2 * (rank / 2) + i) + 2 * (rank % 2) + j;
  return cells;
}
// Of each rank after one step.
std::vector<std::array<std::int32_t, 16>> stepped(
    HaloGrid const& grid, bool scatters, std::function<std::array<std::int32_t, 16>(int)> const& begin) {
  std::vector<std::array<std::int32_t, 16>> all(4);
  run_with_threads_transport(4, [&](Transport& t) {
    Communicator communicator(t);
    auto& cells = all[static_cast<std::size_t>(t.group().rank())];
    cells = begin(t.group().rank());
    Queue queue;
    QueueHalo halo(communicator, grid, {{cells.data(), sizeof cells[0], Datatype::i32}});
    scatters ? halo.enqueue_scatter(queue) : halo.enqueue_gather(queue);
    queue.wait();
    t.group().barrier();
  });
  return all;
}

TEST(QueueHalo, GathersEdgesAndCornersOfATorus) {
  auto const all = stepped(four_boxes(HaloReach::box, true), false, box_of);
  EXPECT_EQ(all[0],
            (std::array<std::int32_t, 16>{33, 30, 31, 32, 3, 0, 1, 2, 13, 10, 11, 12, 23, 20, 21, 22}));
  EXPECT_EQ(all[3],
            (std::array<std::int32_t, 16>{11, 12, 13, 10, 21, 22, 23, 20, 31, 32, 33, 30, 1, 2, 3, 0}));
}
TEST(QueueHalo, GathersFacesAlone) {
  auto const all = stepped(four_boxes(HaloReach::star, false), false, box_of);
  EXPECT_EQ(all[0],
            (std::array<std::int32_t, 16>{-1, -1, -1, -1, -1, 0, 1, 2, -1, 10, 11, 12, -1, 20, 21, -1}));
  EXPECT_EQ(all[3],
            (std::array<std::int32_t, 16>{-1, 12, 13, -1, 21, 22, 23, -1, 31, 32, 33, -1, -1, -1, -1, -1}));
}
// Each cell of a halo is 1 + 100 times its rank; each owned one 0.
TEST(QueueHalo, ScattersIntoOwners) {
  auto const ghosts = [](int rank) {
    std::array<std::int32_t, 16> cells{};
    cells.fill(1 + 100 * rank);
    for (std::size_t const own : {5, 6, 9, 10}) cells[own] = 0;
    return cells;
  };
  auto const star = stepped(four_boxes(HaloReach::star, false), true, ghosts);
  EXPECT_EQ(star[0], (std::array<std::int32_t, 16>{1, 1, 1, 1, 1, 0, 101, 0, 1, 201, 302, 0, 1, 0, 0, 1}));
  auto const box = stepped(four_boxes(HaloReach::box, false), true, ghosts);
  EXPECT_EQ(box[0], (std::array<std::int32_t, 16>{1, 1, 1, 1, 1, 0, 101, 0, 1, 201, 603, 0, 1, 0, 0, 0}));
}

TEST(QueueHalo, RandomGridsAreThoseOfGlobalIndices) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    run_with_threads_transport(ranks, [&](Transport& t) {
      Communicator communicator(t);
      t.group().barrier();
      Queue queue;
      std::string const wrong =
          test::run_random_halos(communicator, t.group(), queue, 100 * static_cast<std::uint64_t>(ranks),
                                 test::of_all(16, 4), [](std::function<void()> const& steps) {
                                   steps();
                                   return 1;
                                 });
      if (!wrong.empty()) throw std::runtime_error(std::to_string(ranks) + " ranks, " + wrong);
    });
}

// ---- refusals

struct Wanted {
  HaloGrid grid = four_boxes(HaloReach::box, true);
  std::vector<HaloField> fields;
  HaloOptions options;
};
alignas(16) std::array<double, 4096> room{};

// On each of four ranks: why, or none; afterwards a good one works.
std::vector<std::optional<Refusal>> refused(std::function<void(Wanted&, int rank)> const& spoil,
                                            std::string const& words) {
  std::vector<std::optional<Refusal>> why(4);
  run_with_threads_transport(4, [&](Transport& t) {
    Communicator communicator(t);
    int const rank = t.group().rank();
    Wanted wanted;
    wanted.fields = {{room.data() + 64 * rank, sizeof(double), Datatype::f64}};
    Wanted const good = wanted;
    spoil(wanted, rank);
    try {
      QueueHalo const halo(communicator, wanted.grid, wanted.fields, wanted.options);
    } catch (QueueError const& e) {
      why[static_cast<std::size_t>(rank)] = e.why();
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    } catch (Error const& e) {
      if (e.code() != ErrorCode::usage) throw;
      why[static_cast<std::size_t>(rank)] = Refusal::in_use;  // stands for usage
      EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    }
    QueueHalo halo(communicator, good.grid, good.fields);
    Queue queue;
    halo.enqueue_gather(queue);
    queue.wait();
    t.group().barrier();
  });
  return why;
}
constexpr Refusal usage = Refusal::in_use;
void expect_on_all(Refusal why, std::string const& words, std::function<void(Wanted&, int)> const& spoil) {
  std::vector<std::optional<Refusal>> const all(4, why);
  EXPECT_EQ(refused(spoil, words), all) << words;
}

TEST(QueueHalo, WhatOneRankSaysWrongIsRefusedOnAll) {
  auto const on_rank_2 = [](std::function<void(Wanted&)> const& spoil) {
    return [spoil](Wanted& wanted, int rank) {
      if (rank == 2) spoil(wanted);
    };
  };
  for (int const width : {0, 4})
    expect_on_all(usage, "halo of " + std::to_string(width) + " cells",
                  on_rank_2([&](Wanted& w) { w.grid.width = width; }));
  expect_on_all(usage, "rank 2: a box of 1 cell ", [](Wanted& w, int rank) {
    w.grid.width = 2;
    if (rank == 2) w.grid.size[1] = 1;
  });
  expect_on_all(usage, "1 axis", on_rank_2([](Wanted& w) { w.grid.ranks = {4}; }));
  expect_on_all(usage, "4 axes", on_rank_2([](Wanted& w) { w.grid.ranks = {2, 2, 1, 1}; }));
  expect_on_all(usage, "1 that are periodic", on_rank_2([](Wanted& w) { w.grid.periodic = {true}; }));
  expect_on_all(usage, "whose product", on_rank_2([](Wanted& w) { w.grid.ranks = {2, 3}; }));
  expect_on_all(usage, "whose product", on_rank_2([](Wanted& w) { w.grid.ranks = {-2, -2}; }));
  for (std::size_t const bytes : {std::size_t{0}, std::size_t{65}, SIZE_MAX})
    expect_on_all(usage, "cells of " + std::to_string(bytes) + " bytes",
                  on_rank_2([&](Wanted& w) { w.fields[0].item_bytes = bytes; }));
  expect_on_all(usage, "whole ones", on_rank_2([](Wanted& w) { w.fields[0].item_bytes = 12; }));
  expect_on_all(usage, "multiples of them",
                on_rank_2([](Wanted& w) { w.fields[0].cells = static_cast<char*>(w.fields[0].cells) + 4; }));
  expect_on_all(usage, "without cells", on_rank_2([](Wanted& w) { w.fields[0].cells = nullptr; }));
  expect_on_all(usage, "may not overlap", on_rank_2([](Wanted& w) { w.fields[0].strides = {24, 8}; }));
  expect_on_all(usage, "may not overlap", on_rank_2([](Wanted& w) { w.fields[0].strides = {8, 32}; }));
  expect_on_all(usage, "no memory has as many", on_rank_2([](Wanted& w) {
                  w.fields[0].strides = {std::int64_t{1} << 61, 8};
                }));
  expect_on_all(usage, "3 strides", on_rank_2([](Wanted& w) { w.fields[0].strides = {32, 8, 8}; }));
  expect_on_all(usage, "0 fields", on_rank_2([](Wanted& w) { w.fields.clear(); }));
  expect_on_all(usage, "17 fields", on_rank_2([](Wanted& w) { w.fields.resize(17, w.fields[0]); }));
  expect_on_all(usage, "first tag -1", on_rank_2([](Wanted& w) { w.options.tag = -1; }));
  expect_on_all(usage, "below 2 GiB", [](Wanted& w, int) {
    w.grid.size = {100'000'000, 2};
    w.grid.width = 2;
    w.fields[0].item_bytes = 64;
  });
}

TEST(QueueHalo, WhatRanksSayOtherwiseIsAMismatchOnAll) {
  auto const on_rank_3 = [](std::function<void(Wanted&)> const& spoil) {
    return [spoil](Wanted& wanted, int rank) {
      if (rank == 3) spoil(wanted);
    };
  };
  expect_on_all(Refusal::mismatch, "size of its box along axis 1 is 2 and rank 3 3",
                on_rank_3([](Wanted& w) { w.grid.size[1] = 3; }));
  expect_on_all(Refusal::mismatch, "size of its box along axis 0 is 2 and rank 3 4",
                on_rank_3([](Wanted& w) { w.grid.size[0] = 4; }));
  expect_on_all(Refusal::mismatch, "width", on_rank_3([](Wanted& w) { w.grid.width = 2; }));
  expect_on_all(Refusal::mismatch, "the reach is box and rank 3 star",
                on_rank_3([](Wanted& w) { w.grid.reach = HaloReach::star; }));
  expect_on_all(Refusal::mismatch, "periodic along axis 1 is true and rank 3 false",
                on_rank_3([](Wanted& w) { w.grid.periodic[1] = false; }));
  expect_on_all(Refusal::mismatch, "ranks along axis 0", on_rank_3([](Wanted& w) { w.grid.ranks = {4, 1}; }));
  expect_on_all(Refusal::mismatch, "number of axes", on_rank_3([](Wanted& w) {
                  w.grid = {{2, 2, 1}, {true, true, true}, {2, 2, 2}};
                }));
  expect_on_all(Refusal::mismatch, "number of fields",
                on_rank_3([](Wanted& w) { w.fields.push_back(w.fields[0]); }));
  expect_on_all(Refusal::mismatch, "bytes of a cell of field 0",
                on_rank_3([](Wanted& w) { w.fields[0].item_bytes = 16; }));
  expect_on_all(Refusal::mismatch, "elements of field 0 is f64 and rank 3 i64",
                on_rank_3([](Wanted& w) { w.fields[0].element = Datatype::i64; }));
  expect_on_all(Refusal::mismatch, "ready (ready sends) is false and rank 3 true",
                on_rank_3([](Wanted& w) { w.options.ready = true; }));
  expect_on_all(Refusal::mismatch, "first tag", on_rank_3([](Wanted& w) { w.options.tag = 1; }));
  // Rows that lie far apart.
  EXPECT_EQ(refused(
                [](Wanted& w, int) {
                  w.fields[0].strides = {std::int64_t{1} << 40, 8};
                },
                ""),
            std::vector<std::optional<Refusal>>(4));
  // Boxes of other sizes that fit.
  EXPECT_EQ(refused(
                [](Wanted& w, int rank) {
                  w.grid.size = {2 + rank / 2, 2 + rank % 2};
                },
                ""),
            std::vector<std::optional<Refusal>>(4));
}

std::optional<ErrorCode> code_of(std::function<void()> const& call) {
  try {
    call();
  } catch (Error const& e) {
    return e.code();
  }
  return std::nullopt;
}

// A step that is refused leaves the arrays as they are, and the next one works.
TEST(QueueHalo, AStepIsRefusedAsAWhole) {
  auto const transport = single_transport();
  Communicator communicator(*transport);
  std::array<float, 9> cells{};
  cells[4] = 3;
  HaloGrid const torus{{1, 1}, {true, true}, {1, 1}};
  QueueHalo bytes(communicator, torus, {{cells.data(), sizeof(float)}});
  QueueHalo ready(communicator, torus, {{cells.data(), sizeof(float), Datatype::f32}}, {.ready = true});
  auto first = std::make_unique<Queue>();
  Queue second;
  std::array<void*, 2> two{cells.data(), cells.data()};
  void *nothing = nullptr, *const crooked = reinterpret_cast<char*>(cells.data()) + 1;
  EXPECT_EQ(code_of([&] { bytes.enqueue_scatter(*first); }), ErrorCode::usage);
  EXPECT_EQ(code_of([&] { bytes.enqueue_gather(*first, {.arrays = two}); }), ErrorCode::usage);
  EXPECT_EQ(code_of([&] { bytes.enqueue_gather(*first, {.arrays = {&nothing, 1}}); }), ErrorCode::usage);
  EXPECT_EQ(code_of([&] { ready.enqueue_gather(*first, {.arrays = {&crooked, 1}}); }), ErrorCode::usage);
  first->wait();
  EXPECT_EQ(cells, (std::array<float, 9>{0, 0, 0, 0, 3, 0, 0, 0, 0}));
  ready.enqueue_gather(*first);
  try {
    ready.enqueue_gather(second);
    ADD_FAILURE() << "a run went on on another queue";
  } catch (QueueError const& e) {
    EXPECT_EQ(e.why(), Refusal::other_queue);
  }
  ready.enqueue_scatter(*first, {.ends_run = true});
  first->wait();
  EXPECT_EQ(cells, (std::array<float, 9>{0, 0, 0, 0, 27, 0, 0, 0, 0}));
  first.reset();
  ready.enqueue_gather(second, {.ends_run = true});
  second.wait();
  EXPECT_EQ(cells[0], 27);
  auto third = std::make_unique<Queue>();
  ready.enqueue_gather(*third);
  third->wait();
  third.reset();
  try {
    ready.enqueue_gather(second);
    ADD_FAILURE() << "a run went on whose queue has gone";
  } catch (QueueError const& e) {
    EXPECT_EQ(e.why(), Refusal::other_queue);
    EXPECT_NE(std::string(e.what()).find("Make another halo"), std::string::npos) << e.what();
  }
}

// What was enqueued goes on when the halo has gone, also in a run that was not ended.
TEST(QueueHalo, MessagesOutliveIt) {
  run_with_threads_transport(2, [](Transport& t) {
    Communicator communicator(t);
    int const rank = t.group().rank();
    for (bool const is_ready : {false, true}) {
      std::array<double, 9> cells{};
      cells[4] = 1 + rank;
      Queue queue;
      std::atomic<bool> goes_on{false};
      queue.enqueue_function([&] {
        while (!goes_on.load()) Backoff::give_core_away();
      });
      {
        QueueHalo halo(communicator, {{2, 1}, {true, true}, {1, 1}}, {{cells.data(), sizeof(double)}},
                       {.ready = is_ready});
        halo.enqueue_gather(queue);
      }
      goes_on.store(true);
      queue.wait();
      if (cells[1] != 2 - rank || cells[7] != 2 - rank || cells[3] != 1 + rank)
        throw std::runtime_error("a halo was not filled");
      t.group().barrier();
    }
  });
}

TEST(QueueHalo, AStepKeepsWhatOwnsItsArrays) {
  auto const transport = single_transport();
  Communicator communicator(*transport);
  auto cells = std::make_shared<std::array<double, 9>>();
  (*cells)[4] = 2;
  std::weak_ptr<std::array<double, 9>> const seen = cells;
  QueueHalo halo(communicator, {{1, 1}, {true, true}, {1, 1}}, {{cells->data(), sizeof(double)}});
  Queue queue;
  std::atomic<bool> goes_on{false};
  queue.enqueue_function([&] {
    while (!goes_on.load()) std::this_thread::yield();
  });
  halo.enqueue_gather(queue, {.keeps = cells});
  double corner = 0;
  queue.enqueue_function([&corner, kept = cells] { corner = kept->front(); });
  cells.reset();
  EXPECT_EQ(seen.use_count(), 3);  // of the function, and of packing and unpacking
  goes_on.store(true);
  queue.wait();
  EXPECT_EQ(corner, 2);
  EXPECT_TRUE(seen.expired());
}

TEST(QueueHalo, CountsWhatGoesToOthers) {
  run_with_threads_transport(2, [](Transport& t) {
    Communicator communicator(t);
    std::array<std::byte, 4096> cells{};
    QueueHalo const halo(communicator, {{2, 1}, {true, true}, {3, 5}, 2}, {{cells.data(), 3}});
    EXPECT_EQ(halo.messages(), 6u);                // not those to the left and to the right
    EXPECT_EQ(halo.bytes(), 2u * 32u + 4u * 16u);  // 2 x 5 and 2 x 2 cells of 3 bytes, in lines of 16
    t.group().barrier();
  });
}

}  // namespace
}  // namespace hostless
