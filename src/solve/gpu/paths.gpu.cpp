// Proves that kernels of one GPU can store into the memory of another, by doing it: words there and back
// between two kernels that run at the same time, and a large array whose every value is then looked at there.
#include "solve/gpu/paths.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "device/memory.hpp"
#include "run/gpu/launch.hpp"
#include "run/gpu/words.gpu.hpp"

namespace hostless::gpu {
namespace {

constexpr std::size_t stored_words = std::size_t{4} << 20;  // of 16 bytes
constexpr std::uint32_t few_bounces = 100, many_bounces = 10000;
constexpr int repeats = 5;
constexpr double deadline_s = 2;

/// What word k of the array holds after round `seed`; neighbours and rounds differ in every part.
__device__ __forceinline__ Word pattern(std::uint64_t k, std::uint32_t seed) {
  auto const low = static_cast<std::uint32_t>(k) * 2654435761u + seed;
  return {{low, ~low, low ^ 0x5bd1e995u, seed}};
}

__global__ void store_kernel(Word* there, std::uint64_t count, std::uint32_t seed) {
  std::uint64_t const step = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t k = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step)
    there[k] = pattern(k, seed);
}

__global__ void look_kernel(Word const* here, std::uint64_t count, std::uint32_t seed, std::uint32_t* wrong) {
  std::uint64_t const step = std::uint64_t{gridDim.x} * block_threads;
  std::uint32_t mine = 0;
  for (std::uint64_t k = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; k < count; k += step) {
    Word const found = here[k], expected = pattern(k, seed);
    bool same = true;
    for (int part = 0; part < 4; ++part) same = same && found.part[part] == expected.part[part];
    mine += same ? 0 : 1;
  }
  if (mine > 0) atomicAdd(wrong, mine);
}

/// One thread: `begins` stores a word there and awaits the answer here, the other one answers. `done` becomes
/// how often that went well.
__global__ void bounce_kernel(Word const* here, Word* there, std::uint32_t bounces, std::uint32_t begins,
                              std::uint64_t deadline_cycles, std::uint32_t* done) {
  std::uint32_t k = 0;
  for (; k < bounces; ++k) {
    std::uint32_t const epoch = k + 1;
    Word word;
    if (begins != 0) put_value(there, 0.5 * epoch, epoch);
    if (!await_word(here, word, epoch, deadline_cycles) || value_of(word) != 0.5 * epoch) break;
    if (begins == 0) put_value(there, 0.5 * epoch, epoch);
  }
  *done = k;
}

void use(int device) { check(HOSTLESS_GPU(SetDevice)(device), "choosing a GPU"); }

template <class... Parameters>
void launch(void const* kernel, int blocks, int threads, Stream const& stream, Parameters... parameters) {
  void* all[] = {&parameters...};
  check(HOSTLESS_GPU(LaunchKernel)(kernel, dim3(static_cast<unsigned>(blocks)),
                                   dim3(static_cast<unsigned>(threads)), all, 0, stream.get()),
        "launching a kernel");
}

/// What a GPU lends to the proofs of its paths.
class Place {
 public:
  explicit Place(int device) : device_(device) {
    use(device);
    HOSTLESS_DEVICE_PROPERTIES properties{};
    check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
    blocks_ = 4 * properties.multiProcessorCount;
    int kilohertz = 0;
    check(HOSTLESS_GPU(DeviceGetAttribute)(&kilohertz, HOSTLESS_CLOCK_RATE, device), "asking for the clock");
    deadline_cycles_ = static_cast<std::uint64_t>(deadline_s * 1e3 * kilohertz);
    stream_ = std::make_unique<Stream>();
    begin_ = std::make_unique<Event>();
    end_ = std::make_unique<Event>();
    array_ = Array<Word>(stored_words);
    word_ = Array<Word>(1);
    count_ = Array<std::uint32_t>(1);
    bounce(word_.data(), 0, false);  // loads the kernels: a wait for another GPU would hold that up
    store(array_.data(), 0);
    wrong_words(0);
    stream_->wait();
  }

  void clear_word() {
    use(device_);
    word_.clear();
  }
  void clear_array() {
    use(device_);
    array_.clear();
  }
  Word* word() const { return word_.data(); }
  Word* array() const { return array_.data(); }

