#include "bench/neighbor/gpu/gpu_neighbors.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "bench/neighbor/gpu/products.hpp"
#include "hostless/machine/nodes.hpp"

namespace hostless::bench {
namespace {

constexpr double longest_repeat_s = 0.1;
constexpr int fewest_steps = 3;

/// What a rank has to say, of the lowest rank that says something; else empty.
std::string told_by_any(Group& group, std::string const& mine) {
  Bytes bytes(mine.size());
  if (!mine.empty()) std::memcpy(bytes.data(), mine.data(), mine.size());
  for (Bytes const& told : group.all_gather_bytes(bytes))
    if (!told.empty()) return {reinterpret_cast<char const*>(told.data()), told.size()};
  return {};
}

/// A loss ends everything; whatever else goes wrong is the reason why there is no figure.
std::string reason_of(Error const& error) {
  if (error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted) throw error;
  return error.what();
}

int ranks_of_this_machine(Group& group) {
  NodeMap const machines = find_machines(group);
  int const mine = machines.node[static_cast<std::size_t>(group.rank())];
  return static_cast<int>(std::count(machines.node.begin(), machines.node.end(), mine));
}

class Session {
 public:
  Session(Transport& transport, GpuNeighborWays const& with, Neighbors const& mine, Protocol const& protocol,
          std::function<void(GpuNeighborCell const&)> const& tell)
      : group_(transport.group()), what_(with), mine_(mine), protocol_(protocol), tell_(tell) {
    side_.transport = &transport;
    side_.limits = protocol.limits;
    side_.device = device_of_rank(group_, {GpuTransport::peer, with.gpus, with.may_share_gpus});
    side_.sharers = static_cast<int>(group_.max((ranks_of_this_machine(group_) + with.gpus - 1) / with.gpus));
    side_.bench = workbench_for(group_, side_.device);
    auto const begin = Clock::now();
    try {
      grouped_ = grouped_ranks(side_);
    } catch (Error const& error) {
      no_group_ = reason_of(error);
    }
    connected_s_ = group_.max(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;
  ~Session() {  // NCCL's orderly end waits for all ranks, one of which may be gone
    if (grouped_ && std::uncaught_exceptions() > 0) grouped_->abort();
  }

  gpu::Workbench& bench() { return *side_.bench; }

  /// By all ways and triggers.
  void run(std::string const& name, std::size_t bytes, GpuCollective const& moved) {
    std::size_t const first = cells_.size();
    GpuNeighborCell head;
    head.what = name;
    head.bytes = bytes;
    auto const time = [&](std::string const& way, std::vector<Trigger> const& triggers, Make const& make) {
      head.way = way;
      time_way(head, moved, triggers, make);
    };
    time(grouped_way, rival_triggers(), [&] {
      if (!grouped_) throw Error(ErrorCode::environment, no_group_);
      return grouped_call(side_, moved, *grouped_);
    });
    time(library_way, {Trigger::host}, [&] { return library_call(side_, moved, mine_, what_.vendor); });
    for (GpuNeighborWay const& way : what_.ways) {
      time(way.name(), queued(), [&] { return exchange_call(side_, moved, way.transport, way.copy_engine); });
      if (asks_for(Trigger::kernel))
        time(way.name(), {Trigger::kernel}, [&] { return in_kernel(way, moved); });
    }
    compare(first);
    for (std::size_t k = first; k < cells_.size(); ++k) tell_(cells_[k]);
  }
  std::vector<GpuNeighborCell> cells() {
    group_.barrier();  // memory goes when nobody stores any more
    return std::move(cells_);
  }

 private:
  using Make = std::function<std::unique_ptr<GpuCall>()>;

  std::unique_ptr<GpuCall> in_kernel(GpuNeighborWay const& way, GpuCollective const& moved) {
    if (way.transport != GpuTransport::peer || way.copy_engine)
      throw Error(ErrorCode::usage, way.name() +
                                        " inside a kernel (only transport peer can communicate from inside a "
                                        "kernel). Use peer.");
    return kernel_call(side_, moved);
  }
  bool asks_for(Trigger trigger) const {
    return std::find(what_.triggers.begin(), what_.triggers.end(), trigger) != what_.triggers.end();
  }
  std::vector<Trigger> queued() const {
    std::vector<Trigger> some = what_.triggers;
    std::erase(some, Trigger::kernel);
    return some;
  }
  // What is inside a kernel is held against a graph.
  std::vector<Trigger> rival_triggers() const {
    std::vector<Trigger> some = queued();
    if (asks_for(Trigger::kernel) && !asks_for(Trigger::graph)) some.push_back(Trigger::graph);
    return some;
  }

  void time_way(GpuNeighborCell head, GpuCollective const& moved, std::vector<Trigger> const& triggers,
                Make const& make) {
    if (triggers.empty()) return;
    std::unique_ptr<GpuCall> call;
    group_.barrier();
    auto const begin = Clock::now();
    try {
      call = make();
    } catch (Error const& error) {
      head.why = reason_of(error);
    }
    head.set_up_s = group_.max(std::chrono::duration<double>(Clock::now() - begin).count());
    // As other ways connect with the first that is measured.
    if (head.way == grouped_way) head.set_up_s += std::exchange(connected_s_, 0);
    head.why = told_by_any(group_, head.why);
    if (!head.why.empty()) call.reset();  // of those of whom nothing was refused, too
    if (call) head.described = call->describe();
    for (Trigger const trigger : triggers) {
      GpuNeighborCell& cell = cells_.emplace_back(head);
      cell.trigger = trigger;
      if (call) time_cell(cell, moved, *call);
    }
    group_.barrier();  // memory goes when nobody stores any more, and before others wait on the GPU
    call.reset();
    group_.barrier();
  }

  void time_cell(GpuNeighborCell& cell, GpuCollective const& moved, GpuCall& call) {
    try {
      cell.why = call.prepare(cell.trigger);
    } catch (Error const& error) {
      cell.why = reason_of(error);
    }
    cell.why = told_by_any(group_, cell.why);
    if (!cell.why.empty()) return;
    for (int round = 0; round < 2;
         ++round)  // both parities; the second one is of what is loaded and connected
      if (!prove(cell, moved, call)) return;
    Protocol mine = protocol_;
    double const many = std::max(longest_repeat_s / once_s_, double{fewest_steps});
    cell.steps = mine.steps = static_cast<int>(std::min(many, 1.0 * protocol_.steps));
    mine.warm_up = std::min(mine.warm_up, mine.steps);
    ++number_;  // what is timed brings bytes that were not there
    group_.together([&] { moved.fill(*side_.bench, number_); });
    try {
      cell.timing = call.time(cell.trigger, mine);
    } catch (Error const& error) {
      cell.why = reason_of(error);
    }
    cell.why = told_by_any(group_, cell.why);
    if (!cell.why.empty()) return;
    if (is_right(cell, moved) && prove(cell, moved, call)) cell.status = GpuNeighborCell::Status::measured;
  }

  /// One call with new bytes, and its time. False: the cell says what went wrong.
  bool prove(GpuNeighborCell& cell, GpuCollective const& moved, GpuCall& call) {
    ++number_;
    group_.together([&] { moved.fill(*side_.bench, number_); });
    auto const begin = Clock::now();
    std::string refused;
    try {
      call.once(cell.trigger);
    } catch (Error const& error) {
      refused = reason_of(error);
    }
    once_s_ = group_.max(std::chrono::duration<double>(Clock::now() - begin).count());
    cell.why = told_by_any(group_, refused);
    return cell.why.empty() && is_right(cell, moved);
  }
  bool is_right(GpuNeighborCell& cell, GpuCollective const& moved) {
    std::string wrong;
    group_.together([&] { wrong = moved.first_wrong(*side_.bench, number_); });
    cell.why = told_by_any(group_, wrong);
    if (cell.why.empty()) return true;
    cell.status = GpuNeighborCell::Status::wrong;
    return false;
  }

  GpuNeighborCell const* measured(std::size_t first, std::string const& way, Trigger trigger) const {
    for (std::size_t k = first; k < cells_.size(); ++k)
      if (cells_[k].status == GpuNeighborCell::Status::measured && cells_[k].way == way &&
          cells_[k].trigger == trigger)
        return &cells_[k];
    return nullptr;
  }
  void compare(std::size_t first) {
    auto const over = [&](GpuNeighborCell const* rival, GpuNeighborCell const& cell,
                          std::optional<double>& ratio, std::optional<double>& with_set_up) {
      if (rival == nullptr) return;
      double const theirs = rival->timing.median(), ours = cell.timing.median();
      ratio = theirs / ours;
      with_set_up = (rival->set_up_s + protocol_.steps * theirs) / (cell.set_up_s + protocol_.steps * ours);
    };
    for (std::size_t k = first; k < cells_.size(); ++k) {
      GpuNeighborCell& cell = cells_[k];
      if (cell.status != GpuNeighborCell::Status::measured) continue;
      Trigger const theirs = cell.trigger == Trigger::kernel ? Trigger::graph : cell.trigger;
      over(measured(first, grouped_way, theirs), cell, cell.nccl_over, cell.nccl_over_with_set_up);
      over(measured(first, library_way, Trigger::host), cell, cell.library_over,
           cell.library_over_with_set_up);
    }
  }

  Group& group_;
  GpuNeighborWays const& what_;
  Neighbors const& mine_;
  Protocol protocol_;
  std::function<void(GpuNeighborCell const&)> const& tell_;
  GpuSide side_;
  std::unique_ptr<gpu::GroupedSends> grouped_;
  std::string no_group_;
  double connected_s_ = 0;  // what that took
  std::uint64_t number_ = 0;
  double once_s_ = 0;  // of the call that was proved last, of the slowest rank
  std::vector<GpuNeighborCell> cells_;
};

// Once for all sizes: a GPU that gives memory back waits for all that runs there, of other ranks too.
BlockMemory memory_for(Group& group, GpuNeighbors const& what, gpu::Workbench& bench) {
  std::size_t send = 1, receive = 1;
  int const rank = group.rank();
  for (Collective const collective : what.collectives)
    for (std::size_t const bytes : what.bytes) {
      BlockSizes const sizes{collective, bytes, what.seed};
      std::size_t sent = 0, received = 0;
      for (int const target : what.mine.destinations) sent += sizes.of(rank, target);
      for (int const source : what.mine.sources) received += sizes.of(source, rank);
      send = std::max(send, collective == Collective::allgather ? bytes : sent);
      receive = std::max(receive, received);
    }
  BlockMemory memory;
  group.together([&] { memory = {bench.take(send), bench.take(receive)}; });
  return memory;
}

}  // namespace

char const* name(GpuNeighborCell::Status status) {
  char const* const names[] = {"measured", "absent", "wrong"};
  return names[static_cast<int>(status)];
}

std::vector<GpuNeighborCell> gpu_neighbors(Transport& transport, GpuNeighbors const& what,
                                           Protocol const& protocol,
                                           std::function<void(GpuNeighborCell const&)> const& tell) {
  Group& group = transport.group();
  group.together([&] {
    if (std::find(what.bytes.begin(), what.bytes.end(), std::size_t{0}) != what.bytes.end())
      throw Error(ErrorCode::usage, "a block of 0 bytes (nothing would move). Use 1 or more.");
  });
  if (group.sum(static_cast<std::int64_t>(what.mine.destinations.size())) == 0)
    throw Error(
        ErrorCode::usage,
        "a graph without edges between these ranks (nothing would move). Use another --seed or a higher "
        "--density.");
  Session session(transport, what, what.mine, protocol, tell);
  BlockMemory const memory = memory_for(group, what, session.bench());
  for (Collective const collective : what.collectives)
    for (std::size_t const bytes : what.bytes)
      session.run(name(collective), bytes,
                  GpuBlocks({collective, bytes, what.seed}, what.mine, group.rank(), memory));
  return session.cells();
}

std::vector<GpuNeighborCell> gpu_row_product(Transport& transport, GpuRowProduct const& what,
                                             Protocol const& protocol,
                                             std::function<void(GpuNeighborCell const&)> const& tell) {
  Group& group = transport.group();
  group.together([&] { check_product(what.product, group.size()); });
  Session session(transport, what, what.product.mine, protocol, tell);
  for (bool const needed_rows : {false, true}) {
    if (needed_rows ? !what.by_rows : !what.by_blocks) continue;
    std::unique_ptr<GpuProduct> product;
    group.together([&] {
      product = std::make_unique<GpuProduct>(what.product, group.size(), group.rank(), needed_rows,
                                             session.bench());
    });
    auto const bytes = static_cast<std::size_t>(group.sum(product->gathered_bytes()));
    session.run(needed_rows ? "rows" : "blocks", bytes, *product);
  }
  return session.cells();
}

}  // namespace hostless::bench
