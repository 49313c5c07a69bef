// Proves that kernels of one GPU can store into the memory of another, by doing it: flagged words there and
// back (ping_pong.gpu.cpp), and a large array whose every value is then looked at there.
#include "transport/memory/paths.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "device/queue.hpp"

namespace hostless::gpu {
namespace {

constexpr std::size_t stored_flagged_words = std::size_t{4} << 20;  // of 16 bytes
constexpr int few_bounces = 100, many_bounces = 10000;
constexpr int repeats = 5;
constexpr double deadline_s = 2;

/// What flagged word k of the array holds after round `seed`; neighbours and rounds differ in every part.
__device__ __forceinline__ FlaggedWord pattern(std::uint64_t k, std::uint32_t seed) {
  auto const low = static_cast<std::uint32_t>(k) * 2654435761u + seed;
  return {{low, ~low, low ^ 0x5bd1e995u, seed}};
}

__global__ void store_kernel(FlaggedWord* there, std::uint64_t count, std::uint32_t seed) {
  std::uint64_t const step = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t k = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step)
    there[k] = pattern(k, seed);
}

__global__ void look_kernel(FlaggedWord const* here, std::uint64_t count, std::uint32_t seed,
                            std::uint32_t* wrong) {
  std::uint64_t const step = std::uint64_t{gridDim.x} * block_threads;
  std::uint32_t mine = 0;
  for (std::uint64_t k = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    FlaggedWord const found = here[k], expected = pattern(k, seed);
    bool same = true;
    for (int part = 0; part < 4; ++part) same = same && found.part[part] == expected.part[part];
    mine += same ? 0 : 1;
  }
  if (mine > 0) atomicAdd(wrong, mine);
}

/// What a GPU lends to the proofs of its paths.
class TestedGpu {
 public:
  explicit TestedGpu(int device) : device_(device) {
    use_device(device);
    HOSTLESS_DEVICE_PROPERTIES properties{};
    check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
    blocks_ = 4 * properties.multiProcessorCount;
    stream_ = std::make_unique<Stream>();
    begin_ = std::make_unique<TimedEvent>();
    end_ = std::make_unique<TimedEvent>();
    array_ = Array<FlaggedWord>(stored_flagged_words);
    count_ = Array<std::uint32_t>(1);
    store(array_.data(), 0);  // loads the kernels
    wrong_flagged_words(0);
    stream_->wait();
  }

  void clear_array() {
    use_device(device_);
    array_.clear();
  }
  FlaggedWord* array() const { return array_.data(); }

  void store(FlaggedWord* there, std::uint32_t seed) {
    use_device(device_);
    begin_->record(*stream_);
    launch_kernel(reinterpret_cast<void const*>(&store_kernel), blocks_, block_threads, stream_->get(), there,
                  std::uint64_t{stored_flagged_words}, seed);
    end_->record(*stream_);
  }
  /// Of the own array; waits for it.
  std::uint32_t wrong_flagged_words(std::uint32_t seed) {
    use_device(device_);
    count_.clear();
    launch_kernel(reinterpret_cast<void const*>(&look_kernel), blocks_, block_threads, stream_->get(),
                  static_cast<FlaggedWord const*>(array_.data()), std::uint64_t{stored_flagged_words}, seed,
                  count_.data());
    stream_->wait();
    std::uint32_t count = 0;
    count_.get(&count, 1);
    return count;
  }
  void wait() const {
    use_device(device_);
    stream_->wait();
  }
  /// Of the last stores, after they are done.
  double seconds() const { return end_->seconds_since(*begin_); }

 private:
  int device_, blocks_ = 0;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<TimedEvent> begin_, end_;
  Array<FlaggedWord> array_;
  Array<std::uint32_t> count_;
};

void prove(TestedGpu& from, TestedGpu& to, PathFacts& facts) {
  facts.problem = open_path(facts.from, facts.to);
  if (!facts.problem.empty()) return;
  to.clear_array();
  double best = 0;
  for (std::uint32_t round = 1; round <= repeats; ++round) {
    from.store(to.array(), round);
    from.wait();
    std::uint32_t const wrong = to.wrong_flagged_words(round);
    if (wrong > 0) {
      facts.problem = std::to_string(wrong) + " of " + std::to_string(stored_flagged_words) +
                      " stored words are not what was stored";
      return;
    }
    best = std::max(best, static_cast<double>(stored_flagged_words * sizeof(FlaggedWord)) / from.seconds());
  }
  PingPongRequest request{facts.from, facts.to};
  request.warm_up = few_bounces;
  request.steps = many_bounces;
  request.repeat = repeats;
  request.deadline_s = deadline_s;
  PingPongFacts const bounced = ping_pong(request);
  facts.problem = bounced.problem;
  if (!facts.problem.empty()) return;
  facts.bytes_per_s = best;
  facts.flagged_word_s = *std::min_element(bounced.events_s.begin(), bounced.events_s.end());
}

}  // namespace

std::string open_path(int from, int to) {
  use_device(from);
  if (from == to) return {};
  int can = 0;
  check(HOSTLESS_GPU(DeviceCanAccessPeer)(&can, from, to), "asking whether GPUs reach each other");
  if (can == 0)
    return "GPU " + std::to_string(from) + " cannot reach the memory of GPU " + std::to_string(to);
  static std::mutex opening;
  static std::set<std::pair<int, int>> open;  // asking for what is open already is an error of the driver's
  std::lock_guard const alone(opening);
  if (open.count({from, to}) != 0) return {};
  auto const code = HOSTLESS_GPU(DeviceEnablePeerAccess)(to, 0);
  if (code == HOSTLESS_GPU(ErrorPeerAccessAlreadyEnabled)) {
    (void)HOSTLESS_GPU(GetLastError)();  // somebody else in this process has opened it; the driver forgets
  } else {
    check(code, "opening the memory of another GPU");
  }
  open.insert({from, to});
  return {};
}

std::vector<PathFacts> prove_paths(int devices) {
  std::vector<PathFacts> all;
  if (devices < 2) return all;
  std::vector<std::unique_ptr<TestedGpu>> tested;
  std::vector<std::string> problems(static_cast<std::size_t>(devices));
  for (int device = 0; device < devices; ++device) {
    auto& one = tested.emplace_back();
    try {
      one = std::make_unique<TestedGpu>(device);
    } catch (Error const& error) {
      problems[static_cast<std::size_t>(device)] = error.what();
    }
  }
  for (std::size_t from = 0; from < tested.size(); ++from) {
    for (std::size_t to = 0; to < tested.size(); ++to) {
      if (from == to) continue;
      PathFacts& facts = all.emplace_back();
      facts.from = static_cast<int>(from);
      facts.to = static_cast<int>(to);
      facts.problem = problems[tested[from] ? to : from];
      if (!facts.problem.empty()) continue;
      try {
        prove(*tested[from], *tested[to], facts);
      } catch (Error const& error) {
        facts.problem = error.what();
      }
    }
  }
  return all;
}

}  // namespace hostless::gpu
