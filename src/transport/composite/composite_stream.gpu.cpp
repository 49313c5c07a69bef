// Rounds are packed into a buffer of this rank's GPU and unpacked from another one there. Of each round, the one endpoint takes the
// parts for ranks of this node from where they are packed, the other one the rest, and both bring what comes to where it is
// unpacked from. Both are told of parts with the offsets that the whole round has.
#include "transport/composite/composite_stream.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "device/memory.hpp"
#include "transport/composite/composite_leg.hpp"
#include "transport/composite/composite_lists.hpp"
#include "transport/stream/limits.hpp"

namespace hostless::gpu {
namespace {

/// Where things lie: one array, so that an endpoint that lets rounds land is told of one place.
struct Regions {
  Regions(std::vector<StreamRound> const& rounds, std::int64_t arriving_bytes, std::int64_t handed_bytes) {
    std::int64_t most_in = 0, most_out = 0;
    for (StreamRound const& round : rounds) {
      most_in = std::max(most_in, round.in_bytes);
      most_out = std::max(most_out, round.out_bytes);
    }
    lists = rounded_up(most_in);
    handed = lists + arriving_bytes;
    in_bytes = handed + handed_bytes;
    said = rounded_up(most_out);
  }
  static std::int64_t rounded_up(std::int64_t bytes) {
    constexpr std::int64_t line = 128;
    return (bytes + line - 1) / line * line;
  }
  std::int64_t lists = 0, handed = 0, in_bytes = 0;  // of what comes, behind what is unpacked
  std::int64_t said = 0;                             // of what goes out, behind what is packed
};

class CompositeStream final : public StreamEndpoint {
 public:
  CompositeStream(StreamSetup const& setup, StreamTransport const& inside, StreamTransport const& between,
                  BetweenRanks ranks)
      : StreamEndpoint(setup),
        rank_(setup.rank),
        looks_at_gpus_(ranks == BetweenRanks::have_a_gpu_each && !setup.processes),
        rounds_(static_cast<int>(setup.rounds.size())),
        nodes_(composite_nodes({setup.node.begin(), setup.node.end()})),
        here_(nodes_.node[static_cast<std::size_t>(rank_)]),
        lists_(nodes_, setup.speaks, bytes_a_rank),
        by_lists_(nodes_.ranks.size() > 1 && between.facts.actor != GpuTransportFacts::Actor::host),
        regions_(setup.rounds, by_lists_ ? lists_.between(rank_).in_bytes : 0,
                 by_lists_ ? lists_.inside(rank_).in_bytes : 0),
        out_(static_cast<std::size_t>(regions_.said + said_bytes())),
        in_(static_cast<std::size_t>(regions_.in_bytes)),
        everyone_(static_cast<std::size_t>(setup.ranks) * (widest_sum + 1)),
        inside_(inside, setup_inside(setup)) {
    out_.clear();
    in_.clear();
    if (nodes_.ranks.size() > 1 && (!by_lists_ || lists_.member(rank_) >= 0))
      between_ = std::make_unique<CompositeLeg>(between, setup_between(setup));
    if (by_lists_) find_runs();
  }

  std::byte* outgoing(int) override { return out_.data(); }
  std::byte const* incoming(int) override { return in_.data(); }
  void send(StreamQueue& queue, int round, std::byte*) override {
    inside_.send(queue, round, out_.data(), in_.data());
    if (between_) between_->send(queue, round, out_.data(), in_.data());
  }
  void await(StreamQueue& queue, int round, std::byte*) override {
    if (between_) between_->land(queue, round, in_.data());
    inside_.land(queue, round, in_.data());
  }
  bool host_may_wait() const override {
    return inside_.endpoint().host_may_wait() || (between_ && between_->endpoint().host_may_wait());
  }
  void end_exchange(StreamQueue& queue) override {
    each([&](StreamEndpoint& one) { one.end_exchange(queue); });
  }
  double const* gather(StreamQueue& queue, double const* mine, int count) override {
    if (!by_lists_) return (between_ ? between_->endpoint() : inside_.endpoint()).gather(queue, mine, count);
    double const* const near = inside_.endpoint().gather(queue, mine, count);
    int const round = rounds_;
    std::byte* const arrived = in_.data() + regions_.lists;
    if (speaks_for_node_) {
      queue_copy(queue, out_.data() + regions_.said, near,
                 std::int64_t{8} * count * static_cast<std::int64_t>(nodes_.ranks[at(here_)].size()));
      between_->send(queue, round, out_.data() + regions_.said, in_.data());
      between_->land(queue, round, arrived);
    }
    if (nodes_.ranks[at(here_)].size() > 1) {
      inside_.send(queue, round, arrived, nullptr);
      inside_.land(queue, round, in_.data() + regions_.handed);
    }
    for (Run const& run : runs_) {
      std::byte const* const list =
          run.at < 0 ? reinterpret_cast<std::byte const*>(near) : in_.data() + run.at;
      queue_copy(queue, everyone_.data() + run.first * count, list + std::int64_t{8} * run.local * count,
                 std::int64_t{8} * run.ranks * count);
    }
    return everyone_.data();
  }
  bool is_recorded() const override {
    return all_of([](StreamEndpoint const& one) { return one.is_recorded(); });
  }
  bool replays_anywhere() const override {
    return all_of([](StreamEndpoint const& one) { return one.replays_anywhere(); });
  }

