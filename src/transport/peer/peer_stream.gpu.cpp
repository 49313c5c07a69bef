#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/variable.hpp"
#include "device/clock.hpp"
#include "transport/memory/opened_memory.hpp"
#include "transport/peer/await_round.gpu.hpp"
#include "transport/peer/facts.hpp"
#include "transport/stream/signal_messages.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

/// One block. to: [doubles], where they are copied to from the buffer that has arrived.
__global__ void __launch_bounds__(block_threads, 1)
    await_round_kernel(HOSTLESS_PARAMETER AwaitedRound const call,
                       HOSTLESS_PARAMETER ArrivedRound const arrived, double* to, int doubles) {
  std::uint64_t const expected = *call.exchanges + 1;
  if (await_round(call, expected)) {
    auto const* const from = reinterpret_cast<double const*>(arrived_in(arrived, expected));
    for (int k = static_cast<int>(threadIdx.x); k < doubles; k += block_threads) to[k] = from[k];
  }
  count_round(call, expected);
}

/// One block. What a rank says, to all of them and to itself.
__global__ void __launch_bounds__(block_threads, 1)
    say_round_kernel(double const* mine, int count, HOSTLESS_PARAMETER PutRound const round) {
  int const parity = parity_of_exchange(*round.exchanges + 1);
  int const target = static_cast<int>(threadIdx.x) / count, k = static_cast<int>(threadIdx.x) % count;
  if (target < round.targets && *round.lost == 0)
    reinterpret_cast<double*>(round.target[target].to + parity * round.other_buffer)[k] = mine[k];
  signal_round(round);
}

/// Blocks of any kernel: nothing is packed.
__global__ void __launch_bounds__(block_threads, 1)
    tell_round_kernel(HOSTLESS_PARAMETER PutRound const round) {
  signal_round(round);
}

struct PoisonCall {
  std::uint64_t* signals[most_ranks];  ///< the first that this rank stores to, on each other one
  int count;                           ///< most_ranks apart
};
__global__ void poison_peers_kernel(HOSTLESS_PARAMETER PoisonCall const call) {
  int const other = static_cast<int>(threadIdx.x) % most_ranks;
  if (call.signals[other] == nullptr) return;
  for (int k = static_cast<int>(threadIdx.x) / most_ranks; k < call.count; k += block_threads / most_ranks)
    store_signal(call.signals[other] + k * most_ranks, poisoned_signal);
  fence_system();
}

class PeerStream final : public StreamEndpoint {
 public:
  explicit PeerStream(StreamSetup const& setup)
      : StreamEndpoint(setup),
        rank_(setup.rank),
        device_(setup.device),
        copies_(setup.by_copy_engine),
        awaits_apart_(setup.sharers > 1 || is_one("HOSTLESS_GPU_AWAIT_APART")),
        rounds_(setup.rounds),
        offsets_(setup.rounds, setup.ranks),
        sent_(setup.rounds.size()),
        lending_{setup.processes, nullptr, true},
        opened_(setup.rank, setup.processes, nullptr),
        window_(static_cast<std::size_t>(offsets_.bytes()), lending_),
        exchanges_(static_cast<std::size_t>(offsets_.channels())),
        blocks_done_(2),
        lost_(1),
        everyone_(static_cast<std::size_t>(setup.ranks) * (widest_sum + 1)) {
    if (copies_) {
      std::int64_t most_out = 0;
      for (StreamRound const& round : rounds_) most_out = std::max(most_out, round.out_bytes);
      packed_ = Array<std::byte>(static_cast<std::size_t>(most_out));
    }
    longest_cycles_ = cycles_of(std::max(first_s(), deadline_s()), clock_hertz(setup.device));
    clear();
    if (lending_.to_processes) {
      lent_ = std::make_unique<Lent>();
      LivingMemory::of_this_process().free_returned();
    }
    LivingMemory::of_this_process().add(window_.data());
  }
  // After a loss others may have queued what stores to this rank: threads would write into memory of somebody
  // else, which ends every GPU of the process. So it is not given back. What other processes have open lives
  // until they have closed it, in whatever order ranks end.
  ~PeerStream() override {
    LivingMemory& living = LivingMemory::of_this_process();
    if (lending_.to_processes) {
      living.remove(window_.data());
      opened_.give_back();
      if (is_lent_) living.keep_until_returned(std::move(window_), std::move(lent_), all_others());
    } else if (was_lost_) {
      living.keep(std::move(window_));
    } else {
      living.remove(window_.data());
    }
  }

