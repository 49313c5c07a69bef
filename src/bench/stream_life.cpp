#include "bench/stream_life.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "bench/life_part.hpp"
#include "bench/patient_wait.hpp"
#include "queue/gpu/message_library.hpp"

namespace hostless::bench {
namespace {

using queue::GridBox;
using queue::LifeGrid;
constexpr int steps_at_once = 20;  // even: two grids and two sets of buffers take turns
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// A rank's box on its GPU, and eight buffers each way.
class GpuBox : public LifePart {
 public:
  GpuBox(Life const& life, int rank, int gpus)
      : LifePart(life, rank),
        bench_(gpu::message_library().bench(rank % gpus)),
        grid_{size[0], size[1], low[0], low[1]} {
    for (std::byte*& one : cells_) one = bench_->memory(grid_.bytes());
    constexpr std::size_t counts_bytes = 2 * sizeof(std::uint64_t);
    counts_ = bench_->memory(counts_bytes);
    shown_ = bench_->pinned(counts_bytes);
    bench_->fill_life(cells_[0], grid_);
    bench_->wait();
  }
  gpu::StreamBench& bench() { return *bench_; }
  /// Buffers for all directions, one behind the other.
  std::size_t buffer_bytes() const {
    std::size_t all = 0;
    for (int d = 0; d < directions; ++d) all += aligned(length(d));
    return all;
  }
  std::byte* buffer(std::byte* first, int direction) const {
    for (int d = 0; d < direction; ++d) first += aligned(length(d));
    return first;
  }
  void pack(std::byte* out) {
    pass([&](int d) { return buffer(out, d); }, true);
  }
  /// What this rank is its own neighbour for goes to where it is unpacked from.
  void pack(std::byte* out, std::byte* in, int own_rank) {
    pass(
        [&](int d) {
          bool const is_own = neighbour[static_cast<std::size_t>(d)] == own_rank;
          return is_own ? buffer(in, opposite(d)) : buffer(out, d);
        },
        true);
  }
  void unpack(std::byte* in) {
    pass([&](int d) { return buffer(in, d); }, false);
  }
  void step() {
    bench_->step_life(cells_[1 - now_], cells_[now_], grid_);
    now_ = 1 - now_;
  }
  /// Once: alive, and wrong when all gliders should have gone `shift` cells.
  std::array<std::uint64_t, 2> count_cells(std::int64_t shift) {
    std::array<std::uint64_t, 2> counts{};
    bench_->count_life(cells_[now_], grid_, shift, reinterpret_cast<std::uint64_t*>(counts_));
    bench_->add_to_bytes(shown_, counts_, sizeof counts, 0);
    bench_->wait();
    std::memcpy(counts.data(), shown_, sizeof counts);
    return counts;
  }

 private:
  template <class BufferOf>
  void pass(BufferOf const& buffer_of, bool own) {
    GridBox boxes[directions];
    for (int d = 0; d < directions; ++d) {
      Cells const of = cells(d, own);
      boxes[d] = {buffer_of(d), grid_.at(of.first[0], of.first[1]), of.count[0], of.count[1]};
    }
    bench_->pass_boxes(cells_[now_], grid_.line(), boxes, !own);
  }
  std::unique_ptr<gpu::StreamBench> bench_;
  LifeGrid grid_;
  std::byte *cells_[2] = {nullptr, nullptr}, *counts_ = nullptr, *shown_ = nullptr;
  int now_ = 0;
};

class StreamStepper {
 public:
  virtual ~StreamStepper() = default;
  /// A multiple of steps_at_once; is over when they are done.
  virtual void steps(int count) = 0;
};

class QueueStepper final : public StreamStepper {
 public:
  QueueStepper(Transport& transport, GpuBox& box, int gpus, QueueType type, StreamLifeWay const& way)
      : box_(box),
        ready_(way.driver == Driver::ready),
        by_graph_(way.by_graph),
        communicator_(transport, transport.group().rank() % gpus, type),
        queue_(type, box.bench().stream()) {
    requests_.reserve(4 * directions);
    for (int set = 0; set < sets(); ++set) make(set);
    std::vector<Request*> all;
    if (ready_) {
      barrier_ = communicator_.barrier_init();
      all.push_back(&barrier_);
    }
    for (int set = 0; set < sets(); ++set)
      for (auto const* const some : {&sends_[set], &receives_[set]})
        all.insert(all.end(), some->begin(), some->end());
    match(all);
    if (by_graph_) box_.bench().record([this] { enqueue(steps_at_once); });
    transport.group().barrier();  // a graph is made before anybody waits
  }
  void steps(int count) override {
    if (!by_graph_) enqueue(count);
    for (int k = 0; by_graph_ && k < count; k += steps_at_once) box_.bench().replay();
    queue_.wait();
  }

