#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "transport/zone/zone.hpp"

namespace hostless {
namespace {

// The memory of one bind: Header, one RankArea a rank, then the landings of rank 0, of rank 1, ...
struct alignas(128) Header {
  std::atomic<std::uint32_t> left{0};
};

// Followed by two buffers of the message's size, one for even epochs and one for odd.
struct alignas(64) Landing {
  std::atomic<std::uint32_t> epoch[2] = {0, 0};
};

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 127) / 128 * 128; }
constexpr std::size_t landing_bytes(std::size_t message) {
  return rounded(sizeof(Landing)) + 2 * rounded(message);
}

std::byte* landing_data(Landing* landing, std::uint32_t epoch, std::size_t message) {
  return reinterpret_cast<std::byte*>(landing) + rounded(sizeof(Landing)) + (epoch & 1u) * rounded(message);
}

struct Offered {
  std::int64_t id;
  std::uint64_t offset;
};

// Where everything lies: computed by each rank for what it owns, told to those who write there.
struct Layout {
  std::size_t total = 0, first = 0, own = 0;  // [first, first + own): the landings of this rank
  std::vector<std::uint64_t> in;              // by binding.in
  std::vector<std::uint64_t> out;             // by binding.out
};

std::size_t areas_end(std::size_t ranks) { return sizeof(Header) + ranks * sizeof(RankArea); }

Layout lay_out(Group& group, Binding const& binding) {
  auto const ranks = static_cast<std::size_t>(group.size());
  Layout layout;
  for (Incoming const& in : binding.in) layout.own += landing_bytes(in.bytes);
  auto const owned = group.all_gather(std::uint64_t{layout.own});
  layout.total = areas_end(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (r == static_cast<std::size_t>(group.rank())) layout.first = layout.total;
    layout.total += owned[r];
  }
  std::vector<std::vector<Offered>> told(ranks);
  std::uint64_t at = layout.first;
  for (Incoming const& in : binding.in) {
    layout.in.push_back(at);
    told[static_cast<std::size_t>(in.source)].push_back({in.id, at});
    at += landing_bytes(in.bytes);
  }
  auto const heard = group.exchange_values(told);
  std::map<std::pair<int, std::int64_t>, std::uint64_t> offered;
  for (std::size_t r = 0; r < ranks; ++r) {
    for (Offered const& p : heard[r]) offered[{static_cast<int>(r), p.id}] = p.offset;
  }
  for (Outgoing const& out : binding.out) layout.out.push_back(offered.at({out.target, out.id}));
  return layout;
}

class ZoneEndpoint final : public Endpoint {
 public:
  ZoneEndpoint(ZoneWorld& world, std::shared_ptr<std::byte> memory, int rank, int ranks,
               Binding const& binding, Layout const& layout)
      : world_(world),
        memory_(std::move(memory)),
        rank_(static_cast<std::size_t>(rank)),
        ranks_(static_cast<std::size_t>(ranks)),
        binding_(binding),
        arrivals_(binding.in.size()),
        unwinding_(std::uncaught_exceptions()) {
    // Each rank makes what it owns, which also puts its pages near it.
    if (rank == 0) new (memory_.get()) Header;
    new (memory_.get() + sizeof(Header) + rank_ * sizeof(RankArea)) RankArea;
    std::memset(memory_.get() + layout.first, 0, layout.own);
    for (std::uint64_t const at : layout.in) sources_.push_back(new (memory_.get() + at) Landing);
    for (std::uint64_t const at : layout.out) {
      targets_.push_back(reinterpret_cast<Landing*>(memory_.get() + at));
    }
  }
  // While an exception passes by, the rank did not end in order: then its going is a loss to the others. A
  // forked child has the memory too, and is no rank.
  ~ZoneEndpoint() override {
    if (is_here() && std::uncaught_exceptions() <= unwinding_)
      areas()[rank_].ended.store(1, std::memory_order_release);
  }

