// The ranks of one MPI communicator, and the set-up collectives over them: nonblocking calls that are polled,
// because MPI's own waits have no deadline.
#include "transport/mpi/mpi_world.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "transport/setup_wait.hpp"

namespace hostless::mpi {
namespace {

bool finalised() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
}

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

World::World(MPI_Comm parent, int level) : thread_level(level) {
  check(MPI_Comm_rank(parent, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(parent, &size), "MPI_Comm_size");
  main = duplicate(parent);
  check(MPI_Comm_set_errhandler(main, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  end_ = duplicate(main);
  crowded = count_neighbours();
}

bool World::count_neighbours() {
  char node[MPI_MAX_PROCESSOR_NAME] = "";
  int length = 0;
  check(MPI_Get_processor_name(node, &length), "MPI_Get_processor_name");
  std::uint64_t const mine = std::hash<std::string_view>{}({node, static_cast<std::size_t>(length)});
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, main, &request),
        "MPI_Iallgather");
  wait(request, "MPI_Iallgather");
  // The machine's cores, not those this rank is bound to: bound ranks do not share theirs.
  return std::count(all.begin(), all.end(), mine) > static_cast<long>(std::thread::hardware_concurrency());
}

bool World::usable() const { return !broken && !finalised(); }

void World::require() {
  if (!usable()) {
    throw Error(ErrorCode::peer_lost,
                "the MPI transport was given up after an earlier failure (its ranks are no longer in step). "
                "Start the program again.");
  }
}

void World::check(int code, char const* doing) {
  if (code == MPI_SUCCESS) return;
  std::string const text = text_of(code);
  break_off();
  throw Error(ErrorCode::peer_lost,
              std::string(doing) + " failed with '" + text +
                  "' (another rank or the network is gone). Look for the first message of another rank.");
}

void World::wait_all(std::vector<MPI_Request>& requests, char const* doing) {
  auto const ready = [&] {
    int flag = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE), doing);
    return flag != 0;
  };
  auto const waited = wait_for(
      ready, [&] { return poisoned(main); }, setup_deadline(limits_));
  if (waited == Waited::done) return;
  break_off();
  throw Error(ErrorCode::peer_lost, waited == Waited::stopped ? left_in_setup : late_in_setup);
}

void World::wait(MPI_Request& request, char const* doing) {
  std::vector<MPI_Request> one(1, request);
  wait_all(one, doing);
  request = MPI_REQUEST_NULL;
}

bool World::poisoned(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) return false;
  int flag = 0;
  int const code = MPI_Iprobe(MPI_ANY_SOURCE, tag_poison, communicator, &flag, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS || flag != 0;
}

void World::poison(MPI_Comm communicator) noexcept {
  if (!usable() || communicator == MPI_COMM_NULL) return;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(size), MPI_REQUEST_NULL);
  for (int r = 0; r < size; ++r) {
    if (r == rank) continue;
    MPI_Isend(nullptr, 0, MPI_BYTE, r, tag_poison, communicator, &requests[static_cast<std::size_t>(r)]);
  }
  // Over shared memory they are out at once; over a network a connection may have to be made first, and this
  // rank may never call MPI again to help it along.
  constexpr double most_s = 0.2;
  auto const ready = [&] {
    int flag = 0;
    int const code = MPI_Testall(size, requests.data(), &flag, MPI_STATUSES_IGNORE);
    return code != MPI_SUCCESS || flag != 0;
  };
  wait_for(
      ready, [] { return false; }, Deadline::after(most_s));
  for (MPI_Request& request : requests) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

void World::break_off() noexcept {
  poison(main);
  broken = true;
}

bool World::end_in_order(double seconds) noexcept {
  if (!usable()) return false;
  MPI_Request request = MPI_REQUEST_NULL;
  int flag = 0;
  bool failed = MPI_Ibarrier(end_, &request) != MPI_SUCCESS;
  auto const ready = [&] {
    failed = failed || MPI_Test(&request, &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    return failed || flag != 0;
  };
  wait_for(
      ready, [&] { return poisoned(main); }, Deadline::after(seconds));
  if (failed || flag == 0) {
    break_off();
    return false;
  }
  for (Slot& slot : slots) {
    if (!slot.used) MPI_Comm_free(&slot.communicator);
  }
  MPI_Comm_free(&main);
  MPI_Comm_free(&end_);
  return true;
}

MPI_Comm World::duplicate(MPI_Comm of) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Comm_idup(of, &copy, &request), "MPI_Comm_idup");
  wait(request, "MPI_Comm_idup");
  return copy;
}

