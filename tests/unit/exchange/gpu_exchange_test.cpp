// The host's half of exchanges between GPUs, without one: a library that plays a GPU (fake_gpu/) does at once
// what kernels would, and the host carries. What rounds, staging, messages and sums are made of is the
// product's. Ranks that are processes are this program again, as
//   exchange_gpu --as-rank <transport> <GPU transport> <plans>
#include "hostless/exchange/gpu_exchange.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "host_ranks.hpp"
#include "played_memory.hpp"
#include "random_plans.hpp"
#include "sample.hpp"

extern "C" int fake_gpu_of(void const* address) {
  return hostless::testing::PlayedMemory::device_of(address);
}
// As where each process sees some of a machine's GPUs, and numbers them from 0.
static thread_local int first_gpu_of_rank = 0;
// The played library holds a copy of the layers that this program exports too: no two definitions of one
// thing.
extern "C" char const* __asan_default_options();
extern "C" char const* __asan_default_options() { return "detect_odr_violation=0"; }
extern "C" int fake_gpu_bus(int device) { return first_gpu_of_rank + device; }

namespace hostless {
namespace {

using testing::at;
using testing::GpuBytes;
using testing::World;
using testing::Wrong;

constexpr WaitLimits patience{600, 600};

void copy(void* to, void const* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

void exchange_bytes(Transport& transport, GpuTransport by, World const& world,
                    std::vector<Pattern> const& patterns, Wrong& wrong) {
  auto const me = at(transport.group().rank());
  auto const &owned = world.owned[me], &ghosts = world.ghosts[me];
  std::mt19937 random(world.seed + 1);
  std::vector<std::size_t> sizes(1 + random() % 5);
  for (std::size_t& size : sizes) size = 1 + random() % 64;
  if (random() % 4 == 0) sizes = {8 * (1 + random() % 3)};  // lands in place
  auto const value = [&](std::size_t field, std::int64_t number, std::size_t byte, int epoch) {
    return static_cast<std::byte>(
        testing::scrambled(world.seed + 1000003u * static_cast<std::uint64_t>(number) + 64 * field + byte +
                           (static_cast<std::uint64_t>(epoch) << 40)));
  };
  std::vector<std::unique_ptr<GpuBytes>> memory;
  std::vector<Field> fields;
  for (std::size_t const size : sizes) {
    memory.push_back(std::make_unique<GpuBytes>((owned.size() + ghosts.size()) * size));
    std::byte* const first = memory.back()->data();
    fields.push_back(Field::apart(first, first + owned.size() * size, size));
  }
  ExchangePlan const plan =
      make_plan(world.route, patterns, world.nodes, transport.group().rank(), world.options);
  GpuExchange exchange(transport, plan, fields, {by, patience, 0});
  for (int epoch = 1; epoch <= testing::epochs; ++epoch) {
    for (std::size_t f = 0; f < sizes.size(); ++f)
      for (std::size_t i = 0; i < owned.size(); ++i)
        for (std::size_t b = 0; b < sizes[f]; ++b)
          memory[f]->data()[i * sizes[f] + b] = value(f, owned[i], b, epoch);
    if (epoch % 2 == 0) {
      exchange.enqueue();
    } else {
      exchange.start();
      exchange.finish();
    }
    if (!exchange.wait()) return wrong.add("a rank was lost");
    for (std::size_t f = 0; f < sizes.size(); ++f)
      for (std::size_t g = 0; g < ghosts.size(); ++g)
        for (std::size_t b = 0; b < sizes[f]; ++b)
          if (memory[f]->data()[(owned.size() + g) * sizes[f] + b] != value(f, ghosts[g], b, epoch))
            return wrong.add("byte " + std::to_string(b) + " of ghost " + std::to_string(g) + " of field " +
                             std::to_string(f) + " in exchange " + std::to_string(epoch));
  }
}

/// f64 and i32 with several values an item, against the sums of the host.
void add_ghosts(Transport& transport, GpuTransport by, World const& world,
                std::vector<Pattern> const& patterns, Wrong& wrong) {
  int const me = transport.group().rank();
  testing::SummedField<double> f64(world, 1, me, 3);
  testing::SummedField<std::uint32_t> i32(world, 2, me, 1);
  ReversePlan const plan = make_reverse_plan(world.route, patterns, world.nodes, me, world.options);
  std::vector<SumField> const on_host = {f64.described(Element::f64), i32.described(Element::i32)};
  std::vector<std::unique_ptr<GpuBytes>> memory;
  std::vector<SumField> fields;
  std::vector<std::size_t> owned_bytes, ghost_bytes;
  for (SumField const& field : on_host) {
    std::size_t const item = bytes_of(field.element) * at(field.values);
    owned_bytes.push_back(world.owned[at(me)].size() * item);
    ghost_bytes.push_back(world.ghosts[at(me)].size() * item);
    memory.push_back(std::make_unique<GpuBytes>(owned_bytes.back() + ghost_bytes.back() + 16));
    std::byte* const first = memory.back()->data();
    fields.push_back({first + owned_bytes.back(), first, field.element, field.values});
  }
  GpuExchange exchange(transport, plan, fields, {by, patience, 0});
  for (int epoch = 1; epoch <= testing::epochs; ++epoch) {
    f64.fill(epoch), i32.fill(epoch);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      copy(fields[f].owned, on_host[f].owned, owned_bytes[f]);
      copy(const_cast<void*>(fields[f].ghosts), on_host[f].ghosts, ghost_bytes[f]);
    }
    exchange.enqueue();
    if (!exchange.wait()) return wrong.add("a rank was lost while ghosts were added");
    for (std::size_t f = 0; f < fields.size(); ++f) copy(on_host[f].owned, fields[f].owned, owned_bytes[f]);
    if (!f64.good() || !i32.good()) return wrong.add("sums differ in exchange " + std::to_string(epoch));
  }
}

std::string try_plans(Transport& transport, GpuTransport by, int plans) {
  std::string text;
  for (int k = 0; k < plans; ++k) {
    World const world(transport.group().size(), static_cast<unsigned>(k));
    Wrong wrong(world);
    auto const patterns = world.patterns(transport.group());
    exchange_bytes(transport, by, world, patterns, wrong);
    add_ghosts(transport, by, world, patterns, wrong);
    text += wrong.text();
    if (transport.group().any(!text.empty())) break;
  }
  return text;
}

int plans() { return test::of_all(200, 20); }

class OfThreads : public ::testing::TestWithParam<test::Ranks> {};
INSTANTIATE_TEST_SUITE_P(GpuExchange, OfThreads,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_threads(), {1, 2, 3})),
                         [](auto const& one) { return test::name_of(one.param); });

