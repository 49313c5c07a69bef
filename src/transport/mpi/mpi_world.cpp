// The ranks of one MPI communicator, and the set-up collectives over them: nonblocking calls that are polled,
// because MPI's own waits have no deadline.
#include "transport/mpi/mpi_world.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include "transport/memory_in_setup.hpp"
#include "transport/setup_wait.hpp"

namespace hostless::mpi {
namespace {

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

World::World(MPI_Comm parent, int level) : thread_level(level) {
  Abandoned::collect();
  int has_two_groups = 0;
  check(MPI_Comm_test_inter(parent, &has_two_groups), "MPI_Comm_test_inter");
  if (has_two_groups != 0)
    throw Error(ErrorCode::usage,
                "an intercommunicator (its collectives gather of the other group alone). Give what "
                "MPI_Intercomm_merge makes of it.");
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
  auto const hashes = std::make_shared<std::vector<std::uint64_t>>(static_cast<std::size_t>(size) + 1);
  std::uint64_t& mine = hashes->back();
  mine = std::hash<std::string_view>{}({node, static_cast<std::size_t>(length)});
  Pending pending(hashes);
  check(MPI_Iallgather(&mine, 1, MPI_UINT64_T, hashes->data(), 1, MPI_UINT64_T, main, pending.add()),
        "MPI_Iallgather");
  wait_all(pending, "MPI_Iallgather");
  // The machine's cores, not those this rank is bound to: bound ranks do not share theirs.
  return std::count(hashes->begin(), hashes->end() - 1, mine) >
         static_cast<long>(std::thread::hardware_concurrency());
}

bool World::finalised() {
  int flag = 0;
  MPI_Finalized(&flag);
  return flag != 0;
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

void World::wait_all(Pending& pending, char const* doing) {
  auto& requests = pending.requests;
  auto const ready = [&] {
    int flag = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE), doing);
    return flag != 0;
  };
  auto const waited = wait_for(
      ready, [&] { return poisoned(main); }, setup_deadline(limits_));
  if (waited == Waited::done) return requests.clear();
  break_off();
  throw Error(ErrorCode::peer_lost, waited == Waited::stopped ? left_in_setup : late_in_setup);
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
  Abandoned::keep(std::move(requests), nullptr);
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
  free_communicators();
  return true;
}

void World::free_communicators() noexcept {
  for (Slot& slot : slots) {
    if (!slot.used) MPI_Comm_free(&slot.communicator);
  }
  MPI_Comm_free(&main);
  MPI_Comm_free(&end_);
}

MPI_Comm World::duplicate(MPI_Comm of) {
  auto const copy = std::make_shared<MPI_Comm>(MPI_COMM_NULL);
  Pending pending(copy);
  check(MPI_Comm_idup(of, copy.get(), pending.add()), "MPI_Comm_idup");
  wait_all(pending, "MPI_Comm_idup");
  return *copy;
}

namespace {

class MpiGroup final : public Group {
 public:
  explicit MpiGroup(std::shared_ptr<World> world) : world_(std::move(world)) {}
  int rank() const override { return world_->rank; }
  int size() const override { return world_->size; }

  void barrier() override {
    world_->require();
    Pending pending(nullptr);
    world_->check(MPI_Ibarrier(world_->main, pending.add()), "MPI_Ibarrier");
    world_->wait_all(pending, "MPI_Ibarrier");
  }

  void all_gather_blocks(std::span<std::byte const> mine, std::span<std::byte> all) override {
    world_->require();
    check_room(mine.size(), all.size());
    // Blocks above the piece size go round by round, because MPI counts in int.
    for (std::size_t at = 0; at < mine.size(); at += piece_bytes) {
      auto const piece = mine.subspan(at, std::min(piece_bytes, mine.size() - at));
      in_step([&] { gather_piece(piece, all, at, mine.size()); });
    }
    if (mine.empty()) barrier();
  }

