#pragma once
// Ranks that share one GPU and ranks on two, for tests of queues whose work GPUs' streams do.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu_queue_home.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::test {

constexpr std::size_t little = 1000, slot = 65536, large = 100000, huge = std::size_t{1} << 22;

inline std::string why_no_messages() {
  try {
    gpu::message_library();
  } catch (Error const& e) {
    if (e.code() != ErrorCode::environment) throw;
    std::string why = e.what();
    std::replace(why.begin(), why.end(), '\n', ' ');  // of a skip one line is read
    return why;
  }
  return {};
}
/// Whether the processor plays the GPU: long messages show nothing then.
inline bool is_played() { return gpu::message_library().vendor() == "played"; }
inline int gpus_here() { return gpu::message_library().devices(); }

inline GpuQueueHome& home_of(int gpus, QueueType type) {
  static auto* const used = new std::map<std::pair<int, QueueType>, GpuQueueHome*>;
  auto& home = (*used)[{gpus, type}];
  if (home == nullptr) home = new GpuQueueHome(gpus, type);
  return *home;
}
/// For the tests that know a QueueHome alone.
class Lent final : public QueueHome {
 public:
  explicit Lent(GpuQueueHome& of) : of_(of) {}
  void enter(Transport& t) override { of_.enter(t); }
  void again() override { of_.again(); }
  int gpu() const override { return of_.gpu(); }
  QueueType type() const override { return of_.type(); }
  void* stream(int queue) override { return of_.stream(queue); }
  std::byte* memory(std::size_t bytes) override { return of_.memory(bytes); }
  std::byte* other_memory(std::size_t bytes) override { return of_.other_memory(bytes); }
  void pass(int queue, std::byte* to, std::byte const* from, std::size_t bytes) override {
    of_.pass(queue, to, from, bytes);
  }

 private:
  GpuQueueHome& of_;
};

/// GPUs, and ranks that share them, or have one each.
struct Shared {
  int gpus, ranks;
  QueueType type = QueueType::peer;
};
inline std::string name_of(Shared const& s) {
  if (s.type == QueueType::nccl) return std::to_string(s.ranks) + "_ranks_by_nccl";
  return std::to_string(s.ranks) + "_ranks_on_" + std::to_string(s.gpus) + (s.gpus == 1 ? "_gpu" : "_gpus");
}

class OnGpus : public testing::TestWithParam<Shared> {
 protected:
  void SetUp() override {
    if (std::string const why = why_no_messages(); !why.empty()) GTEST_SKIP() << why;
    if (gpus_here() < GetParam().gpus)
      GTEST_SKIP() << gpus_here() << " GPUs here; ranks on " << GetParam().gpus << " were to be tried.";
    set_queue_home() = std::make_unique<Lent>(home());
  }
  static GpuQueueHome& home() { return home_of(GetParam().gpus, GetParam().type); }
  static int ranks() { return GetParam().ranks; }
  /// On every rank; what it returns is a failure.
  template <class Work>
  static void on_ranks(int count, Work const& work) {
    run_with_threads_transport(count, [&](Transport& transport) {
      home().enter(transport);
      std::string const wrong = work(transport);
      if (!wrong.empty()) throw std::runtime_error(wrong);
    });
  }
};
inline auto const named = [](auto const& one) { return name_of(one.param); };

}  // namespace hostless::test