  void send(int index, std::uint32_t epoch) override {
    Outgoing const& o = binding_.out[static_cast<std::size_t>(index)];
    Landing* const target = targets_[static_cast<std::size_t>(index)];
    if (o.bytes != 0) std::memcpy(landing_data(target, epoch, o.bytes), o.from, o.bytes);
    target->epoch[epoch & 1u].store(epoch, std::memory_order_release);
  }
  void receive(int index, std::uint32_t epoch) override {
    Arrival& arrival = arrivals_[static_cast<std::size_t>(index)];
    if (!arrival.done) refuse_restart(index, "received");
    arrival = {epoch, false};
  }
  bool sent(int) override { return true; }  // the bytes were copied when it was started
  bool received(int index) override {
    Arrival& arrival = arrivals_[static_cast<std::size_t>(index)];
    if (arrival.done) return true;
    Landing* const from = sources_[static_cast<std::size_t>(index)];
    if (from->epoch[arrival.epoch & 1u].load(std::memory_order_acquire) != arrival.epoch) return false;
    Incoming const& in = binding_.in[static_cast<std::size_t>(index)];
    if (in.bytes != 0) std::memcpy(in.to, landing_data(from, arrival.epoch, in.bytes), in.bytes);
    arrival.done = true;
    return true;
  }

  void gather(std::span<double const> mine) override {
    check_sum(next_ < ranks_ && sum_epoch_ != 0, mine.size(), binding_.gather_width);
    sum_epoch_ = sum_epoch_ == last_epoch ? 1 : sum_epoch_ + 1;
    width_ = mine.size();
    RankArea& area = areas()[rank_];
    std::copy(mine.begin(), mine.end(), area.value[sum_epoch_ & 1u]);
    area.epoch[sum_epoch_ & 1u].store(sum_epoch_, std::memory_order_release);
    next_ = 0;
  }
  bool gathered(std::span<double> all) override {
    for (; next_ < ranks_; ++next_) {
      if (areas()[next_].epoch[sum_epoch_ & 1u].load(std::memory_order_acquire) != sum_epoch_) return false;
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      std::copy_n(areas()[r].value[sum_epoch_ & 1u], width_, all.data() + r * width_);
    }
    return true;
  }
  void all_reduce(std::span<double const>) override {
    throw Error(ErrorCode::usage,
                "this transport has no library all-reduce (its gather is the fast way). Use gather.");
  }
  bool all_reduced(std::span<double>) override { return false; }

  bool peer_left() override {
    return header().left.load(std::memory_order_acquire) != 0 || world_.rank_lost(areas());
  }
  void leave() noexcept override {
    if (is_here()) header().left.store(1, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t last_epoch =
      0x7ffffffe;  // even, and followed by 1: neighbours differ in their last bit
  struct Arrival {
    std::uint32_t epoch = 0;
    bool done = true;
  };
  bool is_here() const { return process_ == getpid(); }
  Header& header() { return *reinterpret_cast<Header*>(memory_.get()); }
  RankArea* areas() { return reinterpret_cast<RankArea*>(memory_.get() + sizeof(Header)); }

  ZoneWorld& world_;
  std::shared_ptr<std::byte> memory_;
  std::size_t rank_, ranks_;
  Binding binding_;
  std::vector<Landing*> targets_, sources_;
  std::vector<Arrival> arrivals_;
  std::uint32_t sum_epoch_ = 0;
  std::size_t width_ = 0, next_ = 0;
  int unwinding_;
  pid_t process_ = getpid();
};

}  // namespace

std::unique_ptr<Endpoint> bind_zone(Group& group, ZoneWorld& world, Binding const& binding) {
  check_binding(group, binding);
  Layout const layout = lay_out(group, binding);
  auto memory = world.allocate(layout.total);
  std::unique_ptr<Endpoint> endpoint;
  // The collective end of `together` is also what tells everybody that all landings exist.
  group.together([&] {
    endpoint =
        std::make_unique<ZoneEndpoint>(world, std::move(memory), group.rank(), group.size(), binding, layout);
  });
  return endpoint;
}

}  // namespace hostless