  UniqueId unique_id() override { return between_ ? between_->endpoint().unique_id() : UniqueId{}; }
  StreamContact contact() const override {
    StreamContact mine = inside_.endpoint().contact();
    mine.unique_id_inside = inside_.endpoint().unique_id();
    mine.connects = between_ ? 1 : 0;
    return mine;
  }
  void know(std::vector<StreamContact> const& all) override {
    std::vector<StreamContact> near;
    for (int const rank : nodes_.ranks[at(here_)]) near.push_back(all[at(rank)]);
    id_inside_ = near[0].unique_id_inside;
    id_between_ = all[at(by_lists_ ? lists_.members().front() : 0)].unique_id;
    if (by_lists_) require_gpus(all);
    if (std::exchange(knows_, true)) return;  // after a loss memory is where it was
    inside_.endpoint().know(near);
    if (between_) between_->endpoint().know(all);
  }
  void connect(UniqueId const&, std::byte*) override {
    inside_.endpoint().connect(id_inside_, nullptr);
    if (between_) between_->endpoint().connect(id_between_, in_.data());
  }
  bool is_connected() const override {
    return all_of([](StreamEndpoint const& one) { return one.is_connected(); });
  }
  std::vector<StreamBuffers> buffers() const override {
    return between_ ? between_->endpoint().buffers() : std::vector<StreamBuffers>{};
  }
  void forget() override {
    each([](StreamEndpoint& one) { one.forget(); });
  }
  int phase() const override { return between_ ? between_->endpoint().phase() : 0; }
  void reach(StreamQueue& queue, int phase) override {
    if (between_) between_->endpoint().reach(queue, phase);
  }
  // NCCL first: what another rank of this process gives up with it holds the driver until this rank's kernels have left.
  void abort() noexcept override {
    end_waits();
    if (between_) between_->endpoint().abort();
    inside_.endpoint().abort();
  }
  void end_waits() noexcept override {
    each([](StreamEndpoint& one) { one.end_waits(); });
  }
  void settle() noexcept override {
    each([](StreamEndpoint& one) { one.settle(); });
  }
  void expect_late_ranks() override {
    StreamEndpoint::expect_late_ranks();
    each([](StreamEndpoint& one) { one.expect_late_ranks(); });
  }
  Served poll() override { return between_ ? between_->endpoint().poll() : Served::nothing; }

  std::string describe() const override {
    std::string text = inside_.endpoint().describe() + " inside " + std::to_string(nodes_.ranks.size()) +
                       (nodes_.ranks.size() == 1 ? " node" : " nodes");
    if (between_) text += ", " + between_->endpoint().describe() + " between them";
    return text;
  }
  std::int64_t bytes() const override {
    auto all = static_cast<std::int64_t>(out_.bytes() + in_.bytes() + everyone_.bytes());
    each([&](StreamEndpoint& one) { all += one.bytes(); });
    return all;
  }
  bool guards_hold() const override {
    return out_.guards_hold() && in_.guards_hold() && everyone_.guards_hold() &&
           all_of([](StreamEndpoint const& one) { return one.guards_hold(); });
  }

 protected:
  bool waits_on_gpu() const override { return true; }
  bool failed() override {
    return !all_of([](StreamEndpoint& one) { return !one.has_failed(); });
  }

 private:
  static constexpr std::int64_t bytes_a_rank = 8 * (widest_sum + 1);
  static std::size_t at(int k) { return static_cast<std::size_t>(k); }
  template <class Use>
  void each(Use const& use) const {
    use(inside_.endpoint());
    if (between_) use(between_->endpoint());
  }
  template <class Is>
  bool all_of(Is const& is) const {
    return is(inside_.endpoint()) && (!between_ || is(between_->endpoint()));
  }
  std::int64_t said_bytes() const { return by_lists_ ? lists_.between(rank_).out_bytes : 0; }

