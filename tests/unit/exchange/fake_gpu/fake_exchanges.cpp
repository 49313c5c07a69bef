// Exchanges of a GPU library whose GPU is the processor: what kernels would do is done when it is queued, and
// the host carries at once, as where kernels must not wait. For the host's half of exchanges between GPUs. A
// program, or another part of the library, says what memory is the GPU's, and what else must be done before
// it is touched.
#include <cstring>
#include <string>
#include <vector>

#include "exchange/gpu/exchange_library.hpp"
#include "hostless/base/error.hpp"

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

template <class Use>
void open_memory(Use use) {
  if (fake_gpu_open == nullptr) return use();
  fake_gpu_open([](void* user) { (*static_cast<Use*>(user))(); }, &use);
}
int bus_for_this_rank(int device) { return fake_gpu_bus == nullptr ? device : fake_gpu_bus(device); }

class Played final : public BoundExchange {
 public:
  explicit Played(ExchangeProblem const& problem)
      : setup_(problem.setup),
        copies_own_(facts_of(problem.transport).needs_transport != nullptr),
        levels_(*problem.levels),
        fields_(problem.fields) {
    for (Field const& field : fields_) item_bytes_ += field.item_bytes;
    staging_.resize(static_cast<std::size_t>(problem.staging) * item_bytes_);
    for (StreamLevel const& level : setup_.levels) {
      out_.emplace_back(static_cast<std::size_t>(level.out_bytes));
      in_.emplace_back(static_cast<std::size_t>(level.in_bytes));
    }
    if (problem.added == nullptr) return;
    added_ = *problem.added;
    for (Field& field : fields_) {
      contributions_.emplace_back(static_cast<std::size_t>(problem.ghosts) * field.item_bytes);
      field.receive = contributions_.back().data();
    }
  }
  StreamContact contact() override { return {}; }
  std::vector<StreamBuffers> message_buffers() const override {
    std::vector<StreamBuffers> all;
    for (std::size_t k = 0; k < out_.size(); ++k)
      all.emplace_back(out_[k].data(), const_cast<std::byte*>(in_[k].data()));
    return all;
  }
  void connect(std::vector<StreamContact> const&) override {}
  void enqueue(void* stream) override {
    if (fake_gpu_finish != nullptr) fake_gpu_finish(stream);
    if (lost_) throw Error(ErrorCode::peer_lost, "a rank was lost.");
    for (std::size_t k = 0; k < levels_.size() && !lost_; ++k) move(k);
    if (!lost_) open_memory([&] { add(); });
  }
  void start(void* stream) override { enqueue(stream); }
  void finish(void*) override {}
  bool test() override { return !lost_; }
  bool wait(double) override { return !lost_; }
  bool lost() const override { return lost_; }
  void leave() noexcept override { lost_ = true; }
  bool may_be_recorded() const override { return setup_.sharers == 1; }  // where kernels would wait
  std::string describe() const override { return "played"; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(staging_.size()); }

 private:
  void move(std::size_t k) {
    open_memory([&] { pack(k); });
    if (copies_own_)  // what a rank sends to itself is no message of the host's
      for (StreamPart const& part : setup_.levels[k].out)
        if (part.rank == setup_.rank)
          std::memcpy(in_[k].data() + part.there, out_[k].data() + part.first,
                      static_cast<std::size_t>(part.bytes));
    if (!setup_.host->exchange(static_cast<int>(k))) {
      lost_ = true;
      return;
    }
    open_memory([&] { unpack(k); });
  }
  void pack(std::size_t k) {
    std::byte* to = out_[k].data();
    for (MessageItem const& item : levels_[k].from) {
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
  void unpack(std::size_t k) {
    std::byte const* from = in_[k].data();
    for (MessageItem const& item : levels_[k].to) {
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
  bool copies_own_;
  std::vector<MessageLevel> levels_;
  std::vector<Field> fields_;
  AddedFields added_;
  std::size_t item_bytes_ = 0;
  std::vector<std::byte> staging_;
  std::vector<std::vector<std::byte>> out_, in_, contributions_;
  bool lost_ = false;
};

class PlayedLibrary final : public ExchangeLibrary {
 public:
  int devices() const override { return 2; }
  std::string vendor() const override { return "cuda"; }
  int device_of(void const* address) const override {
    return fake_gpu_of == nullptr ? -1 : fake_gpu_of(address);
  }
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
};

}  // namespace
}  // namespace hostless::gpu

extern "C" __attribute__((visibility("default"))) hostless::gpu::ExchangeLibrary* hostless_gpu_exchanges() {
  static hostless::gpu::PlayedLibrary library;
  return &library;
}