  // Stored where it goes; for the copy engine it is packed, or lies in the field.
  std::byte* outgoing(int) override { return packed_.data(); }
  std::byte const* incoming(int round) override { return window_.data() + offsets_.incoming(round, 0); }
  PutRound put(int round) const override {
    return copies_ ? PutRound{} : puts_[static_cast<std::size_t>(round)];
  }
  bool takes_from_field(int round) const override {
    auto const& out = rounds_[static_cast<std::size_t>(round)].out;
    return copies_ &&
           std::all_of(out.begin(), out.end(), [](auto const& part) { return part.from != nullptr; });
  }
  ArrivedRound arrived(int round) override {
    return {window_.data() + offsets_.incoming(round, 0), exchanges_.data() + round,
            offsets_.incoming(round, 1) - offsets_.incoming(round, 0)};
  }
  /// The kernel that has packed the round has told everybody; where nothing is packed, somebody must.
  void send(StreamQueue& queue, int round, std::byte*) override {
    PutRound const& put = puts_[static_cast<std::size_t>(round)];
    if (copies_) copy_round(queue, round);
    if ((copies_ || put.targets == 0) && put.signals != 0)
      launch(queue, reinterpret_cast<void const*>(&tell_round_kernel), 1, put);
  }
  /// Every block of what unpacks a short round waits for itself: a kernel less. Blocks that wait hold their
  /// multiprocessors, so not of long rounds, nor where the rank that is awaited may need them.
  AwaitedRound awaited(int round) const override {
    StreamRound const& messages = rounds_[static_cast<std::size_t>(round)];
    constexpr std::int64_t longest_awaited_by_all = std::int64_t{128} << 10;
    bool const apart = awaits_apart_ || messages.in_bytes == 0 || messages.in_bytes > longest_awaited_by_all;
    return apart ? AwaitedRound{} : await_call(round, others_of(messages));
  }
  void await(StreamQueue& queue, int round, std::byte*) override {
    launch(queue, reinterpret_cast<void const*>(&await_round_kernel), 1,
           await_call(round, others_of(rounds_[static_cast<std::size_t>(round)])), ArrivedRound{},
           static_cast<double*>(nullptr), 0);
  }
  double const* gather(StreamQueue& queue, double const* mine, int count) override {
    int const channel = offsets_.sums();
    PutRound put = puts_.back();
    for (int k = 0; k < put.targets; ++k) put.target[k].to += rank_ * count * std::int64_t{sizeof(double)};
    launch(queue, reinterpret_cast<void const*>(&say_round_kernel), 1, mine, count, put);
    ArrivedRound const said{window_.data() + offsets_.said(0), exchanges_.data() + channel,
                            offsets_.said(1) - offsets_.said(0)};
    launch(queue, reinterpret_cast<void const*>(&await_round_kernel), 1, await_call(channel, all_others()),
           said, everyone_.data(), ranks() * count);
    return everyone_.data();
  }
  bool is_recorded() const override { return !copies_; }  // copies go where the host says

  StreamContact contact() const override {
    StreamContact mine;
    mine.device = device_;
    mine.window = lend(window_, window_.data(), lending_);
    if (lent_) mine.window.borrowing = lent_->contact();
    is_lent_ = true;
    return mine;
  }
  void know(std::vector<StreamContact> const& all) override {
    for (int other = 0; other < ranks(); ++other) {
      StreamContact const& there = all[static_cast<std::size_t>(other)];
      opened_.reach(device_, there.device);
      base_[static_cast<std::size_t>(other)] =
          other == rank_ ? window_.data() : static_cast<std::byte*>(opened_.address_of(there.window, other));
    }
    load_kernel(reinterpret_cast<void const*>(&poison_peers_kernel));  // not when all is late
    puts_.clear();
    for (int round = 0; round < offsets_.sums(); ++round) puts_.push_back(put_of(round));
    puts_.push_back(put_of_sums());
  }
  void connect(UniqueId const&, std::byte*) override { is_connected_ = true; }
  bool is_connected() const override { return is_connected_; }
  void forget() override {
    clear();
    std::fill(sent_.begin(), sent_.end(), 0);
  }
  void end_waits() noexcept override { ended_.host() = 1; }
  void abort() noexcept override {
    end_waits();
    was_lost_ = true;
    if (!std::exchange(is_connected_, false)) return;
    LivingMemory::of_this_process().look([this](auto const& lives) {
      poison_those([&](std::byte const* base) { return lending_.to_processes || lives(base); });
    });
  }

