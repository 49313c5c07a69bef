// Kernels of a user that exchange while they run, several ranks on one GPU: plans made up at random, of all
// routes, with answers of blocks; what comes is looked at inside the kernel, by the numbers of items.
#include "own_kernel.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>

#include "cuda_runtime.hpp"
#include "gpu_setting.hpp"
#include "hostless/exchange/gpu_kernel_exchange.hpp"
#include "random_plans.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::test {
namespace {

using hostless::testing::at;
using hostless::testing::World;
using Runtime = CudaRuntime;

QueueOwnKernel* queue_own_kernel() {
  for (gpu::GpuFile const& file : gpu::gpu_files())
    if (void* const found = gpu::function_of(file, queue_own_kernel_name))
      return reinterpret_cast<QueueOwnKernel*>(found);
  return nullptr;
}

/// Arrays of one rank's kernel.
struct Arrays {
  Arrays(Runtime const& cuda, World const& world, std::size_t me, int words, ExchangePlan const& plan,
         int blocks)
      : item_id(cuda, world.owned[me].size() * 8),
        ghost_id(cuda, world.ghosts[me].size() * 8),
        send(cuda, at(plan.owned + (plan.receive == 0 ? plan.ghosts : 0)) * at(words) * 8),
        receive(cuda, at(plan.ghosts) * at(words) * 8),
        told(cuda, (1 + at(blocks)) * 4) {
    std::memcpy(item_id.host(), world.owned[me].data(), item_id.size());
    std::memcpy(ghost_id.host(), world.ghosts[me].data(), ghost_id.size());
    std::fill_n(told.host(), told.size(), std::byte{0});
  }
  void bring(Runtime::Stream stream) const {
    for (DeviceBytes const* one : {&item_id, &ghost_id, &told}) one->bring(stream);
  }
  std::uint32_t number(std::size_t k) const { return reinterpret_cast<std::uint32_t const*>(told.host())[k]; }
  DeviceBytes item_id, ghost_id, send, receive, told;
};

constexpr int steps = 300;

/// What is wrong on this rank. silent_rank: it leaves before the last step.
std::string exchange_in_kernels(Transport& transport, unsigned number, int silent_rank, double limit_s) {
  Runtime const& cuda = *Runtime::find();
  Group& group = transport.group();
  World world(group.size(), number);
  auto const me = at(group.rank());
  auto const patterns = world.patterns(group);
  KernelExchangeOptions options;
  options.blocks = 1 + static_cast<int>((number + me) % 8);
  options.item_bytes = 8 * (1 + number % 3);
  options.limits = {limit_s, limit_s};
  int const blocks = options.blocks;
  options.block_of_item = [blocks](std::int32_t item) { return item % blocks; };
  Runtime::check(cuda.use(0), "cudaSetDevice");
  ExchangePlan const plan = make_plan(world.route, patterns, world.nodes, group.rank(), world.options);
  std::optional<GpuKernelExchange> exchange(std::in_place, transport, plan, options);
  int const words = static_cast<int>(options.item_bytes / 8);
  Arrays arrays(cuda, world, me, words, plan, blocks);
  Runtime::Stream stream = nullptr;
  Runtime::check(cuda.make_stream(&stream, Runtime::non_blocking), "cudaStreamCreate");
  arrays.bring(stream);
  Runtime::check(cuda.synchronize(stream), "cudaStreamSynchronize");
  auto const item = [](DeviceBytes const& of) { return reinterpret_cast<std::int64_t const*>(of.device()); };
  auto* const told = reinterpret_cast<std::uint32_t*>(arrays.told.device());
  OwnKernelCall call{exchange->view(),
                     item(arrays.item_id),
                     item(arrays.ghost_id),
                     reinterpret_cast<std::uint64_t*>(arrays.send.device()),
                     reinterpret_cast<std::uint64_t*>(arrays.receive.device()),
                     static_cast<int>(plan.owned),
                     0,
                     0,
                     told,
                     told + 1,
                     silent_rank};
  QueueOwnKernel* const queue = queue_own_kernel();
  std::string wrong;
  for (int launch = 0; launch < 3; ++launch) {
    call.steps = launch == 0 ? 0 : steps;  // the first one loads the kernel, when nobody's waits
    if (queue(&call, stream) != 0) wrong += "the kernel was not launched; ";
    Runtime::check(cuda.synchronize(stream), "cudaStreamSynchronize");
    arrays.told.fetch(stream);
    Runtime::check(cuda.synchronize(stream), "cudaStreamSynchronize");
    group.barrier();
    if (launch == 0) continue;
    call.first_step += call.steps;
    if (arrays.number(0) != 0) wrong += std::to_string(arrays.number(0)) + " words are wrong; ";
    for (int block = 0; block < blocks && silent_rank < 0; ++block)
      if (arrays.number(at(1 + block)) != steps) wrong += "block " + std::to_string(block) + " gave up; ";
  }
  if (silent_rank < 0 && exchange->lost()) wrong += "a rank is lost; ";
  group.barrier();
  exchange.reset();
  Runtime::check(cuda.end_stream(stream), "cudaStreamDestroy");
  return wrong.empty() ? wrong
                       : "plan " + std::to_string(number) + " (" + name(world.route) + "), rank " +
                             std::to_string(me) + ": " + wrong + "\n";
}

class OwnKernelsOfTests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("HOSTLESS_OF_TESTS") == nullptr)
      GTEST_SKIP() << "HOSTLESS_OF_TESTS is not set: a start of its own does it";
    if (Runtime::find() == nullptr || Runtime::find()->use(0) != 0)
      GTEST_SKIP() << "no GPU is visible, or no CUDA runtime installed";
    ASSERT_NE(queue_own_kernel(), nullptr) << "the library of tests has no such kernel";
  }
  static std::string with_ranks(int ranks, std::vector<unsigned> const& plans, int silent_rank,
                                double limit_s) {
    std::mutex guard;
    std::string text;
    run_with_threads_transport(ranks, [&](Transport& transport) {
      for (unsigned const number : plans) {
        std::string const mine = exchange_in_kernels(transport, number, silent_rank, limit_s);
        std::lock_guard const lock(guard);
        text += mine;
      }
    });
    return text;
  }
};

TEST_F(OwnKernelsOfTests, EveryGhostHasItsItemInEveryStep) {
  std::vector<unsigned> plans(30);
  std::iota(plans.begin(), plans.end(), 1u);
  for (int ranks : {1, 2, 3, 4}) EXPECT_EQ(with_ranks(ranks, plans, -1, 240), "") << ranks << " ranks";
}

// What came was whole, and everybody leaves.
TEST_F(OwnKernelsOfTests, ALostRankEndsTheOthers) {
  auto const begin = Clock::now();
  EXPECT_EQ(with_ranks(4, {1, 2, 3, 4}, 2, 0.3), "");
  EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 240);
}

}  // namespace
}  // namespace hostless::test
