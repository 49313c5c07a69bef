// What the GPU library answers to queues: sides and ends of messages, and streams that start and wait for
// them.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "device/on_device.hpp"
#include "queue/gpu/group_ranks.hpp"
#include "queue/gpu/halo_kernels.hpp"
#include "queue/gpu/message_kernels.hpp"
#include "queue/gpu/message_pool.hpp"
#include "queue/gpu/stream_bench.hpp"

namespace hostless::gpu {
namespace {

constexpr bool is_hip = std::string_view(HOSTLESS_GPU_NAME) == "HIP";
constexpr std::size_t round_up(std::size_t bytes) { return (bytes + slot_line - 1) / slot_line * slot_line; }

class SideMemory final : public LentSide {
 public:
  SideMemory(MessagePool& pool, std::size_t message_bytes)
      : pool_(pool),
        message_bytes_(message_bytes),
        slot_bytes_(round_up(words_of_slot(message_bytes) * sizeof(FlaggedWord))),
        words_(pool.take(sizeof(SideWords))),
        slots_(pool.take(2 * slot_bytes_)) {
    pool.clear(words_.get(), sizeof(SideWords));
    pool.clear(slots_.get(), 2 * slot_bytes_);
  }
  int device() const override { return pool_.device(); }
  bool lose_other() noexcept override { return pool_.close_side(words(), false); }
  bool leave() noexcept override { return has_left_.exchange(true) || pool_.close_side(words(), true); }
  MessagePool& pool() const { return pool_; }
  SideWords* words() const { return reinterpret_cast<SideWords*>(words_.get()); }
  std::byte* slots() const { return slots_.get(); }
  std::size_t slot_bytes() const { return slot_bytes_; }
  /// What a slot holds of a message.
  std::size_t message_bytes() const { return message_bytes_; }

 private:
  MessagePool& pool_;
  std::size_t message_bytes_, slot_bytes_;
  std::shared_ptr<std::byte> words_, slots_;
  std::atomic<bool> has_left_{false};
};

class End final : public MessageEnd {
 public:
  explicit End(MatchedMessage const& m)
      : mine_(std::static_pointer_cast<SideMemory>(m.mine)),
        other_(std::static_pointer_cast<SideMemory>(m.other)) {
    bool const sends = m.side == queue::Side::sender;
    SideMemory const& receiver = sends ? *other_ : *mine_;
    call_.sender = (sends ? *mine_ : *other_).words();
    call_.receiver = receiver.words();
    call_.slots = receiver.slots();
    call_.slot_lines = static_cast<std::uint32_t>(receiver.slot_bytes() / slot_line);
    call_.from = m.from;
    call_.to = m.to;
    call_.bytes = m.bytes;
    // A slot costs no fence, so that ready sends that fit into one take it as well.
    call_.mode =
        m.mode == queue::Mode::ready && m.bytes <= receiver.message_bytes() ? queue::Mode::small : m.mode;
    call_.side = m.side;
    bool const moves = call_.mode == queue::Mode::standard || sends;  // at its start
    call_.fences_count = !sends && (is_hip || is_of_host(m.to) || device_of(m.to) != mine_->device());
    call_.count = moves ? static_cast<std::uint16_t>(pieces_of(call_.mode, m.bytes)) : std::uint16_t{1};
  }
  ReachedCounts counts() const override { return mine_->pool().counts(mine_->words()); }
  bool leave() noexcept override {
    if (std::exchange(has_left_, true)) return true;
    bool const is_closed_there = other_->lose_other();
    return mine_->leave() && is_closed_there;
  }
  EndCall const& call() const { return call_; }

