// Two ranks of a program that uses MPI itself. Rank 1 sends what rank 0 waits for after rank 0 has given up,
// unwound and taken the memory for something else: MPI must not write there. Prints "kept late;" on rank 0.
// What it is late with:
//   exchange  a set-up collective
//   message   a message of a bound endpoint
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "hostless/base/wait.hpp"
#include "hostless/transport/mpi.hpp"

using hostless::Bytes;

namespace {

constexpr auto lateness = std::chrono::seconds(4);
constexpr char const* deadline_scale = "0.004";  // of 600 s in set-up
constexpr int large = 1 << 20;  // matched, then fetched piece by piece: it cannot be cancelled half way
bool is_late = false;

void expect(bool holds, char const* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

// Stands before MPI's own, for the plugin too.
extern "C" int MPI_Isend(void const* from, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm communicator, MPI_Request* request) {
  if (is_late && count > 0) std::this_thread::sleep_for(lateness);
  return PMPI_Isend(from, count, type, to, tag, communicator, request);
}

namespace {

bool ends_with_peer_lost(std::function<void()> const& what) {
  try {
    what();
  } catch (hostless::Error const& e) {
    return e.code() == hostless::ErrorCode::peer_lost;
  }
  return false;
}

// Memory of this size, as whoever gets it next would use it, must stay as it is while MPI goes on.
void watch_memory(std::vector<std::size_t> const& sizes) {
  constexpr auto value = static_cast<unsigned char>(0x5a);
  std::vector<std::vector<unsigned char>> taken;
  for (int k = 0; k < 8; ++k)
    for (std::size_t bytes : sizes) taken.emplace_back(bytes, value);
  MPI_Request arrived = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &arrived);
  auto until = hostless::Deadline::after(240);
  for (int flag = 0, was = 0; !until.passed(); was = flag) {
    MPI_Test(&arrived, &flag, MPI_STATUS_IGNORE);
    if (flag > was) until = hostless::Deadline::after(1.5);  // for what the late rank sends from here on
    int any = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any, MPI_STATUS_IGNORE);
  }
  for (auto const& block : taken)
    expect(std::all_of(block.begin(), block.end(), [](auto c) { return c == value; }),
           "MPI wrote into memory that was given back");
}

void late_in_an_exchange(hostless::Transport& transport, int rank) {
  is_late = rank == 1;
  std::size_t const small = 3000;
  std::vector<Bytes> to(2);
  if (rank == 1) to[0] = Bytes(small, std::byte{1});
  bool const is_lost = ends_with_peer_lost([&] { transport.group().exchange(std::move(to)); });
  expect(is_lost || rank == 1, "the exchange was not given up");  // rank 1 lacks nothing
  watch_memory({small});
}

std::weak_ptr<void> late_with_a_message(hostless::Transport& transport, int rank) {
  auto memory = std::make_shared<std::vector<std::byte>>(large, std::byte{1});
  hostless::Binding binding;
  if (rank == 1) binding.out.push_back({7, 0, memory->data(), memory->size()});
  if (rank == 0) binding.in.push_back({7, 1, memory->data(), memory->size()});
  binding.memory = memory;
  auto endpoint = transport.bind(binding);
  binding = {};
  if (rank == 1) {
    endpoint->send(0, 1);
    std::this_thread::sleep_for(lateness);  // it has begun, and does not go on outside MPI
  } else {
    endpoint->receive(0, 1);
    hostless::wait_for([&] { return endpoint->received(0); }, [] { return false; },
                       hostless::Deadline::after(0.3));
    endpoint->leave();
  }
  endpoint.reset();
  if (rank == 0) std::fill(memory->begin(), memory->end(), std::byte{0});
  std::weak_ptr<void> const watched = memory;
  memory.reset();
  watch_memory({large});
  return watched;
}

void run(std::string const& what) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto const vendor = hostless::mpi_vendor_of_this_process();
  expect(vendor.has_value(), "the loaded MPI is recognised");
  auto const open = [&] {
    return hostless::open_mpi_transport(*vendor, static_cast<int>(MPI_Comm_c2f(MPI_COMM_WORLD)));
  };
  setenv("HOSTLESS_DEADLINE_SCALE", deadline_scale, 1);
  MPI_Barrier(MPI_COMM_WORLD);  // who starts late is not meant
  std::weak_ptr<void> memory;
  {
    auto const transport = open();
    if (what == "exchange") {
      late_in_an_exchange(*transport, rank);
    } else {
      memory = late_with_a_message(*transport, rank);
    }
  }
  unsetenv("HOSTLESS_DEADLINE_SCALE");
  is_late = false;
  MPI_Barrier(MPI_COMM_WORLD);
  open()->group().barrier();  // looks at what was abandoned before
  expect(rank == 1 || memory.expired(), "memory was kept although all of the message is there");
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    run(words[1]);
  } catch (std::exception const& e) {
    std::printf("%s\n", e.what());
    std::fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) std::printf("kept late;\n");
  std::fflush(stdout);
  MPI_Finalize();
  return 0;
}