 private:
  int sets() const { return ready_ ? 2 : 1; }
  void make(int set) {
    out_[set] = box_.bench().memory(box_.buffer_bytes());
    in_[set] = box_.bench().memory(box_.buffer_bytes());
    for (int d = 0; d < directions; ++d) {
      int const tag = d * 2 + set, back = opposite(d) * 2 + set;
      int const peer = box_.neighbour[static_cast<std::size_t>(d)];
      std::span<std::byte> const out(box_.buffer(out_[set], d), box_.length(d)),
          in(box_.buffer(in_[set], d), box_.length(d));
      requests_.push_back(ready_ ? communicator_.ready_send_init(out, peer, tag)
                                 : communicator_.send_init(out, peer, tag));
      sends_[set].push_back(&requests_.back());
      requests_.push_back(communicator_.receive_init(in, peer, back));
      receives_[set].push_back(&requests_.back());
    }
  }
  void enqueue(int count) {
    Request* const barrier = &barrier_;
    if (ready_) {
      std::vector<Request*> first = receives_[0];
      first.push_back(barrier);
      queue_.enqueue_start(first);
      queue_.enqueue_wait({&barrier, 1});
    }
    for (int k = 0; k < count; ++k) {
      int const set = ready_ ? k % 2 : 0;
      box_.pack(out_[set]);
      std::vector<Request*> starts = sends_[set], waits = sends_[set];
      waits.insert(waits.end(), receives_[set].begin(), receives_[set].end());
      auto const& next = receives_[ready_ ? 1 - set : set];
      if (!ready_ || k + 1 < count) starts.insert(starts.end(), next.begin(), next.end());
      queue_.enqueue_start(starts);
      queue_.enqueue_wait(waits);
      box_.unpack(in_[set]);
      box_.step();
    }
  }
  GpuBox& box_;
  bool ready_, by_graph_;
  Communicator communicator_;
  Queue queue_;
  std::byte *out_[2] = {nullptr, nullptr}, *in_[2] = {nullptr, nullptr};
  std::vector<Request> requests_;
  std::vector<Request*> sends_[2], receives_[2];
  Request barrier_;
};

class HostDrivenStepper final : public StreamStepper {
 public:
  HostDrivenStepper(Transport& transport, GpuBox& box, bool in_gpus, Protocol const& protocol)
      : box_(box), rank_(transport.group().rank()), out_(memory(in_gpus)), in_(memory(in_gpus)) {
    Binding binding;
    int const rank = rank_;
    auto const id = [](int source, int direction) { return source * directions + direction; };
    for (int d = 0; d < directions; ++d) {
      int const peer = box.neighbour[static_cast<std::size_t>(d)];
      if (peer == rank) continue;
      binding.out.push_back({id(rank, d), peer, box.buffer(out_, d), box.length(d)});
      binding.in.push_back({id(peer, opposite(d)), peer, box.buffer(in_, d), box.length(d)});
    }
    messages_ = static_cast<int>(binding.out.size());
    endpoint_ = transport.bind(binding);
    await_.emplace(*endpoint_, protocol.limits, "in a step of Life");
  }
  void steps(int count) override {
    for (int k = 0; k < count; ++k) step();
    box_.bench().wait();
  }

 private:
  std::byte* memory(bool in_gpus) {
    std::size_t const bytes = box_.buffer_bytes();
    return in_gpus ? box_.bench().memory(bytes) : box_.bench().pinned(bytes);
  }
  void step() {
    epoch_ = epoch_ == 0x7ffffffe ? 1 : epoch_ + 1;
    box_.pack(out_, in_, rank_);
    box_.bench().wait();  // what unpacks is done then, too: its buffers may be stored to
    for (int m = 0; m < messages_; ++m) endpoint_->receive(m, epoch_);
    for (int m = 0; m < messages_; ++m) endpoint_->send(m, epoch_);
    int sent = 0, received = 0;
    (*await_)([&] {
      while (sent < messages_ && endpoint_->sent(sent)) ++sent;
      while (received < messages_ && endpoint_->received(received)) ++received;
      return sent == messages_ && received == messages_;
    });
    box_.unpack(in_);
    box_.step();
  }
  GpuBox& box_;
  int rank_;
  std::byte *out_, *in_;
  int messages_ = 0;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<PatientWait> await_;
  std::uint32_t epoch_ = 0;
};

std::unique_ptr<StreamStepper> stepper_of(Transport& transport, GpuBox& box, int gpus, QueueType type,
                                          StreamLifeWay const& way, Protocol const& protocol) {
  if (way.driver == Driver::host)
    return std::make_unique<HostDrivenStepper>(transport, box, way.in_gpus, protocol);
  return std::make_unique<QueueStepper>(transport, box, gpus, type, way);
}

int rounded(int steps) { return (steps + steps_at_once - 1) / steps_at_once * steps_at_once; }

}  // namespace

LifeTiming stream_life(Transport& transport, Life const& what, int gpus, StreamLifeWay const& way,
                       Protocol const& protocol) {
  Group& group = transport.group();
  check_life(what, group.size());
  std::unique_ptr<GpuBox> box;
  group.together([&] { box = std::make_unique<GpuBox>(what, group.rank(), gpus); });
  LifeTiming timing;
  std::int64_t messages = 0, bytes = 0, done = 0;
  box->count(group.rank(), messages, bytes);
  timing.messages = group.max(messages);
  timing.bytes = group.max(bytes);
  Protocol whole = protocol;
  whole.steps = rounded(protocol.steps);
  whole.warm_up = rounded(protocol.warm_up);
  {
    auto const stepper = stepper_of(transport, *box, gpus, what.type, way, protocol);
    timing.step = time_runs(
        group, whole, [] {},
        [&](int steps) {
          stepper->steps(steps);
          done += steps;
        });
    auto const [alive, wrong] = box->count_cells(done / 4);
    timing.alive = group.sum(static_cast<std::int64_t>(alive));
    timing.is_right = !group.any(wrong != 0);
    group.barrier();  // nobody leaves while others wait
  }
  return timing;
}

}  // namespace hostless::bench
