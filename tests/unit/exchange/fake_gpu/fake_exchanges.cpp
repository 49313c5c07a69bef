// Exchanges of a GPU library whose GPU is the processor: what kernels would do is done when it is queued, and
// the host carries at once, as where kernels must not wait; or a stream face of the tests does, on their
// runtime. For the host's half of exchanges between GPUs. A program, or another part of the library, says
// what memory is the GPU's, and what else must be done before it is touched.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exchange/gpu/exchange_library.hpp"
#include "hostless/base/deadline.hpp"
#include "hostless/base/error.hpp"
#include "hostless/base/wait.hpp"
#include "transport/stream/gpu_files.hpp"
#include "transport/stream/stream_transports.hpp"

extern "C" {
/// Which GPU has an address; -1: none.
__attribute__((weak)) int fake_gpu_of(void const* address);
/// Where in the machine GPU `device` of this rank is. Absent: the GPU of that number.
__attribute__((weak)) int fake_gpu_bus(int device);
/// What is queued on a stream is done. Absent: nothing is ever queued.
__attribute__((weak)) void fake_gpu_finish(void* stream);
/// Calls use(user) while memory may be read and written. Absent: it always may.
__attribute__((weak)) void fake_gpu_open(void (*use)(void*), void* user);
}

namespace hostless::gpu {
namespace {

/// Memory of workbenches.
class TakenMemory {
 public:
  static void add(std::byte const* first, std::size_t bytes, int device) {
    std::lock_guard const lock(mutex());
    all()[first] = {bytes, device};
  }
  static void remove(std::byte const* first) {
    std::lock_guard const lock(mutex());
    all().erase(first);
  }
  static int device_of(void const* address) {
    std::lock_guard const lock(mutex());
    auto after = all().upper_bound(static_cast<std::byte const*>(address));
    if (after == all().begin()) return -1;
    auto const& [first, block] = *--after;
    return static_cast<std::byte const*>(address) < first + block.first ? block.second : -1;
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::map<std::byte const*, std::pair<std::size_t, int>>& all() {
    static std::map<std::byte const*, std::pair<std::size_t, int>> blocks;
    return blocks;
  }
};

template <class Use>
void open_memory(Use use) {
  if (fake_gpu_open == nullptr) return use();
  fake_gpu_open([](void* user) { (*static_cast<Use*>(user))(); }, &use);
}
int owner_of(void const* address) {
  if (int const device = TakenMemory::device_of(address); device >= 0) return device;
  return fake_gpu_of == nullptr ? -1 : fake_gpu_of(address);
}
int bus_for_this_rank(int device) { return fake_gpu_bus == nullptr ? device : fake_gpu_bus(device); }

}  // namespace

bool guarded() { return false; }

namespace {

/// Graphs of the rank that this thread is. As with libraries, none may be there when an exchange goes, or gives up.
thread_local int graphs = 0;
void require_no_graph() noexcept {
  if (graphs == 0) return;
  std::fputs("a played exchange ends while there is a graph with calls of it\n", stderr);
  std::abort();
}

/// Null: the host carries.
std::unique_ptr<StreamEndpoint> endpoint_of(ExchangeProblem const& problem) {
  for (StreamTransport const& one : stream_transports())
    if (one.facts.transport == problem.transport) return one.make(problem.setup);
  if (problem.setup.host == nullptr || !problem.setup.node.empty())
    throw Error(ErrorCode::usage, "the played GPU has no such stream face.");
  return nullptr;
}

class Played final : public BoundExchange {
 public:
  explicit Played(ExchangeProblem const& problem)
      : setup_(problem.setup),
        endpoint_(endpoint_of(problem)),
        copies_own_(facts_of(problem.transport).needs_transport != nullptr),
        rounds_(*problem.rounds),
        fields_(problem.fields) {
    for (Field const& field : fields_) item_bytes_ += field.item_bytes;
    staging_.resize(static_cast<std::size_t>(problem.staging) * item_bytes_);
    for (StreamRound const& round : setup_.rounds) {
      out_.emplace_back(static_cast<std::size_t>(round.out_bytes));
      in_.emplace_back(static_cast<std::size_t>(round.in_bytes));
    }
    if (problem.added == nullptr) return;
    added_ = *problem.added;
    for (Field& field : fields_) {
      contributions_.emplace_back(static_cast<std::size_t>(problem.ghosts) * field.item_bytes);
      field.receive = contributions_.back().data();
    }
  }
  ~Played() override {
    require_no_graph();
    if (endpoint_ && lost_) endpoint_->abort();
  }
  StreamContact contact() override {
    return endpoint_ ? endpoint_->contact_on(setup_.device) : StreamContact{};
  }
  std::vector<StreamBuffers> message_buffers() const override {
    std::vector<StreamBuffers> all;
    for (std::size_t k = 0; k < out_.size(); ++k)
      all.emplace_back(out_[k].data(), const_cast<std::byte*>(in_[k].data()));
    return all;
  }
  void connect(std::vector<StreamContact> const& all) override {
    if (!endpoint_) return;
    endpoint_->know(all);
    endpoint_->connect(all[0].unique_id, nullptr);
  }
  void enqueue(void* stream) override {
    if (fake_gpu_finish != nullptr) fake_gpu_finish(stream);
    if (lost_) throw Error(ErrorCode::peer_lost, "a rank was lost.");
    try {
      for (std::size_t k = 0; k < rounds_.size() && !lost_; ++k) move(k);
    } catch (RankLost const&) {
      lost_ = true;
    }
    if (!lost_) open_memory([&] { add(); });
  }
  void start(void* stream) override { enqueue(stream); }
  void finish(void*) override {}
  bool test() override { return !lost_; }
  bool wait(double) override { return !lost_; }
  bool lost() const override { return lost_; }
  void leave() noexcept override {
    require_no_graph();
    lost_ = true;
    if (endpoint_) endpoint_->abort();
  }
  bool may_be_recorded() const override {  // where kernels would wait
    return endpoint_ ? endpoint_->replays_anywhere() : setup_.sharers == 1;
  }
  std::string describe() const override { return endpoint_ ? endpoint_->describe() : "played"; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(staging_.size()); }

