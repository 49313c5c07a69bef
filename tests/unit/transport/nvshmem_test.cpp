// What hostless does with NVSHMEM from the host, with a library in its place that has the same functions
// (fake_nvshmem.cpp), between processes: ranks meet, take memory, put, end; and calls that do not return.
#include "transport/nvshmem/nvshmem.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>
#include <vector>

#include "device/loaded_library.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"

namespace hostless::gpu {
namespace {

constexpr int ranks = 3;

// What stands in for a group: memory that all processes of a test see.
struct Rendezvous {
  std::atomic<int> arrived{0}, round{0};
  std::array<SymmetricOffer, ranks> offers;
  void barrier() {
    int const now = round;
    if (++arrived == ranks) {
      arrived = 0;
      ++round;
    }
    while (round == now) Backoff::give_core_away();
  }
};

// body(rank, rendezvous) in a process for each rank, which none but this library has touched.
void in_processes(int count, std::function<void(int rank, Rendezvous&)> const& body) {
  void* const memory =
      mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const rendezvous = new (memory) Rendezvous;
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    pid_t const child = fork();
    if (child == 0) {
      alarm(60);
      body(rank, *rendezvous);
      std::exit(testing::Test::HasFailure() ? 1 : 0);  // what the library does at the end is part of it
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  munmap(memory, sizeof(Rendezvous));
}

void enter_nothing() {}
StreamSetup setup_of(int rank, double first_s = 30) {
  StreamSetup setup;
  setup.rank = rank;
  setup.ranks = ranks;
  setup.first_s = first_s;
  setup.deadline_s = 5;
  return setup;
}
std::shared_ptr<SymmetricMemory> take(int rank, Rendezvous& rendezvous, std::int64_t bytes) {
  rendezvous.barrier();
  rendezvous.offers[static_cast<std::size_t>(rank)] = nvshmem::offer(bytes, rank);
  rendezvous.barrier();
  return nvshmem::take(setup_of(rank), {rendezvous.offers.begin(), rendezvous.offers.end()}, enter_nothing);
}
std::string message_of(std::function<void()> const& call, ErrorCode code) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}
void expect_says(std::string const& text, std::string const& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Nvshmem, ItsVersionIsTold) { EXPECT_EQ(nvshmem::describe(), "NVSHMEM 3.98.99"); }

TEST(Nvshmem, HowItWouldCarryIsTold) {
  auto const said = [](std::vector<std::pair<char const*, char const*>> const& variables) {
    for (auto const& [name, value] : variables) setenv(name, value, 1);
    std::string const text = nvshmem::how_it_would_carry();
    for (auto const& one : variables) unsetenv(one.first);
    return text;
  };
  std::string const usual = said({});
  expect_says(usual, "inside a node P2P, stores over NVLink or PCIe, where GPUs reach each other; ");
  expect_says(usual,
              "between nodes IBRC (its default; its file is not beside the library). A put is a whole ");
  expect_says(usual, "in steps of 512 MiB (its default). ");
  expect_says(said({{"NVSHMEM_REMOTE_TRANSPORT", "ucx"}, {"NVSHMEM_CUMEM_GRANULARITY", "2M"}}),
              "UCX (NVSHMEM_REMOTE_TRANSPORT says so; its file is not");
  expect_says(said({{"NVSHMEM_CUMEM_GRANULARITY", "2M"}}), "in steps of 2M. ");
  expect_says(said({{"NVSHMEM_REMOTE_TRANSPORT", "none"}}), "between nodes nothing (NVSHMEM_REMOTE");
  expect_says(
      said({{"NVSHMEM_DISABLE_P2P", "1"}, {"NVSHMEM_IB_ENABLE_IBGDA", "true"}}),
      "inside a node not by P2P (NVSHMEM_DISABLE_P2P says so); between nodes IBGDA (NVSHMEM_IB_ENABLE");
  expect_says(said({{"NVSHMEM_IB_ENABLE_IBGDA", "0"}}), "IBRC (its default");
  // A file of the library's own folder.
  auto const file = std::filesystem::path(LoadedLibrary::path_of(nvshmem::functions().start)).parent_path() /
                    "nvshmem_transport_ibdevx.so.3";
  std::ofstream(file) << "";
  expect_says(said({{"NVSHMEM_REMOTE_TRANSPORT", "ibdevx"}}), "its file is beside the library)");
  std::filesystem::remove(file);
}

TEST(Nvshmem, ProcessesPutIntoEachOther) {
  in_processes(ranks, [](int rank, Rendezvous& rendezvous) {
    auto const memory = take(rank, rendezvous, 64 * (rank + 1));
    EXPECT_EQ(memory->bytes(), 64 * ranks) << "the most that any of them wants";
    auto* const words = reinterpret_cast<std::uint64_t*>(memory->here());
    words[0] = words[1] = 0;
    words[2] = 100 + static_cast<std::uint64_t>(rank);
    rendezvous.barrier();
    int const next = (rank + 1) % ranks;
    nvshmem::functions().put(words + 1, words + 2, 8, words, 1, nvshmem::add_to_signal, next, nullptr);
    nvshmem::functions().tell(words, 1, nvshmem::add_to_signal, next, nullptr);
    auto& signal = *reinterpret_cast<std::atomic<std::uint64_t>*>(words);
    while (signal != 2) Backoff::give_core_away();
    EXPECT_EQ(words[1], 100u + static_cast<unsigned>((rank + ranks - 1) % ranks));
    auto* const there = static_cast<std::uint64_t*>(nvshmem::functions().address_of(words, next));
    EXPECT_EQ(there[2], 100u + static_cast<unsigned>(next));
    rendezvous.barrier();
  });
}

TEST(Nvshmem, MemoryThatNobodyUsesIsTakenAgain) {
  in_processes(ranks, [](int rank, Rendezvous& rendezvous) {
    auto first = take(rank, rendezvous, 256);
    auto const second = take(rank, rendezvous, 256);
    EXPECT_NE(first->here(), second->here());
    std::byte* const address = first->here();
    if (rank == 1) first.reset();
    auto const third = take(rank, rendezvous, 128);
    EXPECT_NE(third->here(), address) << "ranks 0 and 2 still use it";
    first.reset();
    auto fourth = take(rank, rendezvous, 512);
    EXPECT_NE(fourth->here(), address) << "it is too small";
    auto fifth = take(rank, rendezvous, 100);
    EXPECT_EQ(fifth->here(), address);
    EXPECT_EQ(fifth->bytes(), 256);
    nvshmem::never_again(*fifth);
    fifth.reset();
    EXPECT_NE(take(rank, rendezvous, 100)->here(), address) << "something may still be put there";
  });
}

// As a benchmark's messages: every exchange needs more than the ones before it, which have ended.
TEST(Nvshmem, MemoryThatIsTooSmallMakesRoom) {
  in_processes(ranks, [](int rank, Rendezvous& rendezvous) {
    auto const first = take(rank, rendezvous, 256);
    std::memset(first->here(), 7, 256);
    for (int k = 1; k < 2 * most_symmetric_blocks; ++k) {
      auto const one = take(rank, rendezvous, 512 * k);
      EXPECT_EQ(one->bytes(), 512 * k) << k;
      EXPECT_NE(one->here(), first->here()) << k;
      rendezvous.barrier();
    }
    EXPECT_EQ(first->here()[0], std::byte{7}) << "what is used was given back";
  });
}

TEST(Nvshmem, MemoryAndBlocksHaveAnEnd) {
  in_processes(ranks, [](int rank, Rendezvous& rendezvous) {
    expect_says(message_of([&] { take(rank, rendezvous, std::int64_t{2} << 20); }, ErrorCode::environment),
                "no memory of 2097152 bytes on every rank");
    std::vector<std::shared_ptr<SymmetricMemory>> all;
    for (int k = 1; k < most_symmetric_blocks; ++k) all.push_back(take(rank, rendezvous, 8));
    expect_says(message_of([&] { take(rank, rendezvous, 8); }, ErrorCode::environment),
                "16 solvers and exchanges have some; let others end first");
    all.pop_back();
    EXPECT_EQ(take(rank, rendezvous, 8)->bytes(), 8);
  });
}

TEST(Nvshmem, OtherRanksThanBeforeAreRefused) {
  in_processes(ranks, [](int rank, Rendezvous& rendezvous) {
    take(rank, rendezvous, 8);
    StreamSetup alone = setup_of(0);
    alone.ranks = 1;
    expect_says(
        message_of([&] { nvshmem::take(alone, {nvshmem::offer(8, 0)}, enter_nothing); }, ErrorCode::usage),
        "with other ranks than before (it meets once a process)");
  });
}

// A call that does not return is given up at the deadline, and so is the library; the process ends as usual.
TEST(Nvshmem, CallsThatHangAreGivenUp) {
  for (char const* call : {"start", "allocate"})
    in_processes(ranks, [&](int rank, Rendezvous& rendezvous) {
      setenv("HOSTLESS_FAKE_NVSHMEM", call, 1);
      auto& mine = rendezvous.offers[static_cast<std::size_t>(rank)];
      mine = nvshmem::offer(8, rank);
      rendezvous.barrier();
      std::vector<SymmetricOffer> const all(rendezvous.offers.begin(), rendezvous.offers.end());
      expect_says(
          message_of([&] { nvshmem::take(setup_of(rank, 0.3), all, enter_nothing); }, ErrorCode::environment),
          "not within the deadline");
      expect_says(message_of([&] { nvshmem::offer(8, rank); }, ErrorCode::environment),
                  "it cannot be used again in this process");
    });
}

TEST(NvshmemAbsent, SaysHowItIsFound) {
  if (dlopen("libnvshmem_host.so.3", RTLD_LAZY) != nullptr) GTEST_SKIP() << "NVSHMEM is installed here";
  std::string const says = message_of([] { nvshmem::offer(8, 0); }, ErrorCode::environment);
  expect_says(says, "GPU transport nvshmem without NVSHMEM (libnvshmem_host.so.3: cannot open");
  expect_says(says, "LD_LIBRARY_PATH");
}

}  // namespace
}  // namespace hostless::gpu
