// The host's side of `--gpu-transport mpi`, without a GPU: messages of a transport between packed buffers, by
// every route; and what libraries answer that are asked for device memory.
#include "exchange/gpu/round_messages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "exchange/peer_copies.hpp"
#include "exchange/stream_rounds.hpp"
#include "hostless/base/error.hpp"
#include "message_cases.hpp"
#include "transport/mpi/mpi_device_memory.hpp"

namespace {
int open_mpi_says = 0, mpich_says = 0, mpich_was_asked_for = -1;
}
// As MPI libraries have them; this program exports its own.
extern "C" int MPIX_Query_cuda_support() { return open_mpi_says; }
extern "C" int MPIX_GPU_query_support(int kind, int* taken) {
  mpich_was_asked_for = kind;
  *taken = mpich_says;
  return 0;
}

namespace hostless::gpu {
namespace {

using testing::Reads;

// One rank's GPU: packs, copies what it sends to itself, unpacks.
class Gpu {
 public:
  Gpu(Transport& transport, ExchangePlan const& plan, WaitLimits limits)
      : plan_(plan),
        copies_(peer_copies(plan, transport.group())),
        rounds_(message_rounds(copies_, transport.group())),
        stream_rounds_(stream_rounds(rounds_, sizeof(double), true)),
        messages_(transport, stream_rounds_, limits),
        vector_(static_cast<std::size_t>(plan.owned + plan.ghosts), -1),
        staging_(static_cast<std::size_t>(copies_.staging), -1) {
    for (MessageRound const& round : rounds_) {
      out_.emplace_back(round.from.size());
      in_.emplace_back(round.to.size());
    }
    renew();
  }
  HostMessaging const& calls() const { return messages_.calls(); }
  void renew() {
    std::vector<StreamBuffers> buffers;
    for (std::size_t k = 0; k < rounds_.size(); ++k)
      buffers.emplace_back(reinterpret_cast<std::byte const*>(out_[k].data()),
                           reinterpret_cast<std::byte*>(in_[k].data()));
    messages_.bind(buffers);
  }
  bool exchange(int epoch) {
    for (std::int64_t k = 0; k < plan_.owned; ++k)
      vector_[static_cast<std::size_t>(plan_.ghosts_below + k)] = value_of(plan_.rank, k, epoch);
    for (std::size_t k = 0; k < rounds_.size(); ++k) {
      MessageRound const& round = rounds_[k];
      for (std::size_t i = 0; i < round.from.size(); ++i) out_[k][i] = item(round.from[i]);
      for (MessagePart const& part : round.out)
        if (part.rank == plan_.rank)
          std::copy_n(out_[k].begin() + part.first, part.items, in_[k].begin() + part.there);
      if (!messages_.calls().carry(static_cast<int>(k))) return false;
      for (std::size_t i = 0; i < round.to.size(); ++i) item(round.to[i]) = in_[k][i];
    }
    return true;
  }
  bool gather(int epoch) {
    std::vector<double> const mine = said_by(plan_.rank, epoch);
    all.assign(3 * static_cast<std::size_t>(plan_.ranks), -1);
    return messages_.calls().gather(mine.data(), 3, all.data());
  }
  void expect_ghosts(Reads const& reads, int epoch) {
    ASSERT_TRUE(exchange(epoch));
    auto const expected = reads.ghosts(plan_.rank);
    for (std::size_t g = 0; g < expected.size(); ++g) {
      auto const offset =
          plan_.vector_offset(plan_.owned + static_cast<std::int64_t>(g)) + plan_.ghosts_below;
      EXPECT_EQ(vector_[static_cast<std::size_t>(offset)],
                value_of(expected[g].first, expected[g].second, epoch))
          << "ghost " << g << " of rank " << plan_.rank;
    }
  }
  void expect_all(Reads const& reads, int epoch) {
    expect_ghosts(reads, epoch);
    ASSERT_TRUE(gather(epoch));
    expect_said(all, plan_.ranks, epoch);
  }
  std::vector<double> all;