namespace {

class MpiGroup final : public Group {
 public:
  explicit MpiGroup(std::shared_ptr<World> world) : world_(std::move(world)) {}
  int rank() const override { return world_->rank; }
  int size() const override { return world_->size; }

  void barrier() override {
    world_->require();
    MPI_Request request = MPI_REQUEST_NULL;
    world_->check(MPI_Ibarrier(world_->main, &request), "MPI_Ibarrier");
    world_->wait(request, "MPI_Ibarrier");
  }

  void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) override {
    world_->require();
    check_room(mine.size(), all.size());
    // Blocks above the piece size go round by round, because MPI counts in int.
    for (std::size_t at = 0; at < mine.size(); at += piece_bytes) {
      gather_piece(mine.subspan(at, std::min(piece_bytes, mine.size() - at)), all, at, mine.size());
    }
    if (mine.empty()) barrier();
  }

  std::vector<Bytes> exchange(std::vector<Bytes> const& to) override {
    world_->require();
    auto const ranks = static_cast<std::size_t>(size());
    check_buffers(to.size());
    std::vector<std::uint64_t> out(ranks), in(ranks);
    for (std::size_t r = 0; r < ranks; ++r) out[r] = to[r].size();
    MPI_Request sizes = MPI_REQUEST_NULL;
    world_->check(
        MPI_Ialltoall(out.data(), 1, MPI_UINT64_T, in.data(), 1, MPI_UINT64_T, world_->main, &sizes),
        "MPI_Ialltoall");
    world_->wait(sizes, "MPI_Ialltoall");
    std::vector<Bytes> from(ranks);
    for (std::size_t r = 0; r < ranks; ++r) from[r].resize(in[r]);
    std::vector<MPI_Request> requests;
    auto const me = static_cast<std::size_t>(rank());
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == me) continue;
      pieces(from[r].size(), [&](std::size_t at, int bytes) {
        requests.emplace_back();
        world_->check(MPI_Irecv(from[r].data() + at, bytes, MPI_BYTE, static_cast<int>(r), tag_exchange,
                                world_->main, &requests.back()),
                      "MPI_Irecv");
      });
      pieces(to[r].size(), [&](std::size_t at, int bytes) {
        requests.emplace_back();
        world_->check(MPI_Isend(to[r].data() + at, bytes, MPI_BYTE, static_cast<int>(r), tag_exchange,
                                world_->main, &requests.back()),
                      "MPI_Isend");
      });
    }
    from[me] = to[me];
    world_->wait_all(requests, "the exchange");
    return from;
  }

 private:
  // Far below what an int counts, so that the tests see several pieces.
  static constexpr std::size_t piece_bytes = std::size_t{1} << 22;

  template <class Body>
  static void pieces(std::size_t bytes, Body const& body) {
    for (std::size_t at = 0; at < bytes; at += piece_bytes) {
      body(at, static_cast<int>(std::min(piece_bytes, bytes - at)));
    }
  }

  void gather_piece(std::span<std::byte const> mine, std::span<std::byte> all, std::size_t at,
                    std::size_t block) {
    auto const ranks = static_cast<std::size_t>(size());
    std::vector<std::byte> got(mine.size() * ranks);
    auto const bytes = static_cast<int>(mine.size());
    MPI_Request request = MPI_REQUEST_NULL;
    world_->check(
        MPI_Iallgather(mine.data(), bytes, MPI_BYTE, got.data(), bytes, MPI_BYTE, world_->main, &request),
        "MPI_Iallgather");
    world_->wait(request, "MPI_Iallgather");
    for (std::size_t r = 0; r < ranks; ++r) {
      std::memcpy(all.data() + r * block + at, got.data() + r * mine.size(), mine.size());
    }
  }

  std::shared_ptr<World> world_;
};

}  // namespace

std::unique_ptr<Group> make_group(std::shared_ptr<World> world) {
  return std::make_unique<MpiGroup>(std::move(world));
}

}  // namespace hostless::mpi
