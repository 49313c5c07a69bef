#include "group_programs.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <thread>
#include <tuple>
#include <vector>

#include "drawn_bytes.hpp"
#include "group_phase.hpp"

namespace hostless::test {
namespace {

using namespace groups;

DrawnBytes drawn_for(std::uint64_t seed, std::size_t thing, int epoch) {
  return DrawnBytes(seed * 31 + thing * 7919 + static_cast<std::uint64_t>(epoch) * 104729);
}
// Whole numbers, whose sum is exact.
double number_of(std::uint64_t seed, std::size_t thing, int epoch, int rank, std::size_t k) {
  return static_cast<double>((seed + thing * 37 + static_cast<std::size_t>(epoch * 11 + rank * 5) + k) % 251);
}

// What this rank has of a thing, on one side.
struct Mine {
  std::size_t thing = 0;
  bool sends = false;
  Request request{};
  std::span<std::byte> here{};    // where functions fill and look
  std::byte* used = nullptr;      // where the request has it
  int filled = 0, looked_at = 0;  // epochs, by functions
  int starts_at = -1;             // the step for which it is started
};

class Rank {
 public:
  Rank(Communicator& communicator, Group& group, GpuQueueHome& home, std::uint64_t seed, Phase const& phase)
      : communicator_(communicator),
        group_(group),
        home_(home),
        rank_(group.rank()),
        ranks_(group.size()),
        seed_(seed),
        phase_(phase),
        own_(seed * 64 + static_cast<std::uint64_t>(group.rank())),
        queue_(QueueType::nccl, home.stream(0)) {}

  std::string run() {
    make();
    match_all();
    for (int k = 0; k < phase_.times; ++k) enqueue_steps();
    queue_.wait();
    int all_times = phase_.times;
    if (phase_.launches != 0) {
      home_.bench(0).record([this] { enqueue_steps(); });
      group_.barrier();  // a graph is made before anybody waits
      for (int k = 0; k < phase_.launches; ++k) home_.bench(0).replay();
      if (own_.one_in(2)) queue_.wait();
      enqueue_steps();
      queue_.wait();
      all_times += phase_.launches + 1;
      group_.barrier();
      home_.bench(0).record([] {});  // the graph goes, and with it what NCCL holds for it
    }
    for (Mine& mine : mine_) look_at_status(mine, all_times);
    for (Mine& mine : mine_) mine.request.free();
    return wrong_ == 0 ? "" : std::to_string(wrong_) + " wrong bytes or statuses";
  }

 private:
  Thing const& thing_of(Mine const& mine) const { return phase_.things[mine.thing]; }
  void take(Mine& mine, std::size_t bytes) {
    mine.here = {home_.memory(bytes), bytes};
    mine.used = own_.one_in(2) ? home_.other_memory(bytes) : mine.here.data();
  }
  void make() {
    for (std::size_t k = 0; k < phase_.things.size(); ++k) {
      Thing const& thing = phase_.things[k];
      if (thing.kind != Kind::message) {
        Mine& mine = mine_.emplace_back();
        mine.thing = k, mine.sends = thing.source == rank_;
        take(mine, thing.kind == Kind::barrier ? 0 : thing.bytes);
        mine.request = thing.kind == Kind::barrier ? communicator_.barrier_init()
                       : thing.kind == Kind::broadcast
                           ? communicator_.broadcast_init({mine.used, thing.bytes}, thing.source)
                           : communicator_.all_reduce_init(mine.used, mine.used, thing.bytes / 8,
                                                           Datatype::f64, ReduceOperation::sum);
        continue;
      }
      if (thing.source == rank_) {
        Mine& mine = mine_.emplace_back();
        mine.thing = k, mine.sends = true;
        take(mine, thing.bytes);
        std::span<std::byte const> const from(mine.used, thing.bytes);
        mine.request = thing.ready ? communicator_.ready_send_init(from, thing.target, thing.tag)
                                   : communicator_.send_init(from, thing.target, thing.tag);
      }
      if (thing.target == rank_) {
        Mine& mine = mine_.emplace_back();
        mine.thing = k;
        take(mine, thing.bytes + k % 3);  // more than comes
        mine.request = communicator_.receive_init({mine.used, mine.here.size()}, thing.source, thing.tag);
      }
    }
  }

