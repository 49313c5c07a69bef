// Starts and waits by one call, which streams do by one kernel: there and back, many messages of all kinds with
// starts and waits cut anywhere, reductions; on streams and in graphs, by ranks that share one GPU and on two.
#include <algorithm>
#include <random>
#include <vector>

#include "on_gpus.hpp"
#include "sample.hpp"

namespace hostless::test {
namespace {

class PeerBothAtOnce : public OnGpus {};
INSTANTIATE_TEST_SUITE_P(On, PeerBothAtOnce, testing::Values(Shared{1, 2}, Shared{2, 2}), named);

std::byte byte_of(int value) { return static_cast<std::byte>(value); }

// Rank 0 sends and waits for the answer, rank 1 answers: its start of an answer has the wait for what comes next.
class ThereAndBack {
 public:
  ThereAndBack(Transport& t, GpuQueueHome& home, Communicator& communicator, std::size_t bytes, bool ready)
      : rank_(t.group().rank()),
        bytes_(bytes),
        bench_(home.bench(0)),
        queue_(QueueType::peer, bench_.stream()) {
    for (std::byte** const one : {&data_, &out_, &in_}) *one = home.other_memory(bytes);
    shown_ = home.memory(bytes);
    bench_.add_to_bytes(data_, shown_, bytes, 0);
    receive_ = communicator.receive_init({in_, bytes}, rank_ ^ 1, 0);
    send_ = ready ? communicator.ready_send_init({out_, bytes}, rank_ ^ 1, 0)
                  : communicator.send_init({out_, bytes}, rank_ ^ 1, 0);
    barrier_ = communicator.barrier_init();
    Request* all[] = {&receive_, &send_, &barrier_};
    match(all);
  }
  void trips(int count) {
    Request *both[] = {&receive_, &send_}, *first[] = {&receive_, &barrier_};
    std::span<Request*const> const all(both), receive(both, 1), send(both + 1, 1), barrier(first + 1, 1);
    queue_.enqueue_start_and_wait(rank_ == 0 ? barrier : first,
                                  barrier);  // a ready send finds its receive started
    if (rank_ == 1) queue_.enqueue_start_and_wait({}, receive);
    for (int k = 0; k < count; ++k) {
      if (rank_ == 0) {
        bench_.add_to_bytes(out_, data_, bytes_, 1);
        queue_.enqueue_start_and_wait(all, all);
        bench_.add_to_bytes(data_, in_, bytes_, 1);
      } else {
        bench_.add_to_bytes(data_, in_, bytes_, 1);
        bench_.add_to_bytes(out_, data_, bytes_, 1);
        auto const next = k + 1 < count ? all : send;
        queue_.enqueue_start_and_wait(next, next);
      }
    }
  }
  void record(int count) {
    bench_.record([&] { trips(count); });
  }
  void replay() { bench_.replay(); }
  std::string look(int trips) {
    bench_.add_to_bytes(shown_, data_, bytes_, 0);
    queue_.wait();
    auto const right = byte_of(4 * trips - 2 * rank_);
    for (std::size_t k = 0; k < bytes_; ++k)
      if (shown_[k] != right)
        return "byte " + std::to_string(k) + " of " + std::to_string(bytes_) + " after " +
               std::to_string(trips) + " trips is " + std::to_string(std::to_integer<int>(shown_[k])) +
               " instead of " + std::to_string(std::to_integer<int>(right));
    for (Request const* const one : {&receive_, &send_})
      if (one->status().starts != static_cast<std::uint64_t>(trips) || one->status().lost)
        return "a status says " + std::to_string(one->status().starts) + " starts instead of " +
               std::to_string(trips);
    return {};
  }