 private:
  std::shared_ptr<SideMemory> mine_, other_;
  EndCall call_;
  bool has_left_ = false;
};

bool belongs_to(HOSTLESS_GPU(Stream_t) stream, int device) {
  OnDevice const on(device);
  HOSTLESS_GPU(Event_t) event = nullptr;
  check(HOSTLESS_GPU(EventCreateWithFlags)(&event, HOSTLESS_GPU(EventDisableTiming)), "creating an event");
  bool const belongs = HOSTLESS_GPU(EventRecord)(event, stream) == HOSTLESS_GPU(Success);
  if (!belongs) (void)HOSTLESS_GPU(GetLastError)();
  (void)HOSTLESS_GPU(EventDestroy)(event);
  return belongs;
}

// That in use is looked at first: the others need not be woken up.
int device_of_stream(HOSTLESS_GPU(Stream_t) stream) {
  int in_use = 0;
  check(HOSTLESS_GPU(GetDevice)(&in_use), "asking which GPU is in use");
  if (belongs_to(stream, in_use)) return in_use;
  for (int device = 0; device < visible_gpus(); ++device)
    if (device != in_use && belongs_to(stream, device)) return device;
  throw Error(ErrorCode::usage, "a stream that belongs to no GPU of this process. Give one of its streams.");
}

class OnStream final : public MessageStream {
 public:
  explicit OnStream(void* stream)
      : stream_(static_cast<HOSTLESS_GPU(Stream_t)>(stream)),
        device_(device_of_stream(stream_)),
        lost_(message_pool(device_).take(sizeof(std::uint32_t))) {
    {
      OnDevice const on(device_);
      done_.emplace();
    }
    control_ = message_pool(device_).take_control(launch_.queue.control);
    message_pool(device_).clear(lost_.get(), sizeof(std::uint32_t));
    launch_.queue.lost = reinterpret_cast<std::uint32_t*>(lost_.get());
    launch_.stream = stream_;
    launch_.is_dependent = message_pool(device_).launches_early();
    launch_.most_waiting_blocks = message_pool(device_).join_waits();
  }
  ~OnStream() override { message_pool(device_).leave_waits(); }
  int device() const override { return device_; }
  void start(std::span<MessageEnd* const> ends) override { start_and_wait(ends, {}); }
  void wait(std::span<MessageEnd* const> ends) override { start_and_wait({}, ends); }
  void start_and_wait(std::span<MessageEnd* const> starts, std::span<MessageEnd* const> waits) override {
    OnDevice const on(device_);
    launch_kernels(starts, waits, [this](auto const& some_start, auto const& some_wait) {
      EndCall first[most_ends], then[most_ends];
      if (some_wait.empty()) return launch_start(launch_, calls_of(some_start, first));
      if (some_start.empty()) return launch_wait(launch_, calls_of(some_wait, then));
      launch_start_and_wait(launch_, calls_of(some_start, first), calls_of(some_wait, then));
    });
  }
  void reduce(StreamReduction const& what) override {
    OnDevice const on(device_);
    launch_reduce(stream_, launch_.queue, what.what, static_cast<SideMemory&>(*what.side).words(),
                  message_pool(device_).multiprocessors());
  }
  void pass_halo(queue::HaloPass const& what) override {
    OnDevice const on(device_);
    launch_halo(stream_, launch_.is_dependent, what);
  }
  void move(GroupRanks& ranks, std::span<GroupMessage const> messages, GroupPeers peers) override {
    OnDevice const on(device_);
    auto& connected = static_cast<ConnectedRanks&>(ranks);
    launch_mark(stream_, launch_.queue, connected.begun(peers));
    connected.move(messages, stream_);
    launch_mark(stream_, launch_.queue, connected.done(peers));
  }
  void call(void (*function)(void*), void* user) override {
    OnDevice const on(device_);
    check(HOSTLESS_LAUNCH_HOST_FUNCTION(stream_, function, user), "having a stream call a function");
  }
  bool is_recording() const override { return gpu::is_recording(stream_); }
  bool is_done() const override {
    OnDevice const on(device_);
    auto const code = HOSTLESS_GPU(StreamQuery)(stream_);
    if (code == HOSTLESS_GPU(ErrorNotReady)) return false;
    check(code, "running a queue on the GPU");
    return true;
  }
  void sleep() override {
    OnDevice const on(device_);
    done_->record(stream_);
    done_->sleep();
  }
  queue::Progress ending() const override {
    return static_cast<queue::Progress>(static_cast<QueueControl volatile*>(control_.get())->told);
  }
  void give_up() noexcept override { static_cast<QueueControl volatile*>(control_.get())->ended = 1; }
  void set_limit(double seconds) override {
    double const ms = std::clamp(1e3 * seconds, 1.0, 4e9);
    static_cast<QueueControl volatile*>(control_.get())->limit_ms = static_cast<std::uint32_t>(ms + 0.5);
  }

 private:
  static std::span<EndCall const> calls_of(std::span<MessageEnd* const> ends, EndCall (&calls)[most_ends]) {
    for (std::size_t k = 0; k < ends.size(); ++k) calls[k] = static_cast<End*>(ends[k])->call();
    return {calls, ends.size()};
  }