 private:
  double& item(MessageItem const& i) {
    return i.staging != 0 ? staging_.at(static_cast<std::size_t>(i.vector_offset))
                          : vector_.at(static_cast<std::size_t>(i.vector_offset + plan_.ghosts_below));
  }
  ExchangePlan const& plan_;
  PeerCopies copies_;
  std::vector<MessageRound> rounds_;
  std::vector<StreamRound> stream_rounds_;
  RoundMessages messages_;
  std::vector<std::vector<double>> out_, in_;
  std::vector<double> vector_, staging_;
};

TEST(RoundMessages, GhostsAndPartsOfSumsArrive) { expect_all_arrives_by_every_route<Gpu>(); }

// No sum lies between exchanges: who has nothing to wait for must not store on what a slow rank has not read.
TEST(RoundMessages, WhoOnlySendsIsNotAheadOfWhoOnlyReceives) {
  constexpr int epochs = 20;
  Reads const reads = Reads({3, 3}).add(0, 0, {1}).add(0, 2, {1});
  auto const plans = make_plans(Route::direct, reads.patterns(), NodeMap::blocks(2, 2));
  run_with_threads_transport(2, [&](Transport& transport) {
    int const rank = transport.group().rank();
    Gpu gpu(transport, plans[static_cast<std::size_t>(rank)], {5, 5});
    transport.group().barrier();
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      gpu.expect_ghosts(reads, epoch);
    }
    transport.group().barrier();
  });
}

TEST(RoundMessages, NobodyWaitsInATest) { expect_nobody_waits_in_a_test<Gpu>(); }

TEST(RoundMessages, ALostRankIsFoundAndForgotten) { expect_a_lost_rank_is_found_and_forgotten<Gpu>(); }

class AskedMpi : public ::testing::Test {
 protected:
  void SetUp() override {
    for (char const* variable :
         {"MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA", "MV2_USE_ROCM", "HOSTLESS_MPI_DEVICE_MEMORY"})
      unsetenv(variable);
    open_mpi_says = mpich_says = 0;
    mpich_was_asked_for = -1;
  }
};

TEST_F(AskedMpi, BelievesTheLibrary) {
  EXPECT_FALSE(ask_mpi_for_device_memory("cuda").taken);
  EXPECT_EQ(ask_mpi_for_device_memory("cuda").what, "MPIX_Query_cuda_support says no");
  EXPECT_EQ(mpich_was_asked_for, 0);
  EXPECT_EQ(ask_mpi_for_device_memory("hip").what, "MPIX_GPU_query_support says no");
  EXPECT_EQ(mpich_was_asked_for, 2);
  open_mpi_says = 1;
  EXPECT_TRUE(ask_mpi_for_device_memory("cuda").taken);
  EXPECT_FALSE(ask_mpi_for_device_memory("hip").taken) << "it was asked for CUDA's";
  mpich_says = 1;
  EXPECT_TRUE(ask_mpi_for_device_memory("hip").taken);
}

// Or us: an Open MPI whose UCX takes device memory says no, because it was not built with CUDA itself.
TEST_F(AskedMpi, BelievesWhatTheEnvironmentTells) {
  for (std::string const variable :
       {"MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA", "HOSTLESS_MPI_DEVICE_MEMORY"}) {
    setenv(variable.c_str(), "0", 1);
    EXPECT_FALSE(ask_mpi_for_device_memory("cuda").taken);
    setenv(variable.c_str(), "1", 1);
    EXPECT_EQ(ask_mpi_for_device_memory("cuda").what, variable + " is 1");
    EXPECT_TRUE(ask_mpi_for_device_memory("hip").taken);
    unsetenv(variable.c_str());
  }
}

// Before anything is bound, with what to do instead.
TEST_F(AskedMpi, RefusesWhatNobodyPromises) {
  try {
    static_cast<void>(require_mpi_device_memory("cuda"));
    FAIL() << "it was taken";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), ErrorCode::environment);
    EXPECT_NE(std::string(error.what())
                  .find("takes no memory of GPUs (MPIX_Query_cuda_support says no). Use "
                        "--gpu-transport host"),
              std::string::npos)
        << error.what();
  }
  open_mpi_says = 1;
  EXPECT_EQ(require_mpi_device_memory("cuda"), "MPIX_Query_cuda_support says so");
}

}  // namespace
}  // namespace hostless::gpu