  void bounce(Word* there, std::uint32_t bounces, bool begins) {
    use(device_);
    begin_->record(*stream_);
    launch(reinterpret_cast<void const*>(&bounce_kernel), 1, 1, *stream_,
           static_cast<Word const*>(word_.data()), there, bounces, std::uint32_t{begins ? 1u : 0u},
           deadline_cycles_, count_.data());
    end_->record(*stream_);
  }
  void store(Word* there, std::uint32_t seed) {
    use(device_);
    begin_->record(*stream_);
    launch(reinterpret_cast<void const*>(&store_kernel), blocks_, block_threads, *stream_, there,
           std::uint64_t{stored_words}, seed);
    end_->record(*stream_);
  }
  /// Of the own array; waits for it.
  std::uint32_t wrong_words(std::uint32_t seed) {
    use(device_);
    count_.clear();
    launch(reinterpret_cast<void const*>(&look_kernel), blocks_, block_threads, *stream_,
           static_cast<Word const*>(array_.data()), std::uint64_t{stored_words}, seed, count_.data());
    return counted();
  }
  void wait() const {
    use(device_);
    stream_->wait();
  }
  /// What the last kernel counted, after it.
  std::uint32_t counted() const {
    wait();
    std::uint32_t count = 0;
    count_.get(&count, 1);
    return count;
  }
  /// Of the last bounces or stores, after they are done.
  double seconds() const { return end_->seconds_since(*begin_); }

  /// Why kernels here cannot store to that GPU; empty: opened.
  std::string open(int to) const {
    use(device_);
    int can = 0;
    check(HOSTLESS_GPU(DeviceCanAccessPeer)(&can, device_, to), "asking whether GPUs reach each other");
    if (can == 0)
      return "GPU " + std::to_string(device_) + " does not reach the memory of GPU " + std::to_string(to);
    auto const code = HOSTLESS_GPU(DeviceEnablePeerAccess)(to, 0);
    if (code != HOSTLESS_GPU(ErrorPeerAccessAlreadyEnabled)) check(code, "opening the memory of another GPU");
    (void)HOSTLESS_GPU(GetLastError)();  // forgets that it was open already
    return {};
  }

 private:
  int device_, blocks_ = 0;
  std::uint64_t deadline_cycles_ = 0;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
  Array<Word> array_, word_;
  Array<std::uint32_t> count_;
};

/// Seconds of a word one way; negative: not all came.
double time_words(Place& from, Place& to, std::uint32_t bounces) {
  from.clear_word();
  to.clear_word();
  to.bounce(from.word(), bounces, false);
  from.bounce(to.word(), bounces, true);
  bool const whole = from.counted() == bounces;
  return to.counted() == bounces && whole ? from.seconds() / (2.0 * bounces) : -1;
}

void prove(Place& from, Place& to, PathFacts& facts) {
  facts.problem = from.open(facts.to);
  if (facts.problem.empty()) facts.problem = to.open(facts.from);  // answers come that way
  if (!facts.problem.empty()) return;
  to.clear_array();
  double best = 0;
  for (std::uint32_t round = 1; round <= repeats; ++round) {
    from.store(to.array(), round);
    from.wait();
    std::uint32_t const wrong = to.wrong_words(round);
    if (wrong > 0) {
      facts.problem = std::to_string(wrong) + " of " + std::to_string(stored_words) +
                      " stored words are not what was stored";
      return;
    }
    best = std::max(best, static_cast<double>(stored_words * sizeof(Word)) / from.seconds());
  }
  facts.bytes_per_s = best;
  double word = time_words(from, to, few_bounces);
  for (int round = 0; round < repeats && word >= 0; ++round) {
    double const again = time_words(from, to, many_bounces);
    word = again < 0 || round == 0 ? again : std::min(word, again);
  }
  if (word < 0) {
    facts.problem = "words that two kernels store to each other did not come within " +
                    std::to_string(static_cast<int>(deadline_s)) + " s";
    facts.bytes_per_s = 0;
    return;
  }
  facts.word_s = word;
}

}  // namespace

std::vector<PathFacts> prove_paths(int devices) {
  std::vector<PathFacts> all;
  if (devices < 2) return all;
  std::vector<std::unique_ptr<Place>> places;
  std::vector<std::string> problems(static_cast<std::size_t>(devices));
  for (int device = 0; device < devices; ++device) {
    auto& place = places.emplace_back();
    try {
      place = std::make_unique<Place>(device);
    } catch (Error const& error) {
      problems[static_cast<std::size_t>(device)] = error.what();
    }
  }
  for (std::size_t from = 0; from < places.size(); ++from) {
    for (std::size_t to = 0; to < places.size(); ++to) {
      if (from == to) continue;
      PathFacts& facts = all.emplace_back();
      facts.from = static_cast<int>(from);
      facts.to = static_cast<int>(to);
      facts.problem = problems[places[from] ? to : from];
      if (!facts.problem.empty()) continue;
      try {
        prove(*places[from], *places[to], facts);
      } catch (Error const& error) {
        facts.problem = error.what();
      }
    }
  }
  return all;
}

}  // namespace hostless::gpu
