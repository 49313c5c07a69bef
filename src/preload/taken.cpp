// How a set of sizes becomes an exchange, and what an exchange does for a call.
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "hostless/machine/nodes.hpp"
#include "preload/agree.hpp"
#include "preload/communicator.hpp"

namespace hostless::preload {
namespace {

std::size_t count_of_neighbours(std::vector<int> const& list) {
  return static_cast<std::size_t>(list.size()) -
         static_cast<std::size_t>(std::count(list.begin(), list.end(), MPI_PROC_NULL));
}

std::vector<Rank> without_null(std::vector<int> list) {
  list.erase(std::remove(list.begin(), list.end(), MPI_PROC_NULL), list.end());
  return list;
}

std::vector<std::int64_t> without_null(std::vector<int> const& list, std::vector<std::int64_t> const& bytes) {
  std::vector<std::int64_t> kept;
  for (std::size_t k = 0; k < list.size(); ++k)
    if (list[k] != MPI_PROC_NULL) kept.push_back(bytes[k]);
  return kept;
}

std::int64_t sum(std::vector<std::int64_t> const& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

}  // namespace

/// Collective. What comes of it is the same on all ranks.
Taken* Communicator::add(MPI_Comm comm, Sizes const& sizes) {
  taken_.push_back(std::make_unique<Taken>());
  Taken& made = *taken_.back();
  made.sizes = sizes;
  auto const begin = Clock::now();
  make(comm, made);
  report().set_up(std::chrono::duration<double>(Clock::now() - begin).count());
  return &made;
}

void Communicator::make(MPI_Comm comm, Taken& made) {
  std::uint64_t bits = 0;
  constexpr std::uint64_t is_made = 1, is_gain = 2, in_step = 4;
  try {
    if (!transport_) transport_ = std::make_unique<OwnTransport>(comm);
    Settings const& wanted = settings();
    if (!graph_) {
      nodes_ = find_nodes(transport_->group(), wanted.ranks_per_node);
      graph_.emplace(*transport_, without_null(neighbours_.sources), without_null(neighbours_.destinations),
                     NeighborhoodOptions{wanted.route, wanted.ranks_per_node});
    }
    bits = in_step;
    if (!wanted.automatic || gains(made.sizes)) {
      bits |= is_gain;
      plan(made);
      bits |= is_made;
    }
  } catch (Error const& error) {
    report().failed(error.what());
    if (error.code() != ErrorCode::usage) bits = 0;
  } catch (std::exception const& error) {
    report().failed(error.what());
    bits = 0;
  }
  std::uint64_t const all = agree(comm, bits).bits;
  if ((all & is_made) != 0) return;
  made.exchange.reset();
  made.memory.reset();
  if ((all & in_step) == 0)
    never_ = made.never = Reason::set_up_failed;
  else
    made.never = (all & is_gain) != 0 ? Reason::unequal : Reason::no_gain;
}

/// Blocks lie one behind the other in memory of ours: those of the program are elsewhere on each call.
void Communicator::plan(Taken& made) {
  bool const gather = gathers(made.sizes.operation), equal = is_equal(made.sizes.operation);
  auto const blocks = [&](std::vector<int> const& list, std::vector<std::int64_t> const& bytes, bool one) {
    if (one) return std::vector<std::int64_t>(count_of_neighbours(list), bytes[0]);
    return without_null(list, bytes);
  };
  auto const out = blocks(neighbours_.destinations, made.sizes.sent, gather || equal);
  auto const in = blocks(neighbours_.sources, made.sizes.received, equal);
  transport_->group().together([&] {
    made.memory = std::make_shared<Taken::Memory>();
    made.memory->sent.resize(static_cast<std::size_t>(gather ? made.sizes.sent[0] : sum(out)));
    made.memory->received.resize(static_cast<std::size_t>(sum(in)));
  });
  made.bytes = sum(out);
  constexpr std::size_t byte = 1;
  ReceivedBlocks const received{made.memory->received, in, {}, byte};
  NeighborCollective const planned = gather ? graph_->allgatherv(made.memory->sent, received)
                                            : graph_->alltoallv({made.memory->sent, out, {}, byte}, received);
  // As long as MPI itself would wait: a rank may come when it likes, and a launcher ends those whose peers die.
  constexpr double as_long_as_mpi_s = 1e8;
  ExchangeOptions options;
  options.limits = {as_long_as_mpi_s, as_long_as_mpi_s};
  options.owner = made.memory;
  made.exchange = std::make_unique<Exchange>(*transport_, planned.plan, std::vector{planned.field}, options);
  made.route = name(planned.plan.route);
}

/// Whether so few blocks cross borders of nodes that it repays: half of them, of `allgather`; half the
/// messages, of others, whose bytes are the same by any route, as long as they are short.
bool Communicator::gains(Sizes const& sizes) {
  constexpr std::int64_t short_bytes = 8192;
  Group& group = transport_->group();
  auto const node = [&](Rank rank) { return nodes_->node[static_cast<std::size_t>(rank)]; };
  int const here = node(group.rank());
  std::int64_t directly = 0;
  std::set<int> there;
  for (Rank const rank : without_null(neighbours_.destinations)) {
    if (node(rank) == here) continue;
    ++directly;
    there.insert(node(rank));
  }
  std::int64_t const by_ranks = group.sum(directly),
                     by_nodes = group.sum(static_cast<std::int64_t>(there.size()));
  bool const is_long = group.any(sizes.longest() > short_bytes);
  if (gathers(sizes.operation)) return by_ranks > 0 && 2 * by_nodes <= by_ranks;
  std::set<std::pair<int, int>> pairs;
  std::vector<int> const mine(there.begin(), there.end());
  Bytes bytes(mine.size() * sizeof(int));
  if (!bytes.empty()) std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<Bytes> const all = group.all_gather_bytes(bytes);
  for (std::size_t r = 0; r < all.size(); ++r)
    for (std::size_t k = 0; k < all[r].size() / sizeof(int); ++k) {
      int target = 0;
      std::memcpy(&target, all[r].data() + k * sizeof(int), sizeof target);
      pairs.emplace(nodes_->node[r], target);
    }
  return !is_long && by_ranks > 0 && 2 * static_cast<std::int64_t>(pairs.size()) <= by_ranks;
}

int Communicator::move(Call const& call, Items const& send, Items const& receive, Taken& taken) {
  int code = MPI_SUCCESS;
  auto const note = [&](int said) {
    if (code == MPI_SUCCESS) code = said;
  };
  bool const gather = gathers(call.operation);
  // who sends to nobody may pass a block that is not there
  std::size_t const gathered = without_null(neighbours_.destinations).empty() ? 0 : 1;
  std::size_t const blocks = gather ? gathered : neighbours_.destinations.size();
  std::size_t first = 0;
  for (std::size_t k = 0; k < blocks; ++k) {
    if (!gather && neighbours_.destinations[k] == MPI_PROC_NULL) continue;
    note(pack(call.send, send, k, taken.memory->sent.data() + first, call.comm));
    first += static_cast<std::size_t>(call.send.count(k) * send.bytes);
  }
  taken.exchange->start();
  if (!taken.exchange->wait())
    return fail(call.comm,
                std::string(call.name) + ": a rank is lost (its block does not come). See its message.");
  first = 0;
  for (std::size_t k = 0; k < neighbours_.sources.size(); ++k) {
    if (neighbours_.sources[k] == MPI_PROC_NULL) continue;
    note(unpack(call.receive, receive, k, taken.memory->received.data() + first, call.comm));
    first += static_cast<std::size_t>(call.receive.count(k) * receive.bytes);
  }
  return code;
}

}  // namespace hostless::preload