  // All with one rank in one call, others in any; in any order but where keys are equal.
  void match_all() {
    bool const is_one = std::any_of(phase_.things.begin(), phase_.things.end(),
                                    [](Thing const& thing) { return thing.kind != Kind::message; });
    std::map<int, std::vector<Mine*>> calls;
    for (Mine& mine : mine_) {
      Thing const& thing = thing_of(mine);
      int const other = thing.kind != Kind::message ? -1 : mine.sends ? thing.target : thing.source;
      calls[is_one && other != rank_ ? 0 : static_cast<int>((seed_ + static_cast<std::uint64_t>(other)) % 3)]
          .push_back(&mine);
    }
    std::vector<Request> matches;
    for (auto& [number, some] : calls) {
      std::shuffle(some.begin(), some.end(), own_.engine);
      std::map<std::tuple<int, int, int, int, bool>, std::vector<std::size_t>> positions;
      for (std::size_t k = 0; k < some.size(); ++k) {
        Thing const& thing = thing_of(*some[k]);
        bool const is_message = thing.kind == Kind::message;
        positions[is_message ? std::tuple(0, thing.source, thing.target, thing.tag, some[k]->sends)
                             : std::tuple(1, 0, 0, 0, false)]
            .push_back(k);
      }
      for (auto const& [key, at] : positions) {  // equal keys in the order of the program
        std::vector<Mine*> same;
        for (std::size_t k : at) same.push_back(some[k]);
        std::sort(same.begin(), same.end(), [](Mine* a, Mine* b) { return a->thing < b->thing; });
        for (std::size_t k = 0; k < at.size(); ++k) some[at[k]] = same[k];
      }
      std::vector<Request*> requests;
      for (Mine* const mine : some) requests.push_back(&mine->request);
      matches.push_back(begin_match(requests));
    }
    for (Request& one : matches) {
      one.wait();
      one.free();
    }
  }

  bool moves_in(Mine const& mine, std::size_t step) const {
    auto const& pairs = phase_.steps[step];
    Thing const& thing = thing_of(mine);
    if (thing.kind == Kind::message) return pairs.count(pair_of(thing)) != 0;
    return true;
  }
  void enqueue_steps() {
    for (std::size_t step = 0; step < phase_.steps.size(); ++step) {
      std::vector<Mine*> all;
      for (Mine& mine : mine_)
        if (moves_in(mine, step)) all.push_back(&mine);
      std::shuffle(all.begin(), all.end(), own_.engine);
      std::vector<Request*> const rest = start(all, static_cast<int>(step));
      bool is_ahead = false;
      for (Mine& mine : mine_)  // a start only says that what it has may move
        if (step + 1 < phase_.steps.size() && !moves_in(mine, step) && moves_in(mine, step + 1) &&
            own_.one_in(3)) {
          queue_.enqueue_start(start({&mine}, static_cast<int>(step) + 1));
          is_ahead = true;
        }
      std::vector<Request*> requests;
      for (Mine* const mine : all) requests.push_back(&mine->request);
      if (own_.one_in(2)) {
        queue_.enqueue_start_and_wait(rest, requests);
      } else {
        queue_.enqueue_start(rest);
        !is_ahead&& own_.one_in(2) ? queue_.enqueue_wait_all() : queue_.enqueue_wait(requests);
      }
      for (Mine* const mine : all) {
        mine->starts_at = -1;
        bring(*mine, false);
        queue_.enqueue_function([this, mine] { look(*mine); });
      }
    }
  }
  // The rest of them, which are not yet started.
  std::vector<Request*> start(std::vector<Mine*> const& all, int step) {
    std::vector<Request*> some;
    for (Mine* const mine : all) {
      if (mine->starts_at == step) continue;
      mine->starts_at = step;
      queue_.enqueue_function([this, mine] { fill(*mine); });
      bring(*mine, true);
      some.push_back(&mine->request);
      if (own_.one_in(3)) {
        queue_.enqueue_start(some);
        some.clear();
      }
    }
    return some;
  }
  void bring(Mine& mine, bool to_request) {
    std::byte* const here = mine.here.data();
    if (mine.used == here) return;
    home_.pass(0, to_request ? mine.used : here, to_request ? here : mine.used, mine.here.size());
  }