  /// The parts of a round for ranks of whom `number` tells a number; of others it tells -1.
  template <class Number>
  static StreamRound parts_of(StreamRound const& whole, Number const& number) {
    StreamRound some = whole;
    some.in_place = false;
    for (auto* const parts : {&some.out, &some.in}) {
      std::vector<StreamPart> kept;
      for (StreamPart part : *parts) {
        part.from = nullptr;
        part.rank = number(part.rank);
        if (part.rank >= 0) kept.push_back(part);
      }
      *parts = kept;
    }
    return some;
  }
  static StreamSetup without_nodes(StreamSetup setup) {
    setup.node.clear();
    setup.speaks.clear();
    return setup;
  }
  StreamSetup setup_inside(StreamSetup const& whole) const {
    StreamSetup setup = without_nodes(whole);
    setup.ranks = static_cast<int>(nodes_.ranks[at(here_)].size());
    setup.rank = nodes_.local[at(rank_)];
    for (StreamRound& round : setup.rounds)
      round = parts_of(
          round, [&](int rank) { return nodes_.node[at(rank)] == here_ ? nodes_.local[at(rank)] : -1; });
    if (by_lists_) setup.rounds.push_back(lists_.inside(rank_));
    return setup;
  }
  StreamSetup setup_between(StreamSetup const& whole) {
    StreamSetup setup = without_nodes(whole);
    if (by_lists_) {
      setup.ranks = static_cast<int>(lists_.members().size());
      setup.rank = lists_.member(rank_);
      setup.purpose = whole.purpose + purpose_of_composites;
    }
    for (StreamRound& round : setup.rounds) {
      round = parts_of(round, [&](int rank) {
        return nodes_.node[at(rank)] == here_ ? -1 : by_lists_ ? lists_.member(rank) : rank;
      });
      land_at(round, 0, 0);
    }
    if (by_lists_) {
      StreamRound round = lists_.between(rank_);
      speaks_for_node_ = !round.out.empty();
      land_at(round, regions_.said, regions_.lists);
      setup.rounds.push_back(round);
    }
    return setup;
  }
  /// What goes out is taken from where it is packed, what comes lands where it is unpacked from, where the endpoint can.
  void land_at(StreamRound& round, std::int64_t packed, std::int64_t unpacked) const {
    constexpr std::int64_t number = sizeof(double);
    auto const is_of_numbers = [](StreamPart const& part) {
      return part.first % number == 0 && part.bytes % number == 0;
    };
    round.in_place = std::all_of(round.in.begin(), round.in.end(), is_of_numbers);
    bool const taken = std::all_of(round.out.begin(), round.out.end(), is_of_numbers);
    for (StreamPart& part : round.in) part.lands = unpacked + part.first;
    for (StreamPart& part : round.out) part.from = taken ? out_.data() + packed + part.first : nullptr;
  }

  /// Ranks that follow each other and belong to one node: how a sum of all is put together.
  struct Run {
    int first = 0, local = 0, ranks = 0;
    std::int64_t at = 0;  ///< of its node's list in `in_`; below 0: this node's
  };
  void find_runs() {
    int const count = ranks();
    for (int rank = 0; rank < count; ++rank) {
      int const node = nodes_.node[at(rank)];
      if (rank > 0 && nodes_.node[at(rank - 1)] == node) {
        ++runs_.back().ranks;
        continue;
      }
      runs_.push_back({rank, nodes_.local[at(rank)], 1, node == here_ ? -1 : list_of(node)});
    }
  }
  std::int64_t list_of(int node) const {
    int const agent = lists_.agent(here_, node);
    std::int64_t const begin =
        agent == rank_ ? regions_.lists : regions_.handed + lists_.handed_at(rank_, agent);
    for (NodeList const& list : lists_.arrivals(agent))
      if (list.node == node) return begin + list.first;
    return begin;
  }
  // Each of the ranks that a library of the vendor connects has a GPU; processes are told so by the library.
  void require_gpus(std::vector<StreamContact> const& all) const {
    if (!looks_at_gpus_) return;
    auto const& members = lists_.members();
    for (std::size_t a = 0; a < members.size(); ++a)
      for (std::size_t b = a + 1; b < members.size(); ++b)
        if (all[at(members[a])].device == all[at(members[b])].device)
          throw Error(
              ErrorCode::usage,
              "ranks " + std::to_string(members[a]) + " and " + std::to_string(members[b]) +
                  " on one GPU, both with messages to other nodes (the library between nodes takes one rank "
                  "a GPU). Use a GPU for each, the route three_step with nodes that name the ranks' GPUs "
                  "(those "
                  "of a matrix do), or --gpu-transport peer+host.");
  }

  static constexpr int purpose_of_composites = 100;  // other ranks than those of transports without nodes
  int rank_;
  bool looks_at_gpus_;
  int rounds_;
  CompositeNodes nodes_;
  int here_;
  CompositeLists lists_;
  bool by_lists_, speaks_for_node_ = false, knows_ = false;
  Regions regions_;
  Array<std::byte> out_, in_;
  Array<double> everyone_;
  std::vector<Run> runs_;
  UniqueId id_inside_, id_between_;
  CompositeLeg inside_;
  std::unique_ptr<CompositeLeg> between_;
};

}  // namespace

std::unique_ptr<StreamEndpoint> make_composite_stream(StreamSetup const& setup, StreamTransport const& inside,
                                                      StreamTransport const& between, BetweenRanks ranks) {
  return std::make_unique<CompositeStream>(setup, inside, between, ranks);
}

}  // namespace hostless::gpu