  std::vector<Bytes> exchange(std::vector<Bytes> to) override {
    world_->require();
    check_buffers(to.size());
    return in_step([&] { return trade(std::move(to)); });
  }

 private:
  // Far below what an int counts, so that the tests see several pieces.
  static constexpr std::size_t piece_bytes = std::size_t{1} << 22;

  struct Exchanged {
    std::vector<Bytes> to, from;
    std::vector<std::uint64_t> out, in;  // their sizes
  };

  template <class Collective>
  std::invoke_result_t<Collective> in_step(Collective const& collective) {
    return within_memory(collective, [&] { world_->break_off(); });
  }

  std::vector<Bytes> trade(std::vector<Bytes> to) {
    auto const bytes = std::make_shared<Exchanged>();
    bytes->to = std::move(to);
    exchange_sizes(bytes);
    auto const me = static_cast<std::size_t>(rank());
    Pending pending(bytes);
    for (std::size_t r = 0; r < bytes->to.size(); ++r) {
      if (r == me) continue;
      Bytes& from = bytes->from[r];
      pieces(from.size(), [&](std::size_t at, int count) {
        world_->check(MPI_Irecv(from.data() + at, count, MPI_BYTE, static_cast<int>(r), tag_exchange,
                                world_->main, pending.add()),
                      "MPI_Irecv");
      });
      Bytes const& out = bytes->to[r];
      pieces(out.size(), [&](std::size_t at, int count) {
        world_->check(MPI_Isend(out.data() + at, count, MPI_BYTE, static_cast<int>(r), tag_exchange,
                                world_->main, pending.add()),
                      "MPI_Isend");
      });
    }
    world_->wait_all(pending, "the exchange");
    bytes->from[me] = std::move(bytes->to[me]);
    return std::move(bytes->from);
  }

  void exchange_sizes(std::shared_ptr<Exchanged> const& bytes) {
    std::size_t const ranks = bytes->to.size();
    bytes->from.resize(ranks);
    bytes->in.resize(ranks);
    for (Bytes const& one : bytes->to) bytes->out.push_back(one.size());
    Pending pending(bytes);
    world_->check(MPI_Ialltoall(bytes->out.data(), 1, MPI_UINT64_T, bytes->in.data(), 1, MPI_UINT64_T,
                                world_->main, pending.add()),
                  "MPI_Ialltoall");
    world_->wait_all(pending, "MPI_Ialltoall");
    auto const me = static_cast<std::size_t>(rank());
    for (std::size_t r = 0; r < ranks; ++r)
      if (r != me) bytes->from[r].resize(bytes->in[r]);
  }

  template <class Body>
  static void pieces(std::size_t bytes, Body const& body) {
    for (std::size_t at = 0; at < bytes; at += piece_bytes) {
      body(at, static_cast<int>(std::min(piece_bytes, bytes - at)));
    }
  }

  void gather_piece(std::span<std::byte const> mine, std::span<std::byte> all, std::size_t at,
                    std::size_t block) {
    auto const ranks = static_cast<std::size_t>(size());
    auto const piece = std::make_shared<std::vector<std::byte>>(mine.size() * (ranks + 1));
    std::byte* const own = piece->data() + mine.size() * ranks;
    std::copy(mine.begin(), mine.end(), own);
    auto const bytes = static_cast<int>(mine.size());
    Pending pending(piece);
    world_->check(
        MPI_Iallgather(own, bytes, MPI_BYTE, piece->data(), bytes, MPI_BYTE, world_->main, pending.add()),
        "MPI_Iallgather");
    world_->wait_all(pending, "MPI_Iallgather");
    for (std::size_t r = 0; r < ranks; ++r) {
      std::memcpy(all.data() + r * block + at, piece->data() + r * mine.size(), mine.size());
    }
  }

  std::shared_ptr<World> world_;
};

}  // namespace

std::unique_ptr<Group> make_group(std::shared_ptr<World> world) {
  return std::make_unique<MpiGroup>(std::move(world));
}

}  // namespace hostless::mpi