TEST_P(OfThreads, EveryByteComes) {
  auto const& [name, ranks] = GetParam();
  std::vector<GpuTransport> faces = {GpuTransport::host};
  for (GpuTransportFacts const& facts : gpu_transports())  // a stream face of tests, beside that of the host
    if (facts.needs_transport != nullptr && facts.needs_transport == name) faces.push_back(facts.transport);
  EXPECT_EQ(faces.size(), name == "loopback" ? 3u : 1u);  // alone, and inside nodes and between them
  for (GpuTransport const by : faces) {
    std::mutex guard;
    std::string text;
    test::tested_transport(name).run(ranks, [&](Transport& transport) {
      std::string const mine = try_plans(transport, by, plans());
      std::lock_guard const lock(guard);
      text += mine;
    });
    EXPECT_EQ(text, "") << hostless::name(by);
  }
}

// By the stream face of loopback: a rank that does not come is found, and one that gives_up at once.
TEST(GpuExchange, ALostRankIsFoundByItsStreamFace) {
  for (bool const gives_up : {false, true})
    test::tested_transport("loopback").run(2, [&](Transport& transport) {
      World const world(2, 3);
      Group& group = transport.group();
      auto const patterns = world.patterns(group);
      ExchangePlan const plan = make_plan(Route::direct, patterns, world.nodes, group.rank(), world.options);
      GpuBytes memory(16 * at(static_cast<int>(plan.owned + plan.ghosts)));
      GpuExchange exchange(transport, plan, {Field::apart(memory.data(), memory.data() + 8 * plan.owned, 8)},
                           {gpu_transport_from("loopback"), {gives_up ? 60.0 : 0.5, 60}, 0});
      EXPECT_EQ(exchange.describe(), "loopback (pinned memory, late and in another order)");
      EXPECT_FALSE(exchange.may_be_recorded());
      group.barrier();
      if (group.rank() == 1) {
        if (gives_up) exchange.leave();
      } else {
        exchange.enqueue();
        EXPECT_FALSE(exchange.wait());
        EXPECT_TRUE(exchange.lost());
        EXPECT_THROW(exchange.enqueue(), Error);
      }
      group.barrier();
    });
}

