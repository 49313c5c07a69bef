// Exchanges over fields in the memory of a GPU: the rounds of a plan on a stream, over a stream endpoint.
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "device/on_device.hpp"
#include "exchange/gpu/added_items.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "exchange/gpu/packed_items.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {
namespace {

using RawStream = HOSTLESS_GPU(Stream_t);

/// Kernels are loaded when they are first asked for, which waits for those that run: for others of this
/// process, perhaps, that wait for this rank.
class KernelLoading final : public StreamQueue {
 public:
  void launch(KernelLaunch const& launch) override { load_kernel(launch.kernel); }
  void call(std::function<void(RawStream)> const&) override {}  // libraries load themselves
};

class FieldExchange final : public BoundExchange {
 public:
  explicit FieldExchange(ExchangeProblem const& problem)
      : device_(problem.setup.device),
        sharers_(problem.setup.sharers),
        on_(device_),
        contributions_(memory_for(problem)),
        words_(fields_with(problem, contributions_)),
        endpoint_(make_stream_endpoint(problem.transport, problem.setup)),
        staging_(static_cast<std::size_t>(problem.staging * words_.item_bytes())) {
    for (std::size_t k = 0; k < problem.rounds->size(); ++k) {
      MessageRound const& round = (*problem.rounds)[k];
      bool const lands = endpoint_->lands(static_cast<int>(k));
      rounds_.push_back(
          {PackedItems(round.from), PackedItems(lands ? std::vector<MessageItem>() : round.to)});
    }
    if (!problem.fields.empty()) lands_at_ = static_cast<std::byte*>(problem.fields[0].receive);
    if (problem.added != nullptr) {
      std::vector<std::byte const*> from;
      for (Array<std::byte> const& one : contributions_) from.push_back(one.data());
      if (!contributions_.empty()) lands_at_ = contributions_[0].data();
      added_.emplace(*problem.added, std::move(from));
    }
    on_.reset();
  }
  ~FieldExchange() override {
    try {
      OnDevice const on(device_);
      constexpr double patience_s = 2;
      // While an exception passes by, the rank did not end in order: others would wait for it.
      bool const in_order = std::uncaught_exceptions() <= unwinding_;
      if (!lost_ && in_order && is_idle_within(patience_s)) return;
      endpoint_->abort();
      static_cast<void>(is_idle_within(patience_s));
      endpoint_->settle();
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }

  StreamContact contact() override {
    OnDevice const on(device_);
    StreamContact contact = endpoint_->contact();
    contact.device = device_;
    contact.unique_id = endpoint_->unique_id();
    return contact;
  }
  std::vector<StreamBuffers> message_buffers() const override { return endpoint_->buffers(); }
  void connect(std::vector<StreamContact> const& all) override {
    OnDevice const on(device_);
    endpoint_->know(all);
    KernelLoading loading;
    exchange(loading);
    endpoint_->connect(all[0].unique_id, lands_at_);
    endpoint_->expect_late_ranks();
  }

  void enqueue(void* stream) override {
    OnDevice const on(device_);
    auto const raw = static_cast<RawStream>(stream);
    bool const records = is_recording(raw);
    if (records) require_recording();
    require_ranks();
    DirectQueue queue(raw);
    exchange(queue);
    if (!records) done_.record(raw);
  }
  void start(void* stream) override {
    OnDevice const on(device_);
    auto const raw = static_cast<RawStream>(stream);
    bool const records = is_recording(raw);
    if (records) require_recording();
    require_ranks();
    begun_.record(raw);
    if (sharers_ == 1 && !side_) side_.emplace();
    RawStream const beside = sharers_ == 1 ? side_->get() : raw;
    if (beside != raw) begun_.hold(beside);
    DirectQueue queue(beside);
    exchange(queue);
    joined_.record(beside);
    if (!records) done_.record(beside);
  }
  void finish(void* stream) override {
    OnDevice const on(device_);
    joined_.hold(static_cast<RawStream>(stream));
  }
  bool test() override {
    OnDevice const on(device_);
    if (lost_) return false;
    StreamEndpoint::Served const served = endpoint_->poll();
    if (served == StreamEndpoint::Served::lost || endpoint_->has_failed()) {
      lose();
      return false;
    }
    if (served == StreamEndpoint::Served::under_way || !done_.passed()) return false;
    if (!endpoint_->has_failed()) return true;
    lose();
    return false;
  }
  bool wait(double limit_s) override {
    Countdown countdown(Deadline::after(limit_s));
    for (int polls = 1; !test(); ++polls) {
      if (lost_) return false;
      if (countdown.is_over()) {
        if (test()) return true;
        lose();
        return false;
      }
      if (polls % 64 == 0) Backoff::give_core_away();
    }
    return true;
  }
  bool lost() const override { return lost_; }
  void leave() noexcept override { lose(); }
  bool may_be_recorded() const override { return endpoint_->replays_anywhere(); }
  std::string describe() const override { return endpoint_->describe(); }
  std::int64_t bytes() const override {
    std::int64_t all = endpoint_->bytes() + words_.bytes() + static_cast<std::int64_t>(staging_.bytes());
    for (Round const& round : rounds_) all += round.from.bytes() + round.to.bytes();
    for (Array<std::byte> const& one : contributions_) all += static_cast<std::int64_t>(one.bytes());
    return all + (added_ ? added_->bytes() : 0);
  }

 private:
  struct Round {
    PackedItems from, to;
  };

  static std::vector<Array<std::byte>> memory_for(ExchangeProblem const& problem) {
    std::vector<Array<std::byte>> all;
    if (problem.added == nullptr) return all;
    for (Field const& field : problem.fields) {
      all.emplace_back(static_cast<std::size_t>(problem.ghosts) * field.item_bytes);
      all.back().clear();
    }
    return all;
  }
  static std::vector<Field> fields_with(ExchangeProblem const& problem,
                                        std::vector<Array<std::byte>> const& contributions) {
    std::vector<Field> fields = problem.fields;
    for (std::size_t f = 0; f < contributions.size(); ++f) fields[f].receive = contributions[f].data();
    return fields;
  }
  void require_recording() const {
    if (!endpoint_->replays_anywhere())
      throw Error(ErrorCode::usage,
                  "an exchange that is recorded in a graph, by " + endpoint_->describe() +
                      " (what it queues cannot be replayed). Queue it on a stream that does "
                      "not record, or use GPU transport peer.");
  }
  void require_ranks() const {
    if (lost_)
      throw Error(ErrorCode::peer_lost,
                  "an exchange after a rank was lost. Make a new one with ranks that live.");
  }
  void exchange(StreamQueue& queue) {
    try {
      for (int round = 0; round < static_cast<int>(rounds_.size()); ++round) move(queue, round);
      endpoint_->end_exchange(queue);
    } catch (RankLost const&) {
      lose();
      throw Error(ErrorCode::peer_lost, "a rank was lost while an exchange was queued (" +
                                            endpoint_->describe() +
                                            "). Make a new exchange with ranks that live.");
    }
    if (added_) added_->add(queue);
  }
  void move(StreamQueue& queue, int k) {
    Round const& round = rounds_[static_cast<std::size_t>(k)];
    if (round.from.size() != 0 && !endpoint_->takes_from_field(k))
      round.from.pack(queue, words_, staging_.data(), endpoint_->outgoing(k), endpoint_->put(k));
    endpoint_->send(queue, k, lands_at_);
    AwaitedRound const awaited = round.to.size() != 0 ? endpoint_->awaited(k) : AwaitedRound{};
    if (awaited.exchanges == nullptr) endpoint_->await(queue, k, lands_at_);
    if (round.to.size() != 0) round.to.unpack(queue, words_, endpoint_->arrived(k), awaited, staging_.data());
  }
  bool is_idle_within(double seconds) const {
    return wait_for([this] { return done_.passed(); }, [] { return false; }, Deadline::after(seconds)) ==
           Waited::done;
  }
  // What tells other GPUs is launched on this one, whichever the caller has in use.
  void lose() noexcept {
    if (std::exchange(lost_, true)) return;
    try {
      OnDevice const on(device_);
      endpoint_->abort();
    } catch (Error const&) {  // a GPU that has failed: others find out by their deadlines
    }
  }

  int device_;
  int sharers_;  // ranks on it: a GPU has few queues, and what waits on one of them is in the way of what
                 // follows
  std::optional<OnDevice> on_;  // while it is made
  std::vector<Array<std::byte>> contributions_;
  ItemWords words_;
  std::unique_ptr<StreamEndpoint> endpoint_;
  Array<std::byte> staging_;
  std::vector<Round> rounds_;
  std::optional<AddedItems> added_;
  std::byte* lands_at_ = nullptr;
  std::optional<Stream> side_;
  Event begun_, joined_, done_;
  bool lost_ = false;
  int unwinding_ = std::uncaught_exceptions();
};

class Exchanges final : public ExchangeLibrary {
 public:
  int devices() const override { return visible_gpus(); }
  std::string vendor() const override { return std::strcmp(HOSTLESS_GPU_NAME, "CUDA") == 0 ? "cuda" : "hip"; }
  std::vector<TransportFacts> transports() const override { return library_transports(); }
  int device_of(void const* address) const override { return gpu::device_of(address); }
  std::string bus_of(int device) const override {
    char bus[32] = "";
    check(HOSTLESS_GPU(DeviceGetPCIBusId)(bus, sizeof bus, device), "asking where a GPU is");
    return bus;
  }
  SymmetricOffer symmetric_offer(GpuTransport transport, StreamSetup const& setup) const override {
    return gpu::symmetric_offer(transport, setup, 0);
  }
  std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport transport, StreamSetup const& setup,
                                                    std::vector<SymmetricOffer> const& all) const override {
    return gpu::symmetric_memory(transport, setup, all);
  }
  std::unique_ptr<BoundExchange> bind(ExchangeProblem const& problem) const override {
    return std::make_unique<FieldExchange>(problem);
  }
  std::unique_ptr<KernelWindow> kernel_window(KernelProblem const& problem) const override {
    return make_kernel_window(problem);
  }
  std::unique_ptr<Workbench> workbench(int device) const override { return make_workbench(device); }
  UniqueId group_name() const override { return make_group_name(); }
  std::unique_ptr<GroupedSends> grouped_sends(GroupedRank const& mine) const override {
    return make_grouped_sends(mine);
  }
};

}  // namespace
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) hostless::gpu::ExchangeLibrary* hostless_gpu_exchanges() {
  static hostless::gpu::Exchanges exchanges;
  return &exchanges;
}