 private:
  int rank_;
  std::size_t bytes_;
  gpu::StreamBench& bench_;
  Queue queue_;
  std::byte *data_ = nullptr, *out_ = nullptr, *in_ = nullptr, *shown_ = nullptr;
  Request receive_, send_, barrier_;
};

TEST_P(PeerBothAtOnce, ThereAndBackOnAStreamAndInGraphs) {
  for (std::size_t const bytes :
       {std::size_t{0}, std::size_t{8}, little, slot, slot + 1, large, is_played() ? large + 1 : huge})
    for (bool const ready : {false, true})
      on_ranks(2, [&](Transport& t) -> std::string {
        Communicator communicator(t, home().gpu());
        ThereAndBack pair(t, home(), communicator, bytes, ready);
        int trips = 5;
        pair.trips(trips);
        if (std::string const wrong = pair.look(trips); !wrong.empty()) return wrong;
        constexpr int recorded = 4;
        int const launches = of_all(20, 8);
        pair.record(recorded);
        t.group().barrier();  // a graph is made before anybody waits
        for (int k = 0; k < launches; ++k) {
          pair.replay(), trips += recorded;
          if (k % 7 == 3) pair.trips(1), ++trips;
        }
        std::string const wrong = pair.look(trips);
        t.group().barrier();
        return wrong;
      });
}

// Messages both ways, of all modes and of sizes that have one block and many.
class Messages {
 public:
  Messages(GpuQueueHome& home, Communicator& communicator, int rank, int count) : rank_(rank) {
    constexpr std::size_t lengths[] = {0, 1, 40, little, slot, large};
    for (int k = 0; k < count; ++k) {
      bytes_.push_back(lengths[static_cast<std::size_t>(k) % std::size(lengths)] +
                       static_cast<std::size_t>(k) / std::size(lengths));
      out_.push_back(home.memory(bytes_.back())), in_.push_back(home.memory(bytes_.back()));
      requests_.push_back(communicator.receive_init({in_.back(), bytes_.back()}, rank ^ 1, k));
      requests_.push_back(communicator.send_init({out_.back(), bytes_.back()}, rank ^ 1, k));
    }
    for (Request& one : requests_) all_.push_back(&one);
    match(all_);
  }
  // What is started before, by the call and waited for by it, each anyhow; in another order on each rank.
  std::string round(Queue& queue, int number, std::mt19937& draw) {
    for (std::size_t k = 0; k < out_.size(); ++k) std::fill_n(out_[k], bytes_[k], value(number, k, rank_));
    std::shuffle(all_.begin(), all_.end(), draw);
    std::span<Request* const> const all(all_);
    std::size_t const before = draw() % 3 == 0 ? draw() % (all.size() + 1) : 0;
    queue.enqueue_start(all.first(before));
    std::vector<Request*> awaited = all_;
    std::shuffle(awaited.begin(), awaited.end(), draw);
    if (draw() % 3 == 0) awaited.resize(draw() % (all.size() + 1));
    queue.enqueue_start_and_wait(all.subspan(before), awaited);
    queue.enqueue_wait_all();
    queue.wait();
    for (std::size_t k = 0; k < in_.size(); ++k)
      for (std::size_t b = 0; b < bytes_[k]; ++b)
        if (in_[k][b] != value(number, k, rank_ ^ 1))
          return "byte " + std::to_string(b) + " of message " + std::to_string(k) + " of " +
                 std::to_string(in_.size()) + " in round " + std::to_string(number) + " is wrong";
    for (Request const& one : requests_)
      if (one.status().starts != static_cast<std::uint64_t>(number)) return "a status is wrong";
    return {};
  }