  void fill(Mine& mine) {
    Thing const& thing = thing_of(mine);
    int const epoch = mine.filled++;
    if (thing.kind == Kind::all_reduce) {
      auto* const numbers = reinterpret_cast<double*>(mine.here.data());
      for (std::size_t k = 0; k < thing.bytes / 8; ++k)
        numbers[k] = number_of(seed_, mine.thing, epoch, rank_, k);
      return;
    }
    if (mine.sends)
      drawn_for(seed_, mine.thing, epoch).fill(mine.here.data(), mine.here.size());
    else
      fill_unsent(mine.here.data(), mine.here.size());
  }
  void look(Mine& mine) {
    Thing const& thing = thing_of(mine);
    int const epoch = mine.looked_at++;
    if (thing.kind == Kind::all_reduce) {
      auto const* const numbers = reinterpret_cast<double const*>(mine.here.data());
      for (std::size_t k = 0; k < thing.bytes / 8; ++k) {
        double right = 0;
        for (int r = 0; r < ranks_; ++r) right += number_of(seed_, mine.thing, epoch, r, k);
        wrong_ += numbers[k] != right;
      }
      return;
    }
    std::size_t const sent = std::min(thing.bytes, mine.here.size());
    wrong_ += drawn_for(seed_, mine.thing, epoch).differing(mine.here.data(), sent);
    wrong_ += differing_unsent(mine.here.data() + sent, mine.here.size() - sent);
  }
  void look_at_status(Mine& mine, int times) {
    Thing const& thing = thing_of(mine);
    std::uint64_t starts = 0;
    for (std::size_t step = 0; step < phase_.steps.size(); ++step) starts += moves_in(mine, step);
    RequestStatus const status = mine.request.status();
    wrong_ += status.starts != starts * static_cast<std::uint64_t>(times) || status.lost;
    if (thing.kind != Kind::message) return;
    wrong_ += status.bytes != thing.bytes || status.tag != thing.tag ||
              status.peer != (mine.sends ? thing.target : thing.source);
  }

  Communicator& communicator_;
  Group& group_;
  GpuQueueHome& home_;
  int rank_, ranks_;
  std::uint64_t seed_;
  Phase const& phase_;
  Draw own_;
  std::deque<Mine> mine_;  // where they are made they stay, longer than the queue
  long wrong_ = 0;         // by functions, which come one after the other
  Queue queue_;
};

struct Drawn {
  std::size_t phases = 0, messages = 0, collectives = 0, steps = 0, launches = 0;
};

std::string run_program(Communicator& communicator, Group& group, GpuQueueHome& home, std::uint64_t seed,
                        Drawn& drawn) {
  Draw draw(seed);
  for (int phases = 1 + draw.below(3); phases-- > 0;) {
    home.again();
    Phase const phase = draw_phase(draw, group.size());
    ++drawn.phases;
    for (Thing const& thing : phase.things)
      ++(thing.kind == Kind::message ? drawn.messages : drawn.collectives);
    drawn.steps += phase.steps.size(), drawn.launches += static_cast<std::size_t>(phase.launches);
    std::string wrong;
    try {
      wrong = Rank(communicator, group, home, seed + static_cast<std::uint64_t>(phases), phase).run();
    } catch (std::exception const& e) {
      wrong = e.what();
    }
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

std::string run_group_programs(Communicator& communicator, Group& group, GpuQueueHome& home,
                               Seeds const& seeds, std::string const& how) {
  Drawn drawn;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    std::string const wrong = run_program(communicator, group, home, seed, drawn);
    if (!wrong.empty())
      return "seed " + std::to_string(seed) + ", rank " + std::to_string(group.rank()) + " of " +
             std::to_string(group.size()) + ": " + wrong +
             "\nAgain: HOSTLESS_QUEUE_SEED=" + std::to_string(seed) + " " + how;
  }
  if (group.rank() == 0)
    std::printf(
        "%d ranks, %llu programs of groups (seeds from %llu on): %zu phases, %zu messages, %zu collectives, "
        "%zu "
        "steps, %zu launches of graphs\n",
        group.size(), static_cast<unsigned long long>(seeds.count),
        static_cast<unsigned long long>(seeds.first), drawn.phases, drawn.messages, drawn.collectives,
        drawn.steps, drawn.launches);
  std::fflush(stdout);
  group.barrier();  // nobody leaves while others wait
  return {};
}

}  // namespace hostless::test
