// Two endpoints as one. Data messages are handed to the one of their reach; a gather is a walk of three steps:
// inside each node, one list of contributions for each ordered pair of nodes, and from its receiver to the
// others of that node.
#include "transport/composite/composite_endpoint.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "transport/binding.hpp"

namespace hostless {
namespace {

/// A message of one of the two endpoints, by its index there.
struct Part {
  bool inside = false;
  int index = 0;
};

/// What the ranks of one node contributed to a gather: [ranks of the node * width] doubles, then nothing.
struct List {
  std::vector<double> values;
  Part arrival;               ///< not of the own node
  std::vector<int> hand_ons;  ///< messages inside, to the other ranks of this node
  bool here = false;
};

/// The memory of lists, and that of the caller's messages, as long as a library may use either.
struct SharedLists {
  std::shared_ptr<void> of_caller;
  std::vector<List> lists;  ///< [nodes]
};

struct Parts {
  Binding inside, between;
  std::vector<Part> out, in;   ///< by the caller's binding
  std::vector<int> to_agents;  ///< messages between, with the list of this node
  std::shared_ptr<SharedLists> memory = std::make_shared<SharedLists>();
};

/// Between two ranks, the list of node k has the number k; the caller's messages follow.
class Split {
 public:
  Split(CompositeNodes const& nodes, int rank, Binding const& binding)
      : nodes_(nodes), rank_(rank), here_(nodes.node[static_cast<std::size_t>(rank)]) {
    parts_.inside.gather_width = parts_.between.gather_width = binding.gather_width;
    parts_.memory->of_caller = binding.memory;
    parts_.inside.memory = parts_.between.memory = parts_.memory;
    add_messages(binding);
    add_lists(static_cast<std::size_t>(binding.gather_width));
  }
  Parts take() { return std::move(parts_); }

 private:
  int count() const { return static_cast<int>(nodes_.ranks.size()); }
  std::vector<int> const& ranks_of(int node) const { return nodes_.ranks[static_cast<std::size_t>(node)]; }
  bool is_inside(int rank) const { return nodes_.node[static_cast<std::size_t>(rank)] == here_; }
  int name(int rank) const { return is_inside(rank) ? nodes_.local[static_cast<std::size_t>(rank)] : rank; }
  Binding& binding_of(int rank) { return is_inside(rank) ? parts_.inside : parts_.between; }

  Part send(int id, int target, std::byte const* from, std::size_t bytes, bool credit = false) {
    auto& out = binding_of(target).out;
    out.push_back({id, name(target), from, bytes, credit});
    return {is_inside(target), static_cast<int>(out.size()) - 1};
  }
  Part receive(int id, int source, std::byte* to, std::size_t bytes, bool credit = false) {
    auto& in = binding_of(source).in;
    in.push_back({id, name(source), to, bytes, credit});
    return {is_inside(source), static_cast<int>(in.size()) - 1};
  }

  void add_messages(Binding const& binding) {
    auto const out = numbers_by_peer(binding.out, count()), in = numbers_by_peer(binding.in, count());
    for (std::size_t k = 0; k < out.size(); ++k) {
      Outgoing const& o = binding.out[k];
      parts_.out.push_back(send(out[k], o.target, o.from, o.bytes, o.credit));
    }
    for (std::size_t k = 0; k < in.size(); ++k) {
      Incoming const& i = binding.in[k];
      parts_.in.push_back(receive(in[k], i.source, i.to, i.bytes, i.credit));
    }
  }

  void add_lists(std::size_t width) {
    auto& lists = parts_.memory->lists;
    lists.resize(nodes_.ranks.size());
    for (int node = 0; node < count(); ++node)
      lists[static_cast<std::size_t>(node)].values.resize(ranks_of(node).size() * width);
    for (int node = 0; node < count(); ++node) {
      if (node == here_) continue;
      if (nodes_.agent(here_, node) == rank_) {
        auto const& mine = lists[static_cast<std::size_t>(here_)].values;
        parts_.to_agents.push_back(send(here_, nodes_.agent(node, here_),
                                        reinterpret_cast<std::byte const*>(mine.data()),
                                        mine.size() * sizeof(double))
                                       .index);
      }
      add_arrival(node, lists[static_cast<std::size_t>(node)]);
    }
  }

  void add_arrival(int node, List& list) {
    auto* const bytes = reinterpret_cast<std::byte*>(list.values.data());
    std::size_t const size = list.values.size() * sizeof(double);
    int const receiver = nodes_.agent(here_, node);
    int const source = receiver == rank_ ? nodes_.agent(node, here_) : receiver;
    list.arrival = receive(node, source, bytes, size);
    if (receiver != rank_) return;
    for (int const other : ranks_of(here_))
      if (other != rank_) list.hand_ons.push_back(send(node, other, bytes, size).index);
  }