constexpr int processes = 3;
class OfProcesses : public ::testing::TestWithParam<test::Ranks> {
 protected:
  void SetUp() override { test::need(transport()); }
  static HostTransport const& transport() { return test::tested_transport(std::get<0>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(GpuExchange, OfProcesses,
                         ::testing::ValuesIn(test::with_ranks(test::names_with_processes(), {processes})),
                         [](auto const& one) { return test::name_of(one.param); });

// Messages of MPI go between buffers of the played GPU, which any MPI takes.
TEST_P(OfProcesses, EveryByteComes) {
  std::string const count = transport().spins ? "10" : "60";
  setenv("HOSTLESS_MPI_DEVICE_MEMORY", "1", 1);
  EXPECT_EQ(test::start_again(transport(), processes, {"host", count}), 0)
      << "the lines above say what differs";
  if (transport().name == "openmpi" || transport().name == "mpich") {  // the ranks' own messages carry
    EXPECT_EQ(test::start_again(transport(), processes, {"mpi", count}), 0)
        << "the lines above say what differs";
  }
}

/// What two ranks are told that bind these; the same on both.
std::string refusal(std::function<void(Transport&, ExchangePlan const&, Field const&)> const& bind) {
  std::mutex guard;
  std::vector<std::string> said;
  run_with_threads_transport(2, [&](Transport& transport) {
    World const world(2, 3);
    auto const patterns = world.patterns(transport.group());
    ExchangePlan const plan =
        make_plan(Route::direct, patterns, world.nodes, transport.group().rank(), world.options);
    GpuBytes memory(16 * at(static_cast<int>(plan.owned + plan.ghosts)));
    std::string mine = "nothing";
    try {
      bind(transport, plan, Field::apart(memory.data(), memory.data() + 8 * plan.owned, 8));
    } catch (Error const& error) {
      mine = error.what();
    }
    std::lock_guard const lock(guard);
    said.push_back(mine);
  });
  EXPECT_EQ(said[0], said[1]);
  return said[0];
}

TEST(GpuExchange, ATransportThatThereIsNotOnOneRankIsRefusedOnAll) {
  EXPECT_EQ(refusal([](Transport& transport, ExchangePlan const& plan, Field const& field) {
              GpuExchangeOptions options{GpuTransport::host, patience, -1};
              if (transport.group().rank() == 1) options.transport = static_cast<GpuTransport>(100);
              GpuExchange const e(transport, plan, {field}, options);
            }),
            "GPU transport number 100 (none has it). Use one of gpu_transports().");
}

TEST(GpuExchange, WhatDoesNotFitIsRefusedOnAllRanks) {
  auto const expect = [](std::string const& said, std::string const& words) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
  };
  GpuExchangeOptions const staged{GpuTransport::host, patience, -1};
  std::vector<std::byte> host(4096);
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           bool const wrong = transport.group().rank() == 1;
           GpuExchange const e(transport, plan,
                               {wrong ? Field::apart(host.data(), host.data() + 2048, 8) : field}, staged);
         }),
         "no memory of a GPU");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           Field other = field;
           other.item_bytes = transport.group().rank() == 1 ? 4 : 8;
           GpuExchange const e(transport, plan, {other}, staged);
         }),
         "ranks 0 and 1 bind other fields: fields[0].item_bytes is 8 and 4");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           if (transport.group().rank() == 1) options.transport = GpuTransport::peer;
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "GPU transport host on rank 0 and peer on rank 1");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           options.copy_engine = true;
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "options.copy_engine with GPU transport host");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           options.transport = GpuTransport::peer;
           options.copy_engine = transport.group().rank() == 1;
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "options.copy_engine on rank 1 and not on rank 0");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           options.device = 7;
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "options.device: 7 of 2 GPUs");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           options.limits.later_s = 0;
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "options.limits.later_s: 0 ");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           options.transport = GpuTransport::mpi;
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "GPU transport mpi with ranks of transport threads");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuExchangeOptions options = staged;
           options.transport = gpu_transport_from("loopback");
           GpuExchange const e(transport, plan, {field}, options);
         }),
         "GPU transport loopback with ranks of transport threads");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           GpuBytes elsewhere(4096, 1);
           Field two = field;
           two.receive = elsewhere.data();
           GpuExchange const e(transport, plan, {two}, staged);
         }),
         "on GPU 1, where others are on GPU 0");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const& field) {
           Field empty = field;
           empty.item_bytes = 0;
           GpuExchange const e(transport, plan, {empty}, staged);
         }),
         "fields[0].item_bytes: 0");
  expect(refusal([&](Transport& transport, ExchangePlan const& plan, Field const&) {
           GpuExchange const e(transport, plan, std::vector<Field>{}, staged);
         }),
         "no fields for a plan that moves items");
}