 private:
  void move(std::size_t k) {
    MessageRound const& round = rounds_[k];
    int const index = static_cast<int>(k);
    open_memory([&] { pack(round, endpoint_ ? endpoint_->outgoing(index) : out_[k].data()); });
    carry(k);
    if (lost_) return;
    open_memory([&] { unpack(round, endpoint_ ? endpoint_->incoming(index) : in_[k].data()); });
  }
  void pack(MessageRound const& round, std::byte* to) {
    for (MessageItem const& item : round.from) {
      std::byte const* staged = staging_.data() + static_cast<std::size_t>(item.vector_offset) * item_bytes_;
      for (Field const& field : fields_) {
        auto const bytes = static_cast<std::int64_t>(field.item_bytes);
        std::memcpy(to,
                    item.staging != 0
                        ? staged
                        : static_cast<std::byte const*>(field.send) + item.vector_offset * bytes,
                    field.item_bytes);
        to += field.item_bytes;
        staged += field.item_bytes;
      }
    }
  }
  void carry(std::size_t k) {
    if (endpoint_) {
      DirectQueue queue(nullptr);
      endpoint_->send(queue, static_cast<int>(k), nullptr);
      endpoint_->await(queue, static_cast<int>(k), nullptr);
      return;
    }
    if (copies_own_)  // what a rank sends to itself is no message of the host's
      for (StreamPart const& part : setup_.rounds[k].out)
        if (part.rank == setup_.rank)
          std::memcpy(in_[k].data() + part.there, out_[k].data() + part.first,
                      static_cast<std::size_t>(part.bytes));
    if (!setup_.host->carry(static_cast<int>(k))) lost_ = true;
  }
  void unpack(MessageRound const& round, std::byte const* from) {
    for (MessageItem const& item : round.to) {
      std::byte* staged = staging_.data() + static_cast<std::size_t>(item.vector_offset) * item_bytes_;
      for (Field const& field : fields_) {
        auto const bytes = static_cast<std::int64_t>(field.item_bytes);
        std::memcpy(
            item.staging != 0 ? staged : static_cast<std::byte*>(field.receive) + item.vector_offset * bytes,
            from, field.item_bytes);
        from += field.item_bytes;
        staged += field.item_bytes;
      }
    }
  }
  template <class T>
  static void add_numbers(SumField const& field, std::vector<std::int32_t> const& sum,
                          std::byte const* from) {
    for (std::size_t k = 0; k < sum.size(); ++k)
      for (int v = 0; v < field.values; ++v) {
        T one{};
        std::memcpy(
            &one,
            from + (k * static_cast<std::size_t>(field.values) + static_cast<std::size_t>(v)) * sizeof(T),
            sizeof one);
        static_cast<T*>(field.owned)[std::int64_t{sum[k]} * field.values + v] += one;
      }
  }
  void add() {
    for (std::size_t f = 0; f < added_.fields.size(); ++f) {
      SumField const& field = added_.fields[f];
      std::byte const* const from = contributions_[f].data();
      switch (field.element) {
        case Element::f32:
          add_numbers<float>(field, added_.sum, from);
          break;
        case Element::f64:
          add_numbers<double>(field, added_.sum, from);
          break;
        case Element::i32:
          add_numbers<std::uint32_t>(field, added_.sum, from);
          break;
        case Element::i64:
          add_numbers<std::uint64_t>(field, added_.sum, from);
          break;
      }
    }
  }