  HOSTLESS_GPU(Stream_t) stream_;
  int device_;
  std::shared_ptr<std::byte> lost_;
  std::shared_ptr<QueueControl> control_;
  std::optional<SleepingEvent> done_;
  MessageLaunch launch_;
};

class ThisMessageLibrary final : public MessageLibrary {
 public:
  int devices() const override { return visible_gpus(); }
  std::string vendor() const override { return is_hip ? "hip" : "cuda"; }
  void prepare(int device) override {
    int const visible = visible_gpus();
    if (device < 0 || device >= visible)
      throw Error(ErrorCode::environment, "GPU " + std::to_string(device) + " (" + std::to_string(visible) +
                                              " are visible). Use another number.");
    message_pool(device);
    std::lock_guard const lock(mutex_);
    // Where two cannot reach each other, only a message between them is refused.
    for (int const other : prepared_) static_cast<void>(path_between(device, other));
    prepared_.insert(device);
  }
  std::string why_unreached(void const* address, int device) const override {
    OnDevice const on(device);
    void* mapped = nullptr;
    auto const code = HOSTLESS_GPU(HostGetDevicePointer)(&mapped, const_cast<void*>(address), 0);
    if (code == HOSTLESS_GPU(Success) && mapped == address) return {};  // the host's, pinned
    (void)HOSTLESS_GPU(GetLastError)();
    int const owner = device_of(address);
    if (owner == device) return {};
    return owner < 0 ? "memory of the host that is not pinned" : "memory of GPU " + std::to_string(owner);
  }
  std::shared_ptr<LentSide> lend_side(int device, std::size_t slot_bytes) override {
    return std::make_shared<SideMemory>(message_pool(device), slot_bytes);
  }
  std::shared_ptr<std::byte> memory(int device, std::size_t bytes) override {
    return message_pool(device).take(bytes);
  }
  std::shared_ptr<std::byte> pinned(int device, std::size_t bytes) override {
    OnDevice const on(device);
    auto const memory = std::make_shared<Pinned<std::byte>>(bytes);
    return {memory, memory->data()};
  }
  std::shared_ptr<void> own_stream(int device) override {
    OnDevice const on(device);
    auto const stream = std::make_shared<Stream>(Stream::first());
    return {stream, stream->get()};
  }
  std::unique_ptr<MessageEnd> open(MatchedMessage const& message) override {
    {
      std::lock_guard const lock(mutex_);
      std::string const problem = path_between(message.mine->device(), message.other->device());
      if (!problem.empty())
        throw Error(ErrorCode::environment,
                    problem + " (messages are loaded and stored there). Use GPUs that are linked, or one.");
    }
    auto end = std::make_unique<End>(message);
    // Words and slots are memory that GPUs see each other's stores in; that of callers need not be.
    if (is_hip && message.mine->device() != message.other->device() && end->call().mode != queue::Mode::small)
      throw Error(ErrorCode::environment, std::to_string(message.bytes) +
                                              " bytes from one AMD GPU to another as one message (what "
                                              "does not fit into a slot is stored into memory of the "
                                              "caller's, where kernels that run may not see it). Set "
                                              "HOSTLESS_QUEUE_SMALL_BYTES to as much, or send it in pieces.");
    return end;
  }
  std::shared_ptr<GroupRanks> group_ranks(int device, int rank, int ranks, double call_s) override {
    OnDevice const on(device);
    return std::make_shared<ConnectedRanks>(device, rank, ranks, call_s);
  }
  std::unique_ptr<MessageStream> stream(void* stream) override { return std::make_unique<OnStream>(stream); }
  std::unique_ptr<StreamBench> bench(int device) override {
    prepare(device);
    check(HOSTLESS_GPU(SetDevice)(device), "choosing a GPU");
    return make_stream_bench(device);
  }

 private:
  /// Both ways, once. Why not, or empty.
  std::string path_between(int a, int b) {
    if (a == b) return {};
    auto const pair = std::minmax(a, b);
    auto const known = paths_.find(pair);
    if (known != paths_.end()) return known->second;
    std::string problem;
    for (auto const& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      OnDevice const on(from);
      if (problem.empty()) problem = open_path(from, to);
      int counts = 0;
      check(HOSTLESS_GPU(DeviceGetP2PAttribute)(&counts, HOSTLESS_GPU(DevP2PAttrNativeAtomicSupported), from,
                                                to),
            "asking whether GPUs count in each other's memory");
      if (problem.empty() && counts == 0)
        problem = "GPU " + std::to_string(from) + " cannot count in the memory of GPU " + std::to_string(to);
    }
    return paths_[pair] = problem;
  }

  std::mutex mutex_;
  std::set<int> prepared_;
  std::map<std::pair<int, int>, std::string> paths_;
};

}  // namespace
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) hostless::gpu::MessageLibrary* hostless_gpu_messages() {
  static hostless::gpu::ThisMessageLibrary library;
  return &library;
}