/// Two ranks of one item, each of which reads the other's, or none.
std::vector<Pattern> patterns_of_two(Transport& transport, std::size_t ghosts = 1) {
  std::int64_t const me = transport.group().rank();
  return patterns_of_ghosts(transport.group(), std::vector{me}, std::vector(ghosts, 1 - me));
}
constexpr PlanOptions alone{ReuseGuarantee::answer, Space::host, true};
ExchangePlan plan_of_two(Transport& transport) {
  auto const patterns = patterns_of_two(transport);
  return make_plan(Route::direct, patterns, NodeMap::blocks(2, 2), transport.group().rank(), alone);
}
ReversePlan reverse_of_two(Transport& transport, std::size_t ghosts) {
  auto const patterns = patterns_of_two(transport, ghosts);
  return make_reverse_plan(Route::direct, patterns, NodeMap::blocks(2, 2), transport.group().rank(), alone);
}

// Whether kernels may wait for the host depends on it.
TEST(GpuExchange, RanksShareAGpuByItsBusNotByItsNumber) {
  for (bool const share : {true, false})
    run_with_threads_transport(2, [&](Transport& transport) {
      first_gpu_of_rank = share ? 0 : transport.group().rank();
      GpuBytes memory(16);
      GpuExchange const exchange(transport, plan_of_two(transport),
                                 {Field::apart(memory.data(), memory.data() + 8, 8)},
                                 {GpuTransport::host, patience, -1});
      EXPECT_EQ(exchange.device(), 0);
      EXPECT_EQ(exchange.may_be_recorded(), !share);
      first_gpu_of_rank = 0;
    });
}

// A rank without ghosts has owned items that say where it is.
TEST(GpuExchange, ContributionsAreAddedOnTheGpuOfWhatTheyAreAddedTo) {
  run_with_threads_transport(2, [&](Transport& transport) {
    Rank const me = transport.group().rank();
    GpuBytes own(8, 1), ghost(8, 1);
    GpuExchange const exchange(transport, reverse_of_two(transport, me == 0 ? 0 : 1),
                               {{ghost.data(), own.data(), Element::f64}},
                               {GpuTransport::host, patience, -1});
    EXPECT_EQ(exchange.device(), 1) << "rank " << me;
  });
}

TEST(GpuExchange, WhatIsAddedToLiesOnTheGpuOfTheGhosts) {
  EXPECT_NE(refusal([&](Transport& transport, ExchangePlan const&, Field const&) {
              GpuBytes own(8, 1), ghost(8, 0);
              GpuExchange const exchange(transport, reverse_of_two(transport, 1),
                                         {{ghost.data(), own.data(), Element::f64}},
                                         {GpuTransport::host, patience, -1});
            }).find("fields[0].owned: on GPU 1, where others are on GPU 0"),
            std::string::npos);
}

// Where the host carries, it can tell the others.
TEST(GpuExchange, WhoLeavesTellsTheOthers) {
  run_with_threads_transport(2, [&](Transport& transport) {
    GpuBytes memory(16);
    GpuExchange exchange(transport, plan_of_two(transport),
                         {Field::apart(memory.data(), memory.data() + 8, 8)},
                         {GpuTransport::host, patience, -1});
    auto const begin = Clock::now();
    if (transport.group().rank() == 0) {
      exchange.leave();
      EXPECT_TRUE(exchange.lost());
    } else {
      exchange.enqueue();
      EXPECT_FALSE(exchange.wait());
    }
    transport.group().barrier();
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 240);
  });
}

// By the host the plan's reasons must hold for its executor: there is no sum between two exchanges here.
TEST(GpuExchange, APlanThatReliesOnSumsIsRefused) {
  EXPECT_NE(refusal([&](Transport& transport, ExchangePlan const&, Field const& field) {
              World const world(2, 3);
              ExchangePlan const relies =
                  make_plan(Route::direct, world.patterns(transport.group()), world.nodes,
                            transport.group().rank(), {ReuseGuarantee::reduction, Space::host, true});
              GpuExchange const e(transport, relies, {field}, {GpuTransport::host, patience, -1});
            }).find("reduction"),
            std::string::npos);
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const& words) {
  return test::rank_that_looks(wanted, [&](Transport& transport) {
    return try_plans(transport, gpu_transport_from(words.at(0).c_str()), std::atoi(words.at(1).c_str()));
  });
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) { return hostless::test::main_of_ranks(count, words, hostless::as_rank); }