  CompositeNodes const& nodes_;
  int rank_, here_;
  Parts parts_;
};

class CompositeEndpoint final : public Endpoint {
 public:
  CompositeEndpoint(CompositeNodes const& nodes, int rank, int width, Parts parts,
                    std::unique_ptr<Endpoint> inside, std::unique_ptr<Endpoint> between)
      : nodes_(nodes),
        here_(static_cast<std::size_t>(nodes.node[static_cast<std::size_t>(rank)])),
        most_(width),
        parts_(std::move(parts)),
        inside_(std::move(inside)),
        between_(std::move(between)) {}

  void send(int index, std::uint32_t epoch) override {
    Part const part = parts_.out[static_cast<std::size_t>(index)];
    of(part).send(part.index, epoch);
  }
  void receive(int index, std::uint32_t epoch) override {
    Part const part = parts_.in[static_cast<std::size_t>(index)];
    of(part).receive(part.index, epoch);
  }
  bool sent(int index) override {
    Part const part = parts_.out[static_cast<std::size_t>(index)];
    return of(part).sent(part.index) || in_vain();
  }
  bool received(int index) override {
    Part const part = parts_.in[static_cast<std::size_t>(index)];
    return of(part).received(part.index) || in_vain();
  }

  void gather(std::span<double const> mine) override {
    check_sum(step_ != Step::none || reducing_, mine.size(), most_);
    width_ = mine.size();
    ++sum_;
    for (std::size_t n = 0; n < lists().size(); ++n) {
      List& list = lists()[n];
      list.here = n == here_;
      if (!list.here) of(list.arrival).receive(list.arrival.index, sum_);
    }
    inside_->gather(mine);
    step_ = Step::inside;
  }
  bool gathered(std::span<double> all) override {
    advance();
    if (step_ != Step::none) return false;
    for (std::size_t r = 0; r < nodes_.node.size(); ++r) {
      List const& list = lists()[static_cast<std::size_t>(nodes_.node[r])];
      auto const at = static_cast<std::size_t>(nodes_.local[r]) * width_;
      std::copy_n(list.values.data() + at, width_, all.data() + r * width_);
    }
    return true;
  }
  void all_reduce(std::span<double const> mine) override {
    check_sum(step_ != Step::none || reducing_, mine.size(), most_);
    between_->all_reduce(mine);
    reducing_ = true;
  }
  bool all_reduced(std::span<double> sums) override {
    if (!between_->all_reduced(sums)) return false;
    reducing_ = false;
    return true;
  }

  // Each of the two may hear of a loss that the other never does: whoever hears tells the ranks of both.
  bool peer_left() override {
    bool const near = inside_->peer_left(), far = between_->peer_left();
    if ((near || far) && !told_) leave();
    return near || far;
  }
  void leave() noexcept override {
    if (std::exchange(told_, true)) return;
    inside_->leave();
    between_->leave();
  }

 private:
  enum class Step : std::uint8_t { none, inside, lists };

  Endpoint& of(Part part) { return part.inside ? *inside_ : *between_; }
  std::vector<List>& lists() { return parts_.memory->lists; }

  // Another rank may need the list that this one is to hand on before it sends what this one waits for.
  bool in_vain() {
    advance();
    return false;
  }

  void advance() {
    if (step_ == Step::inside) {
      auto& mine = lists()[here_].values;
      if (!inside_->gathered({mine.data(), nodes_.ranks[here_].size() * width_})) return;
      for (int const message : parts_.to_agents) between_->send(message, sum_);
      step_ = Step::lists;
    }
    if (step_ != Step::lists) return;
    bool done = true;
    for (List& list : lists()) done = arrived(list) && done;
    for (int const message : parts_.to_agents) done = between_->sent(message) && done;
    if (done) step_ = Step::none;
  }
  bool arrived(List& list) {
    if (!list.here) {
      if (!of(list.arrival).received(list.arrival.index)) return false;
      for (int const message : list.hand_ons) inside_->send(message, sum_);
      list.here = true;
    }
    bool done = true;
    for (int const message : list.hand_ons) done = inside_->sent(message) && done;
    return done;
  }

  CompositeNodes const& nodes_;
  std::size_t here_;
  int most_;
  Parts parts_;
  std::unique_ptr<Endpoint> inside_, between_;
  Step step_ = Step::none;
  std::size_t width_ = 0;
  std::uint32_t sum_ = 0;  ///< rising by one, it wraps with the parity that epochs need
  bool reducing_ = false, told_ = false;
};

}  // namespace

std::unique_ptr<Endpoint> bind_composite(Transport& between, Transport& inside, CompositeNodes const& nodes,
                                         Binding const& binding) {
  Group& group = between.group();
  Parts parts = Split(nodes, group.rank(), binding).take();
  std::unique_ptr<Endpoint> near;
  // One node's failure is everybody's; only ranks of that node are asked meanwhile.
  group.together([&] { near = inside.bind(parts.inside); });
  std::unique_ptr<Endpoint> far = between.bind(parts.between);
  return std::make_unique<CompositeEndpoint>(nodes, group.rank(), binding.gather_width, std::move(parts),
                                             std::move(near), std::move(far));
}

}  // namespace hostless
