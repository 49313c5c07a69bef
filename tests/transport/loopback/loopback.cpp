// The loopback transport: ranks are threads of this process, as those of `threads` are, and so is its group.
// Its messages are carried by whoever polls (wires.hpp). This is the host's face; loopback_stream.gpu.cpp is
// that of streams.
#include <atomic>
#include <exception>

#include "transport/host_transport.hpp"
#include "wires.hpp"

namespace hostless {
namespace {

using loopback::Wires;

constexpr unsigned seed = 20;

// Of all ranks of a bind.
struct Bound {
  Bound(int ranks, unsigned number) : wires(ranks, number) {}
  Wires wires;
  std::atomic<bool> left{false};
};

// Of all ranks of a run.
struct World {
  std::atomic<bool> lost{false};
  std::shared_ptr<Bound> handed;  // from rank 0 to all
  unsigned binds = 0;             // of rank 0
};

Capabilities capabilities_here() {
  Capabilities c;
  c.transport = "loopback";
  c.host = c.gather = c.host_callback = Support::native;
  c.graph = c.kernel = Support::adapted;
  c.threads_as_ranks = c.bounded_waits = c.survives_peer_loss = true;
  c.note = "for tests: messages come late and in another order; graph and persistent run on the host";
  return c;
}

class LoopbackEndpoint final : public Endpoint {
 public:
  LoopbackEndpoint(World& world, std::shared_ptr<Bound> bound, int rank, Binding binding)
      : world_(world),
        bound_(std::move(bound)),
        rank_(static_cast<std::size_t>(rank)),
        binding_(std::move(binding)),
        unwinding_(std::uncaught_exceptions()) {
    for (Outgoing const& o : binding_.out)
      out_.push_back(&bound_->wires.message(rank, o.target, o.id, o.bytes));
    for (Incoming const& i : binding_.in)
      in_.push_back(&bound_->wires.message(i.source, rank, i.id, i.bytes));
  }
  // While an exception passes by, the rank did not end in order: the others are told.
  ~LoopbackEndpoint() override {
    if (std::uncaught_exceptions() > unwinding_) leave();
    for (Wires::Message* const m : out_) bound_->wires.withdraw(*m, true);
    for (Wires::Message* const m : in_) bound_->wires.withdraw(*m, false);
  }

  void send(int index, std::uint32_t epoch) override {
    auto const k = static_cast<std::size_t>(index);
    if (!bound_->wires.offer(*out_[k], binding_.out[k].from, epoch)) refuse_restart(index, "sent");
  }
  void receive(int index, std::uint32_t epoch) override {
    auto const k = static_cast<std::size_t>(index);
    if (!bound_->wires.await(*in_[k], binding_.in[k].to, epoch)) refuse_restart(index, "received");
  }
  bool sent(int index) override { return bound_->wires.sent(*out_[static_cast<std::size_t>(index)]); }
  bool received(int index) override { return bound_->wires.received(*in_[static_cast<std::size_t>(index)]); }

  void gather(std::span<double const> mine) override {
    check_sum(is_summing_, mine.size(), binding_.gather_width);
    is_summing_ = true;
    width_ = mine.size();
    bound_->wires.contribute(rank_, mine);
  }
  bool gathered(std::span<double> all) override {
    if (!bound_->wires.collected(rank_, width_, all)) return false;
    is_summing_ = false;
    return true;
  }
  void all_reduce(std::span<double const>) override {
    throw Error(ErrorCode::usage, "loopback has no library all-reduce (it is there for tests). Use gather.");
  }
  bool all_reduced(std::span<double>) override { return false; }

  bool peer_left() override { return bound_->left.load() || world_.lost.load(); }
  // A rank goes on with the ghosts that it has when others are lost: nobody may write to them any more.
  void leave() noexcept override {
    bound_->left.store(true);
    for (Wires::Message* const m : in_) bound_->wires.withdraw(*m, false);
  }

 private:
  World& world_;
  std::shared_ptr<Bound> bound_;
  std::size_t rank_;
  Binding binding_;
  std::vector<Wires::Message*> out_, in_;
  std::size_t width_ = 0;
  bool is_summing_ = false;
  int unwinding_;
};

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(World& world, Group& group) : world_(world), group_(group) {}
  Capabilities capabilities() const override { return capabilities_here(); }
  Group& group() override { return group_; }
  std::unique_ptr<Endpoint> bind(Binding const& binding) override {
    check_binding(group_, binding);
    if (group_.rank() == 0) world_.handed = std::make_shared<Bound>(group_.size(), seed + world_.binds++);
    group_.barrier();
    auto endpoint = std::make_unique<LoopbackEndpoint>(world_, world_.handed, group_.rank(), binding);
    group_.barrier();
    if (group_.rank() == 0) world_.handed.reset();  // from here on it lives as long as the endpoints
    return endpoint;
  }

 private:
  World& world_;
  Group& group_;
};

void run(int ranks, std::function<void(Transport&)> const& body) {
  World world;
  run_on_threads(ranks, [&](Group& group) {
    LoopbackTransport transport(world, group);
    try {
      body(transport);
    } catch (...) {
      world.lost.store(true);
      throw;
    }
  });
}

}  // namespace

HostTransport loopback_transport() {
  HostTransport of;
  of.name = "loopback";
  of.capabilities = capabilities_here();
  of.run = run;
  return of;
}

}  // namespace hostless