  StreamSetup setup_;
  std::unique_ptr<StreamEndpoint> endpoint_;
  bool copies_own_;
  std::vector<MessageRound> rounds_;
  std::vector<Field> fields_;
  AddedFields added_;
  std::size_t item_bytes_ = 0;
  std::vector<std::byte> staging_;
  std::vector<std::vector<std::byte>> out_, in_, contributions_;
  bool lost_ = false;
};

/// What is queued is done at once; a graph is what queues it.
class PlayedBench final : public Workbench {
 public:
  explicit PlayedBench(int device) : device_(device) {}
  ~PlayedBench() override {
    drop_graph();
    for (auto const& block : memory_) TakenMemory::remove(block.data());
  }
  void* stream() override { return this; }
  std::byte* take(std::size_t bytes) override {
    memory_.emplace_back(bytes + 1);
    TakenMemory::add(memory_.back().data(), bytes + 1, device_);
    return memory_.back().data();
  }
  void put(std::byte* to, void const* from, std::size_t bytes) override { copy(to, from, bytes); }
  void get(void* to, std::byte const* from, std::size_t bytes) override { copy(to, from, bytes); }
  void record(std::function<void()> const& queue) override {
    drop_graph();
    graph_ = queue;
    ++graphs;
  }
  void replay() override { graph_(); }
  void drop_graph() noexcept override {
    if (graph_) --graphs;
    graph_ = nullptr;
  }
  bool is_done() override { return true; }
  void queue_steps(kernel::KernelExchange const&, void const*, void*, int) override {
    throw Error(ErrorCode::environment, "played GPUs have no kernels.");
  }
  int most_step_blocks() override { return 4; }
  void queue_product(SparseProduct const& p) override {
    for (std::int64_t at = 0; at < p.rows * p.columns; ++at) {
      std::int64_t const row = at / p.columns;
      p.y[at] = 0;
      for (std::int64_t k = p.offset[row]; k < p.offset[row + 1]; ++k)
        p.y[at] += p.value[k] * p.b[p.first[k] + at % p.columns];
    }
  }

 private:
  static void copy(void* to, void const* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  int device_;
  std::vector<std::vector<std::byte>> memory_;
  std::function<void()> graph_;
};

/// Sends and receives of ranks that are threads, done at once; where PLAYED_NCCL is set. "wrong": the
/// last byte of every message is another one; a number: rank 1 throws when that call of it is done.
char const* played_nccl() { return std::getenv("PLAYED_NCCL"); }

class PlayedGroup final : public GroupedSends {
 public:
  explicit PlayedGroup(int rank) : rank_(rank) {}
  void enqueue(std::vector<GroupedPart> const& out, std::vector<GroupedPart> const& in, void*) override {
    for (GroupedPart const& part : out) {
      std::vector<std::byte> message(part.at, part.at + part.bytes);
      if (std::string_view(played_nccl()) == "wrong") message.back() ^= std::byte{1};
      std::lock_guard const lock(mutex());
      between()[{rank_, part.rank}].push_back(std::move(message));
    }
    for (GroupedPart const& part : in) {
      auto const came = [&] {
        std::lock_guard const lock(mutex());
        auto& queue = between()[{part.rank, rank_}];
        if (queue.empty()) return false;
        std::copy(queue.front().begin(), queue.front().end(), part.at);
        queue.pop_front();
        return true;
      };
      if (wait_for(
              came, [] { return false; }, Deadline::after(240)) != Waited::done)
        throw Error(ErrorCode::peer_lost, "a message of a played group did not come.");
    }
    if (++calls_ == std::atoi(played_nccl()) && rank_ == 1)
      throw Error(ErrorCode::environment, "a played group has failed on rank 1.");
  }
  void abort() noexcept override {}
  std::string describe() const override { return "played group"; }

 private:
  using Messages = std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>>;
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static Messages& between() {
    static Messages all;
    return all;
  }
  int rank_, calls_ = 0;
};

class PlayedLibrary final : public ExchangeLibrary {
 public:
  int devices() const override { return 2; }
  std::string vendor() const override { return "cuda"; }
  std::vector<TransportFacts> transports() const override {
    return {{"nccl", "", played_nccl() != nullptr ? "" : "played GPUs have no NCCL", ""},
            {"nvshmem", "", "played GPUs have no NVSHMEM", ""}};
  }
  int device_of(void const* address) const override { return owner_of(address); }
  std::string bus_of(int device) const override { return "bus " + std::to_string(bus_for_this_rank(device)); }
  SymmetricOffer symmetric_offer(GpuTransport, StreamSetup const&) const override {
    throw Error(ErrorCode::environment, "the library is absent here.");
  }
  std::shared_ptr<SymmetricMemory> symmetric_memory(GpuTransport, StreamSetup const&,
                                                    std::vector<SymmetricOffer> const&) const override {
    return nullptr;
  }
  std::unique_ptr<BoundExchange> bind(ExchangeProblem const& problem) const override {
    return std::make_unique<Played>(problem);
  }
  std::unique_ptr<KernelWindow> kernel_window(KernelProblem const&) const override {
    throw Error(ErrorCode::environment, "played GPUs have no kernels.");
  }
  std::unique_ptr<Workbench> workbench(int device) const override {
    return std::make_unique<PlayedBench>(device);
  }
  UniqueId group_name() const override { return {}; }
  std::unique_ptr<GroupedSends> grouped_sends(GroupedRank const& mine) const override {
    return std::make_unique<PlayedGroup>(mine.rank);
  }
};

}  // namespace
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) hostless::gpu::ExchangeLibrary* hostless_gpu_exchanges() {
  static hostless::gpu::PlayedLibrary library;
  return &library;
}
