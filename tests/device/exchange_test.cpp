// Exchanges between GPUs without a solver, by plans made up at random: every GPU transport, both directions,
// several fields, from streams and in graphs that are replayed, with producers that still run when the
// exchange is queued; compared byte for byte with what the numbers of items say. Ranks that are processes are
// this program again, as
//   device_exchange --as-rank <transport> <GPU transport> <plans>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "cuda_runtime.hpp"
#include "gpu_setting.hpp"
#include "host_ranks.hpp"
#include "hostless/exchange/gpu_exchange.hpp"
#include "random_plans.hpp"

namespace hostless::test {
namespace {

using hostless::testing::at;
using hostless::testing::World;
using hostless::testing::Wrong;
using Runtime = CudaRuntime;

/// How exchanges are queued: the same on all ranks.
enum class Way { enqueued, beside, recorded, recorded_beside };
constexpr Way all_ways[] = {Way::enqueued, Way::beside, Way::recorded, Way::recorded_beside};

void dawdle_on_stream(void*) { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

/// One for all exchanges of a rank: a GPU has few queues, and ranks that share it must not share those.
class StreamOfRank {
 public:
  Runtime::Stream on(Runtime const& cuda, int device) {
    Runtime::check(cuda.use(device), "cudaSetDevice");
    if (stream_ == nullptr)
      Runtime::check(cuda.make_stream(&stream_, Runtime::non_blocking), "cudaStreamCreate");
    return stream_;
  }
  ~StreamOfRank() {
    if (stream_ != nullptr) static_cast<void>(Runtime::find()->end_stream(stream_));
  }

 private:
  Runtime::Stream stream_ = nullptr;
};
Runtime::Stream stream_of_rank(Runtime const& cuda, int device) {
  thread_local StreamOfRank mine;  // ranks are threads, or processes
  return mine.on(cuda, device);
}

/// A rank's stream, and a graph of one exchange.
class Consumer {
 public:
  Consumer(Runtime const& cuda, GpuExchange& exchange, Way way)
      : stream(stream_of_rank(cuda, exchange.device())), cuda_(cuda), exchange_(exchange), way_(way) {
    if (way == Way::recorded || way == Way::recorded_beside) record();
  }
  Consumer(Consumer const&) = delete;
  Consumer& operator=(Consumer const&) = delete;
  ~Consumer() {
    if (ready_ != nullptr) static_cast<void>(cuda_.end_ready(ready_));
    if (graph_ != nullptr) static_cast<void>(cuda_.end_graph(graph_));
  }
  void exchange() {
    if (ready_ != nullptr) {
      Runtime::check(cuda_.launch(ready_, stream), "cudaGraphLaunch");
    } else {
      queue(way_ == Way::beside);
    }
  }
  /// Until all that is queued is done; the host serves meanwhile.
  bool settle(double limit_s) {
    Deadline const deadline = Deadline::after(limit_s);
    while (cuda_.query(stream) == Runtime::not_ready && !exchange_.lost() && !deadline.passed())
      static_cast<void>(exchange_.test());
    if (exchange_.lost() || deadline.passed()) return false;
    Runtime::check(cuda_.synchronize(stream), "cudaStreamSynchronize");
    return true;
  }
  Runtime::Stream const stream;

 private:
  void queue(bool beside) {
    if (!beside) return exchange_.enqueue(stream);
    exchange_.start(stream);
    exchange_.finish(stream);
  }
  void record() {
    Runtime::check(cuda_.begin_capture(stream, Runtime::relaxed), "cudaStreamBeginCapture");
    queue(way_ == Way::recorded_beside);
    Runtime::check(cuda_.end_capture(stream, &graph_), "cudaStreamEndCapture");
    Runtime::check(cuda_.instantiate(&ready_, graph_, 0), "cudaGraphInstantiate");
  }
  Runtime const& cuda_;
  GpuExchange& exchange_;
  Way way_;
  void *graph_ = nullptr, *ready_ = nullptr;
};

/// For a look at one case: HOSTLESS_EXCHANGE_FIRST, _PLANS and _WAY.
int asked_for(char const* variable, int otherwise) {
  char const* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

Way way_of(World const& world, bool may_be_recorded) {
  auto const k =
      static_cast<std::size_t>(asked_for("HOSTLESS_EXCHANGE_WAY", static_cast<int>(world.seed % 4)));
  return may_be_recorded ? all_ways[k] : all_ways[k % 2];
}

/// The GPU library of tests has exchanges alone and every transport of the list; a start of this program has
/// one library (HOSTLESS_PLUGIN_DIR), and HOSTLESS_OF_TESTS says that it is that one.
bool has_library_of_tests() { return std::getenv("HOSTLESS_OF_TESTS") != nullptr; }
int device_for(Group const& group) {
  return has_library_of_tests() ? 0 : group.rank() % gpus_of(group.size());
}

/// What carries, and by peer how.
struct By {
  By(GpuTransport of, bool copies = false) : transport(of), by_copy_engine(copies) {}
  GpuTransport transport;
  bool by_copy_engine;
  GpuExchangeOptions options(double seconds, int device) const {
    return {transport, {seconds, seconds}, device, by_copy_engine};
  }
};

constexpr double patience_s = 20;
constexpr std::size_t guard = 16;

/// One to five fields of 1 to 64 bytes an item; every byte of a ghost says whose it is.
void exchange_bytes(Transport& transport, By const& by, World const& world,
                    std::vector<Pattern> const& patterns, Wrong& wrong) {
  Runtime const& cuda = *Runtime::find();
  Group& group = transport.group();
  auto const me = at(group.rank());
  auto const &owned = world.owned[me], &ghosts = world.ghosts[me];
  std::mt19937 random(world.seed + 1), own_pace(world.seed * 31 + static_cast<unsigned>(me));
  std::vector<std::size_t> sizes(1 + random() % 5);
  bool const round_sizes = random() % 2 == 0;  // those of numbers, which land in place
  for (std::size_t& size : sizes) size = round_sizes ? 8 * (1 + random() % 8) : 1 + random() % 64;
  if (round_sizes && random() % 2 == 0) sizes.resize(1);
  auto const value = [&](std::size_t field, std::int64_t number, std::size_t byte, int epoch) {
    return static_cast<std::byte>(
        hostless::testing::scrambled(world.seed + 1000003u * static_cast<std::uint64_t>(number) + 64 * field +
                                     byte + (static_cast<std::uint64_t>(epoch) << 40)));
  };
  int const device = device_for(group);
  Runtime::check(cuda.use(device), "cudaSetDevice");
  std::vector<DeviceBytes> memory;  // [owned | ghosts] of each field, each between guards
  std::vector<Field> fields;
  for (std::size_t const size : sizes) {
    memory.emplace_back(cuda, 2 * guard + (owned.size() + ghosts.size()) * size);
    std::fill_n(memory.back().host(), memory.back().size(), std::byte{0xa5});
    std::byte* const first = memory.back().device() + guard;
    fields.push_back(Field::apart(first, first + owned.size() * size, size));
  }
  ExchangePlan const plan = make_plan(world.route, patterns, world.nodes, group.rank(), world.options);
  std::optional<GpuExchange> exchange(std::in_place, transport, plan, fields, by.options(patience_s, device));
  {
    Consumer consumer(cuda, *exchange, way_of(world, exchange->may_be_recorded()));
    for (DeviceBytes const& one : memory) one.bring(consumer.stream);
    static_cast<void>(consumer.settle(patience_s));
    group.barrier();  // recording and loading wait for kernels: nobody's may wait for this rank's yet
    for (int epoch = 1; epoch <= hostless::testing::epochs; ++epoch) {
      std::vector<std::vector<std::byte>> expected;
      for (std::size_t f = 0; f < sizes.size(); ++f) {
        expected.emplace_back(memory[f].size(), std::byte{0xa5});
        std::size_t at_byte = guard;
        for (auto const* numbers : {&owned, &ghosts})
          for (std::int64_t const number : *numbers)
            for (std::size_t b = 0; b < sizes[f]; ++b) expected[f][at_byte++] = value(f, number, b, epoch);
        std::fill_n(memory[f].host(), memory[f].size(), std::byte{0xa5});
        std::copy_n(expected[f].begin() + guard, owned.size() * sizes[f], memory[f].host() + guard);
      }
      if (own_pace() % 4 == 0)  // the producer takes its time
        Runtime::check(cuda.call_host(consumer.stream, &dawdle_on_stream, nullptr), "cudaLaunchHostFunc");
      for (DeviceBytes const& one : memory) one.bring(consumer.stream);
      consumer.exchange();
      for (DeviceBytes const& one : memory) one.fetch(consumer.stream);
      if (!consumer.settle(patience_s)) {
        wrong.add("a rank was lost in exchange " + std::to_string(epoch) + ", queued as way " +
                  std::to_string(static_cast<int>(way_of(world, exchange->may_be_recorded()))));
        break;
      }
      for (std::size_t f = 0; f < sizes.size(); ++f)
        if (std::memcmp(memory[f].host(), expected[f].data(), expected[f].size()) != 0)
          wrong.add("field " + std::to_string(f) + " of " + std::to_string(sizes[f]) +
                    " bytes an item differs on rank " + std::to_string(me) + " in exchange " +
                    std::to_string(epoch));
    }
    group.barrier();  // to give memory back waits for kernels, too
  }
  exchange.reset();
  group.barrier();
}

/// Numbers on a GPU, and what they become, by the sums of the host.
template <class T>
class SummedOnGpu {
 public:
  SummedOnGpu(Runtime const& cuda, World const& world, std::size_t field, int me, int values)
      : on_host(world, field, me, values),
        owned_(cuda, world.owned[at(me)].size() * at(values) * sizeof(T)),
        ghosts_(cuda, world.ghosts[at(me)].size() * at(values) * sizeof(T)),
        values_(values) {}
  SumField described(Element element) const { return {ghosts_.device(), owned_.device(), element, values_}; }
  void bring(int epoch, Runtime::Stream stream) {
    on_host.fill(epoch);
    SumField const field = on_host.described(Element::f64);
    std::copy_n(static_cast<std::byte const*>(field.owned), owned_.size(), owned_.host());
    std::copy_n(static_cast<std::byte const*>(field.ghosts), ghosts_.size(), ghosts_.host());
    owned_.bring(stream);
    ghosts_.bring(stream);
  }
  void fetch(Runtime::Stream stream) const { owned_.fetch(stream); }
  bool good() {
    std::copy_n(owned_.host(), owned_.size(), static_cast<std::byte*>(on_host.described(Element::f64).owned));
    return on_host.good();
  }

 private:
  hostless::testing::SummedField<T> on_host;
  DeviceBytes owned_, ghosts_;
  int values_;
};

void add_ghosts(Transport& transport, By const& by, World const& world, std::vector<Pattern> const& patterns,
                Wrong& wrong) {
  Runtime const& cuda = *Runtime::find();
  Group& group = transport.group();
  int const me = group.rank(), device = device_for(group);
  std::mt19937 random(world.seed + 2);
  auto const values = [&] { return 1 + static_cast<int>(random() % 4); };
  Runtime::check(cuda.use(device), "cudaSetDevice");
  SummedOnGpu<float> f32(cuda, world, 0, me, values());
  SummedOnGpu<double> f64(cuda, world, 1, me, values());
  SummedOnGpu<std::uint32_t> i32(cuda, world, 2, me, values());
  SummedOnGpu<std::uint64_t> i64(cuda, world, 3, me, values());
  ReversePlan const plan = make_reverse_plan(world.route, patterns, world.nodes, me, world.options);
  std::optional<GpuExchange> exchange(
      std::in_place, transport, plan,
      std::vector<SumField>{f32.described(Element::f32), f64.described(Element::f64),
                            i32.described(Element::i32), i64.described(Element::i64)},
      by.options(patience_s, device));
  {
    Consumer consumer(cuda, *exchange, way_of(world, exchange->may_be_recorded()));
    group.barrier();
    for (int epoch = 1; epoch <= hostless::testing::epochs; ++epoch) {
      auto const each = [&](auto const& use) { use(f32), use(f64), use(i32), use(i64); };
      each([&](auto& field) { field.bring(epoch, consumer.stream); });
      consumer.exchange();
      each([&](auto& field) { field.fetch(consumer.stream); });
      if (!consumer.settle(patience_s)) {
        wrong.add("a rank was lost while ghosts were added");
        break;
      }
      bool good = true;
      each([&](auto& field) { good = field.good() && good; });
      if (!good)
        wrong.add("sums on rank " + std::to_string(me) + " differ in exchange " + std::to_string(epoch));
    }
    group.barrier();
  }
  exchange.reset();
  group.barrier();
}

/// All the plans; what is wrong on this rank.
std::string try_plans(Transport& transport, By const& by, int plans) {
  std::string text;
  int const first = asked_for("HOSTLESS_EXCHANGE_FIRST", 0);
  for (int k = first; k < first + plans; ++k) {
    World const world(transport.group().size(), static_cast<unsigned>(k));
    Wrong wrong(world);
    auto const patterns = world.patterns(transport.group());
    try {
      exchange_bytes(transport, by, world, patterns, wrong);
      add_ghosts(transport, by, world, patterns, wrong);
    } catch (Error const& e) {
      std::cerr << name(world.route) << " plan " << k << ", rank " << transport.group().rank() << ": "
                << e.what() << std::endl;
      throw;
    }
    text += wrong.text();
    if (transport.group().any(!text.empty())) break;
  }
  return text;
}

int plans_wanted() { return asked_for("HOSTLESS_EXCHANGE_PLANS", under_a_tool() ? 4 : 200); }

class GpuExchanges : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (!IsSkipped() && Runtime::find() == nullptr)
      GTEST_SKIP() << "no CUDA runtime is installed for the test";
  }
  static void expect_all_right(int ranks, By const& by, int plans) {
    std::mutex guard_of_text;
    std::string text;
    run_with_threads_transport(ranks, [&](Transport& transport) {
      std::string const mine = try_plans(transport, by, plans);
      std::lock_guard const lock(guard_of_text);
      text += mine;
    });
    EXPECT_EQ(text, "") << ranks << " ranks by " << hostless::name(by.transport);
  }
};

TEST_F(GpuExchanges, PeerByThreads) {
  for (int ranks : {1, 2, 3, 4})
    if (ranks == 1 || !under_a_tool()) expect_all_right(ranks, GpuTransport::peer, plans_wanted());
}
TEST_F(GpuExchanges, PeerByCopyEngine) {
  for (int ranks : {1, 2, 3})
    if (ranks == 1 || !under_a_tool()) expect_all_right(ranks, By(GpuTransport::peer, true), plans_wanted());
}
// A kernel of its own waits, as where ranks share a GPU.
TEST_F(GpuExchanges, PeerAwaitsApart) {
  setenv("HOSTLESS_GPU_AWAIT_APART", "1", 1);
  for (int ranks : {1, 2})
    if (ranks == 1 || !under_a_tool()) expect_all_right(ranks, GpuTransport::peer, plans_wanted());
  unsetenv("HOSTLESS_GPU_AWAIT_APART");
}
TEST_F(GpuExchanges, StagedByThreads) {
  for (int ranks : {1, 2, 3}) expect_all_right(ranks, GpuTransport::host, plans_wanted());
}
TEST(GpuExchangesOfTests, LoopbackByThreads) {
  if (!has_library_of_tests()) GTEST_SKIP() << "HOSTLESS_OF_TESTS is not set: a start of its own does it";
  Runtime const* const cuda = Runtime::find();
  if (cuda == nullptr || cuda->use(0) != 0) GTEST_SKIP() << "no GPU is visible, or no CUDA runtime installed";
  for (char const* by : {"loopback", "loopback+loopback"})
    for (int ranks : {1, 2, 3, 4}) {
      std::mutex guard_of_text;
      std::string text;
      tested_transport("loopback").run(ranks, [&](Transport& transport) {
        std::string const mine = try_plans(transport, gpu_transport_from(by), plans_wanted());
        std::lock_guard const lock(guard_of_text);
        text += mine;
      });
      EXPECT_EQ(text, "") << ranks << " ranks by " << by;
    }
}
TEST_F(GpuExchanges, NcclByThreads) {
  for (gpu::TransportFacts const& facts : gpu::library().transports())
    if (facts.name == "nccl" && !facts.problem.empty()) GTEST_SKIP() << facts.problem;
  for (int ranks : {1, 2})
    if (gpus_of(ranks) == ranks)
      for (GpuTransport by : {GpuTransport::nccl, GpuTransport::peer_nccl})
        expect_all_right(ranks, by, plans_wanted());
}
// Nodes as the plans have them, at random.
TEST_F(GpuExchanges, PeerInsideNodesAndTheHostBetween) {
  for (int ranks : {1, 2, 3, 4})
    if (ranks == 1 || !under_a_tool()) expect_all_right(ranks, GpuTransport::peer_host, plans_wanted());
}

// A rank that does not come: the others end at their deadline, and say so.
TEST_F(GpuExchanges, ALostRankIsFound) {
  for (GpuTransport by : {GpuTransport::peer, GpuTransport::host})
    run_with_threads_transport(2, [&](Transport& transport) {
      Group& group = transport.group();
      World const world(2, 3);
      auto const patterns = world.patterns(group);
      Runtime const& cuda = *Runtime::find();
      auto const me = at(group.rank());
      int const device = group.rank() % gpus_of(2);
      Runtime::check(cuda.use(device), "cudaSetDevice");
      DeviceBytes const memory(cuda, 8 * (world.owned[me].size() + world.ghosts[me].size()) + 8);
      std::optional<GpuExchange> exchange(
          std::in_place, transport,
          make_plan(Route::direct, patterns, world.nodes, group.rank(), world.options),
          std::vector<Field>{Field::apart(memory.device(), memory.device() + 8 * world.owned[me].size(), 8)},
          By(by).options(1, device));
      group.barrier();
      auto const begin = Clock::now();
      if (group.rank() == 0) {
        bool whole = true;
        try {
          exchange->start();
          whole = exchange->wait();
        } catch (Error const& error) {
          EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.what();
          whole = false;
        }
        double const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        EXPECT_FALSE(whole);
        EXPECT_TRUE(exchange->lost());
        EXPECT_GT(seconds, 0.5) << "nobody waited";
        EXPECT_LT(seconds, 5);
        EXPECT_THROW(exchange->start(), Error);
      } else {
        std::this_thread::sleep_for(std::chrono::seconds(2));
      }
      group.barrier();
      exchange.reset();
      group.barrier();
    });
}

TEST_F(GpuExchanges, MemoryOfTheHostIsRefused) {
  run_with_threads_transport(2, [&](Transport& transport) {
    World const world(2, 3);
    auto const patterns = world.patterns(transport.group());
    std::vector<std::byte> memory(100000);
    try {
      GpuExchange const exchange(
          transport, make_plan(Route::direct, patterns, world.nodes, transport.group().rank(), world.options),
          std::vector<Field>{Field::apart(memory.data(), memory.data() + 50000, 8)});
      ADD_FAILURE() << "it was taken";
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find("no memory of a GPU"), std::string::npos) << error.what();
    }
  });
}

constexpr int processes = 2, plans_of_sharers = 25;  // of ranks that take turns on a GPU

// A library needs a GPU for every rank; of ranks that share one, MPICH's spin in each other's way.
TEST_F(GpuExchanges, Processes) {
  bool const share = gpus_of(processes) < processes;
  for (std::string const& over : names_with_processes())
    for (GpuTransport by : {GpuTransport::peer, GpuTransport::host, GpuTransport::nccl}) {
      HostTransport const& transport = tested_transport(over);
      if ((by == GpuTransport::nccl && share) ||
          (transport.missing != nullptr && !transport.missing().empty()) || (transport.spins && share))
        continue;
      std::string const plans = std::to_string(share ? plans_of_sharers : plans_wanted());
      EXPECT_EQ(start_again(transport, processes, {hostless::name(by), plans}), 0)
          << over << ", " << hostless::name(by) << ": the lines above say what differs";
    }
}

int as_rank(HostTransport const& wanted, std::vector<std::string> const& words) {
  return rank_that_looks(wanted, [&](Transport& transport) {
    return try_plans(transport, gpu_transport_from(words.at(0).c_str()), std::atoi(words.at(1).c_str()));
  });
}

}  // namespace
}  // namespace hostless::test

int main(int count, char** words) {
  return hostless::test::main_of_ranks(count, words, hostless::test::as_rank);
}