 private:
  static std::byte value(int round, std::size_t message, int rank) {
    return byte_of(rank + 7 * round + static_cast<int>(message));
  }
  int rank_;
  std::vector<std::size_t> bytes_;
  std::vector<std::byte*> out_, in_;
  std::vector<Request> requests_;
  std::vector<Request*> all_;
};

// As many as one kernel takes, of both kinds, and more.
TEST_P(PeerBothAtOnce, ManyMessagesCutAnywhere) {
  for (int const count : {1, 2, 3, 6, 12, 13, 30})
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, home().gpu());
      int const rank = t.group().rank();
      Messages messages(home(), communicator, rank, count);
      std::mt19937 draw(static_cast<unsigned>(2 * count + rank));
      Queue queue(QueueType::peer, home().stream(0));
      t.group().barrier();
      std::string wrong;
      for (int round = 1; round <= of_all(25, 10) && wrong.empty(); ++round) {
        wrong = messages.round(queue, round, draw);
        t.group().barrier();
      }
      return wrong;
    });
}

// A message is cut into the same pieces by both sides, whatever else they start with it: of each piece one side
// moves what the other leaves out, and who does so changes from piece to piece when both come at once.
TEST_P(PeerBothAtOnce, PiecesAreCutAlikeByBothSides) {
  on_ranks(2, [&](Transport& t) -> std::string {
    Communicator communicator(t, home().gpu());
    int const rank = t.group().rank();
    std::size_t const longer = is_played() ? large + 1 : huge;
    std::byte* const buffer = home().memory(large);
    std::byte* const other = home().other_memory(longer);
    auto const make = [&](std::byte* at, std::size_t bytes, int tag) {
      return rank == 0 ? communicator.send_init({at, bytes}, 1, tag)
                       : communicator.receive_init({at, bytes}, 0, tag);
    };
    Request one = make(buffer, large, 0), wide = make(other, longer, 1);
    Request* both[] = {&one, &wide};
    std::span<Request* const> const all(both);
    match(all);
    Queue queue(QueueType::peer, home().stream(0));
    for (int round = 1; round <= (is_played() ? 10 : 400); ++round) {
      std::fill_n(buffer, large, byte_of(rank == 0 ? round : 0xff));
      t.group().barrier();
      if (rank == 0) {
        queue.enqueue_start_and_wait(all, all);
      } else {
        queue.enqueue_start_and_wait(all.first(1), {});
        queue.enqueue_start_and_wait(all.last(1), all);
      }
      queue.wait();
      auto const* const wrong =
          std::find_if(buffer, buffer + large, [&](std::byte b) { return b != byte_of(round); });
      if (wrong != buffer + large)
        return "byte " + std::to_string(wrong - buffer) + " was moved by neither side in round " +
               std::to_string(round);
      t.group().barrier();
    }
    return {};
  });
}

// What a request does on the GPU behind its wait.
TEST_P(PeerBothAtOnce, ReductionsFollowTheirWait) {
  for (std::size_t const count : {std::size_t{3}, std::size_t{20000}})
    on_ranks(2, [&](Transport& t) -> std::string {
      Communicator communicator(t, home().gpu());
      int const rank = t.group().rank();
      auto const from = home().array<double>(count), result = home().array<double>(count);
      Request sum = communicator.all_reduce_init(from.data(), result.data(), count, Datatype::f64,
                                                 ReduceOperation::sum);
      Request barrier = communicator.barrier_init();
      Request* both[] = {&sum, &barrier};
      match(both);
      gpu::StreamBench& bench = home().bench(0);
      Queue queue(QueueType::peer, bench.stream());
      auto const step = [&] { queue.enqueue_start_and_wait(both, both); };
      for (std::size_t k = 0; k < count; ++k) from[k] = static_cast<double>(k) + 0.5 * rank;
      bench.record(step);
      t.group().barrier();
      for (int round = 0; round < 6; ++round) {
        std::fill(result.begin(), result.end(), -1.0);
        round % 2 == 0 ? step() : bench.replay();
        queue.wait();
        for (std::size_t k = 0; k < count; ++k)
          if (result[k] != 2 * static_cast<double>(k) + 0.5)
            return "sum " + std::to_string(k) + " of round " + std::to_string(round) + " is wrong";
        t.group().barrier();
      }
      return {};
    });
}

}  // namespace
}  // namespace hostless::test