  std::string describe() const override {
    return "peer (" + std::to_string(offsets_.bytes()) +
           (copies_ ? " bytes that others' copy engines write)" : " bytes that others store to)");
  }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(window_.bytes() + packed_.bytes()); }
  bool guards_hold() const override {
    return window_.guards_hold() && packed_.guards_hold() && exchanges_.guards_hold() &&
           blocks_done_.guards_hold() && lost_.guards_hold() && everyone_.guards_hold();
  }

 protected:
  bool waits_on_gpu() const override { return true; }
  bool failed() override { return told_.host() != 0; }

 private:
  std::uint32_t all_others() const { return ((1u << ranks()) - 1) & ~(1u << rank_); }
  std::uint32_t others_of(StreamRound const& round) const {
    std::uint32_t others = 0;
    for (auto const* parts : {&round.out, &round.in})
      for (StreamPart const& part : *parts) others |= 1u << part.rank;
    return others & all_others();
  }
  PutRound put_to(int channel, std::uint32_t others) const {
    PutRound put;
    put.exchanges = exchanges_.data() + channel;
    put.blocks_done = blocks_done_.data();
    put.lost = lost_.data();
    put.other_signal = offsets_.signal(channel, 1, 0) - offsets_.signal(channel, 0, 0);
    for (int other = 0; other < ranks(); ++other)
      if ((others >> other & 1u) != 0)
        put.signal[put.signals++] =
            base_[static_cast<std::size_t>(other)] + offsets_.signal(channel, 0, rank_);
    return put;
  }
  PutRound put_of(int round) const {
    StreamRound const& messages = rounds_[static_cast<std::size_t>(round)];
    PutRound put = put_to(round, others_of(messages));
    put.other_buffer = offsets_.incoming(round, 1) - offsets_.incoming(round, 0);
    for (StreamPart const& part : messages.out)
      put.target[put.targets++] = {
          part.first, part.first + part.bytes,
          base_[static_cast<std::size_t>(part.rank)] + offsets_.incoming(round, 0) + part.there};
    return put;
  }
  PutRound put_of_sums() const {
    PutRound put = put_to(offsets_.sums(), all_others());
    put.other_buffer = offsets_.said(1) - offsets_.said(0);
    for (int other = 0; other < ranks(); ++other)
      put.target[put.targets++] = {0, 0, base_[static_cast<std::size_t>(other)] + offsets_.said(0)};
    return put;
  }
  // Every rank has queued as many, so the host counts as its GPU will.
  void copy_round(StreamQueue& queue, int round) {
    queue.call([&](HOSTLESS_GPU(Stream_t) stream) {
      auto const k = static_cast<std::size_t>(round);
      std::uint64_t const number = ++sent_[k];
      for (StreamPart const& part : rounds_[k].out) {
        std::byte const* const from = takes_from_field(round) ? part.from : packed_.data() + part.first;
        check(HOSTLESS_GPU(MemcpyAsync)(
                  base_[static_cast<std::size_t>(part.rank)] +
                      offsets_.incoming(round, static_cast<int>(number & 1u)) + part.there,
                  from, static_cast<std::size_t>(part.bytes), HOSTLESS_GPU(MemcpyDefault), stream),
              "copying to another GPU");
      }
    });
  }
  AwaitedRound await_call(int channel, std::uint32_t sources) const {
    auto const* const signals =
        reinterpret_cast<std::uint64_t const*>(window_.data() + offsets_.signal(channel, 0, 0));
    return {exchanges_.data() + channel,
            blocks_done_.data() + 1,
            {signals, signals + most_ranks},
            sources,
            lost_.data(),
            ended_.device(),
            told_.device(),
            longest_cycles_};
  }
  // Ranks that have ended in order wait for nobody, and their memory is gone.
  template <class Lives>
  void poison_those(Lives const& lives) noexcept {
    PoisonCall call{};
    call.count = 2 * offsets_.channels();
    for (int other = 0; other < ranks(); ++other)
      if (std::byte* const base = base_[static_cast<std::size_t>(other)]; other != rank_ && lives(base))
        call.signals[other] = reinterpret_cast<std::uint64_t*>(base + offsets_.signal(0, 0, rank_));
    void* parameters[] = {&call};
    constexpr double longest_s = 0.5;
    try {
      // not before: ranks that share a GPU have few queues of its to share; and no second one, for it waits in the
      // driver where another rank of the process gives its messages up
      if (!side_) side_.emplace();
      (void)HOSTLESS_GPU(LaunchKernel)(reinterpret_cast<void const*>(&poison_peers_kernel), dim3(1),
                                       dim3(block_threads), parameters, 0, side_->get());
      static_cast<void>(side_->wait_until(Deadline::after(longest_s)));
    } catch (Error const&) {  // they find out by their deadlines
    }
  }
  void clear() {
    window_.clear();
    exchanges_.clear();
    blocks_done_.clear();
    lost_.clear();
    ended_.host() = 0;
    told_.host() = 0;
  }

  int rank_, device_;
  bool copies_, awaits_apart_;
  std::vector<StreamRound> rounds_;
  SignalOffsets offsets_;
  std::vector<std::uint64_t> sent_;  // exchanges of each round, where the copy engine brings them
  Lending lending_;
  OpenedMemory opened_;
  Array<std::byte> window_, packed_;
  Array<std::uint64_t> exchanges_;
  Array<std::uint32_t> blocks_done_, lost_;
  Array<double> everyone_;
  Mapped<std::uint32_t> ended_, told_;
  std::optional<Stream> side_;
  std::array<std::byte*, most_ranks> base_{};
  std::vector<PutRound> puts_;  // by round, the last one of sums
  std::uint64_t longest_cycles_ = 0;
  std::unique_ptr<Lent> lent_;  // to processes
  bool is_connected_ = false, was_lost_ = false;
  mutable bool is_lent_ = false;  // others may open it
};

}  // namespace

StreamTransport peer_stream() { return {peer_facts, &make_stream<PeerStream>}; }

}  // namespace hostless::gpu
