#include "queue_programs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/variable.hpp"
#include "drawn_bytes.hpp"
#include "hostless/base/wait.hpp"
#include "queue_home.hpp"

namespace hostless::test {
namespace {

using Time = double;

struct Draw {
  explicit Draw(std::uint64_t seed) : engine(seed) {}
  int below(int n) { return static_cast<int>(engine() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  Time between(Time a, Time b) { return a + (b - a) * (static_cast<double>(engine() >> 11) * 0x1p-53); }
  std::mt19937_64 engine;
};

enum class Kind { message, barrier, all_reduce, broadcast };

// Of each side (or rank of a collective), of an epoch.
struct Times {
  Time start, wait;
};
struct Thing {
  Kind kind;
  int source, target, tag;  // of a message; source: the root of a broadcast
  std::size_t bytes;
  bool ready;
  int token = -1;  // of a ready send: the message that says that its receiver has started
  std::vector<std::vector<Times>> times;  // by epoch, then side (0 sends, 1 receives) or rank
  std::vector<int> queue;                 // by side or rank
};

std::size_t drawn_bytes(Draw& draw) {
  switch (draw.below(8)) {
    case 0:
      return 0;
    case 1:
      return 1;
    case 2:
      // Where slots end, of the host's messages and of GPUs'.
      return (draw.below(2) == 0 ? 8192u : 65536u) - 2 + static_cast<std::size_t>(draw.below(5));
    case 3:
      return static_cast<std::size_t>(draw.below(40000));
    default:
      return static_cast<std::size_t>(draw.below(300));
  }
}

int sides_of(Thing const& thing, int ranks) { return thing.kind == Kind::message ? 2 : ranks; }

// Starts in [from, to), waits anywhere later than the last of them, and before the next epoch's.
void draw_times(Draw& draw, Thing& thing, int sides, int epochs) {
  Time from = draw.between(0, 1);
  for (int e = 0; e < epochs; ++e) {
    std::vector<Times> all(static_cast<std::size_t>(sides));
    Time last = from;
    for (Times& t : all) last = std::max(last, t.start = draw.between(from, from + 0.3));
    Time next = last;
    for (Times& t : all) next = std::max(next, t.wait = draw.between(last, last + 1));
    thing.times.push_back(all);
    from = next;
  }
}

struct Program {
  std::vector<Thing> things;
  int queues = 1;
};

void add_ready(Draw& draw, Program& program, Thing thing) {
  Thing token = thing;
  token.kind = Kind::message;
  std::swap(token.source, token.target);
  token.ready = false;
  token.bytes = 1;
  token.tag = 40 + draw.below(2);
  token.queue = {thing.queue[1], thing.queue[0]};
  Time t = draw.between(0, 1);
  auto const later = [&] { return t = draw.between(t + 1e-6, t + 0.3); };
  for (int e = 0, epochs = 1 + draw.below(3); e < epochs; ++e) {
    // The receiver's start, then the token from the same queue; the sender waits for it, then starts, on its
    // own.
    Time const receive = later(), send_token = later(), start_token = draw.between(receive, send_token);
    Time const heard = later(), send = later();
    Time const sent = later(), received = later(), token_sent = later();
    thing.times.push_back({{send, sent}, {receive, received}});
    token.times.push_back({{send_token, token_sent}, {start_token, heard}});
  }
  thing.token = static_cast<int>(program.things.size());
  program.things.push_back(token);
  program.things.push_back(thing);
}

Program draw_program(Draw& draw, int ranks) {
  Program program;
  program.queues = 1 + draw.below(3);
  int const count = 1 + draw.below(8);
  for (int k = 0; k < count; ++k) {
    Thing thing;
    thing.kind = draw.one_in(5) ? static_cast<Kind>(1 + draw.below(3)) : Kind::message;
    thing.source = draw.below(ranks);
    thing.target = draw.below(ranks);
    thing.tag = draw.below(3);
    thing.bytes = drawn_bytes(draw);
    thing.ready = thing.kind == Kind::message && draw.one_in(4);
    if (thing.kind == Kind::all_reduce) thing.bytes = thing.bytes / 8 % 2000 * 8;
    int const sides = sides_of(thing, ranks);
    for (int s = 0; s < sides; ++s) thing.queue.push_back(draw.below(program.queues));
    if (thing.ready) {
      add_ready(draw, program, thing);
      continue;
    }
    draw_times(draw, thing, sides, 1 + draw.below(4));
    program.things.push_back(thing);
  }
  return program;
}

DrawnBytes drawn_for(std::uint64_t seed, std::size_t thing, int epoch, int source) {
  return DrawnBytes(seed * 31 + thing * 7919 + static_cast<std::uint64_t>(epoch) * 104729 +
                    static_cast<std::uint64_t>(source) * 15485863);
}
// Whole numbers, whose sum is exact.
double number_of(std::uint64_t seed, std::size_t thing, int epoch, int source, std::size_t k) {
  std::uint64_t const h = (seed * 31 + thing * 7919 + static_cast<std::uint64_t>(epoch) * 104729 +
                           static_cast<std::uint64_t>(source) * 15485863 + k * 2654435761u) *
                          0x9e3779b97f4a7c15u;
  return static_cast<double>(h >> 56);
}

// What functions of a queue fill and look at, and where requests have it: there, or in memory of a GPU's that
// it is passed to and from.
template <class T>
struct Area {
  std::span<T> here;
  std::byte* used = nullptr;
  std::span<std::byte> bytes() const { return {used, here.size_bytes()}; }
  T* data() const { return reinterpret_cast<T*>(used); }
  bool is_elsewhere() const { return used != reinterpret_cast<std::byte*>(here.data()); }
  void bring(int queue) const {
    if (is_elsewhere())
      queue_home().pass(queue, used, reinterpret_cast<std::byte*>(here.data()), here.size_bytes());
  }
  void fetch(int queue) const {
    if (is_elsewhere())
      queue_home().pass(queue, reinterpret_cast<std::byte*>(here.data()), used, here.size_bytes());
  }
};

// shift: bytes after an address that is aligned.
template <class T>
Area<T> make_area(std::size_t count, bool elsewhere, std::size_t shift) {
  std::size_t const bytes = count * sizeof(T);
  Area<T> area;
  area.here = {reinterpret_cast<T*>(queue_home().memory(bytes + shift) + shift), count};
  std::byte* const other = elsewhere ? queue_home().other_memory(bytes + shift) : nullptr;
  area.used = other != nullptr ? other + shift : reinterpret_cast<std::byte*>(area.here.data());
  return area;
}

// What this rank has of a thing, on one side.
struct Mine {
  std::size_t thing;
  int side;
  Request request{};
  Area<std::byte> buffer{};
  Area<double> from{}, result{};
};

class Rank {
 public:
  Rank(Communicator& communicator, int rank, int ranks, std::uint64_t seed, Program const& program)
      : communicator_(communicator), rank_(rank), ranks_(ranks), seed_(seed), program_(program) {}

  std::string run() {
    Draw own(seed_ * 64 + static_cast<std::uint64_t>(rank_));
    make(own);
    match_all(own);
    std::vector<std::unique_ptr<Queue>> queues;
    for (int q = 0; q < program_.queues; ++q)
      queues.push_back(std::make_unique<Queue>(queue_home().type(), queue_home().stream(q)));
    enqueue(own, queues);
    for (std::size_t k = queues.size(); k-- > 0;) queues[k]->wait();
    for (Mine& mine : mine_) look_at_status(mine);
    queues.clear();
    for (Mine& mine : mine_) mine.request.free();
    return wrong_.load() == 0 ? "" : std::to_string(wrong_.load()) + " wrong bytes or statuses";
  }

 private:
  Area<std::byte> bytes_of(Draw& own, std::size_t bytes) {
    return make_area<std::byte>(bytes, own.one_in(2),
                                own.one_in(2) ? 0 : static_cast<std::size_t>(own.below(16)));
  }
  void make(Draw& own) {
    for (std::size_t k = 0; k < program_.things.size(); ++k) {
      Thing const& thing = program_.things[k];
      if (thing.kind != Kind::message) {
        make_collective(own, k, thing);
        continue;
      }
      if (thing.source == rank_) {
        Mine& mine = mine_.emplace_back(Mine{k, 0});
        mine.buffer = bytes_of(own, thing.bytes);
        mine.request = thing.ready
                           ? communicator_.ready_send_init(mine.buffer.bytes(), thing.target, thing.tag)
                           : communicator_.send_init(mine.buffer.bytes(), thing.target, thing.tag);
      }
      if (thing.target == rank_) {
        std::size_t const room = k % 3;  // more than comes
        Mine& mine = mine_.emplace_back(Mine{k, 1});
        mine.buffer = bytes_of(own, thing.bytes + room);
        mine.request = communicator_.receive_init(mine.buffer.bytes(), thing.source, thing.tag);
      }
    }
  }
  void make_collective(Draw& own, std::size_t k, Thing const& thing) {
    Mine& mine = mine_.emplace_back(Mine{k, rank_});
    if (thing.kind == Kind::barrier) {
      mine.request = communicator_.barrier_init();
    } else if (thing.kind == Kind::broadcast) {
      mine.buffer = bytes_of(own, thing.bytes);
      mine.request = communicator_.broadcast_init(mine.buffer.bytes(), thing.source);
    } else {
      std::size_t const count = thing.bytes / 8;
      mine.from = make_area<double>(count, own.one_in(2), 0);
      mine.result = make_area<double>(count, own.one_in(2), 0);
      bool const in_place = k % 2 == 0;
      mine.request =
          communicator_.all_reduce_init(in_place ? mine.result.data() : mine.from.data(), mine.result.data(),
                                        count, Datatype::f64, ReduceOperation::sum);
    }
  }

  // In any order, but that of the program where keys are equal; some at once, some without waiting.
  void match_all(Draw& own) {
    std::vector<std::size_t> order(mine_.size());
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), own.engine);
    auto const key = [&](std::size_t k) {
      Thing const& t = program_.things[mine_[k].thing];
      return t.kind != Kind::message ? std::tuple(1, 0, 0, 0)
                                     : std::tuple(0, t.source, t.target, t.tag * 2 + mine_[k].side);
    };
    for (std::size_t a = 0; a < order.size(); ++a)  // equal keys in rising order
      for (std::size_t b = a + 1; b < order.size(); ++b)
        if (key(order[a]) == key(order[b]) && order[b] < order[a]) std::swap(order[a], order[b]);
    std::vector<Request> matches;
    std::vector<Request*> some;
    for (std::size_t k : order) {
      some.push_back(&mine_[k].request);
      if (own.one_in(3)) {
        matches.push_back(begin_match(some));
        some.clear();
      }
    }
    match(some);
    for (Request& one : matches) {
      if (own.one_in(2)) {
        while (!one.test()) Backoff::give_core_away();
      } else {
        one.wait();
      }
      one.free();
    }
  }

  struct Event {
    Time time;
    Mine* mine;
    int epoch;
    bool starts;
  };
  void enqueue(Draw& own, std::vector<std::unique_ptr<Queue>>& queues) {
    std::vector<Event> events;
    for (Mine& mine : mine_) {
      Thing const& thing = program_.things[mine.thing];
      for (int e = 0; e < static_cast<int>(thing.times.size()); ++e) {
        Times const& t = thing.times[static_cast<std::size_t>(e)][static_cast<std::size_t>(mine.side)];
        events.push_back({t.start, &mine, e, true});
        events.push_back({t.wait, &mine, e, false});
      }
    }
    std::sort(events.begin(), events.end(), [](Event const& a, Event const& b) { return a.time < b.time; });
    for (std::size_t at = 0; at < events.size();) {
      int const number = queue_of(events[at]);
      Queue& queue = *queues[static_cast<std::size_t>(number)];
      if (own.one_in(20)) {
        int const naps = own.below(30);
        queue.enqueue_function([naps] {
          for (int k = 0; k < naps; ++k) Backoff::give_core_away();
        });
      }
      if (own.one_in(200)) std::this_thread::sleep_for(std::chrono::microseconds(own.below(300)));
      auto const starts = some_of(own, events, at, number, true);
      bool const by_one = starts.empty() || own.one_in(2);
      auto const waits = by_one ? some_of(own, events, at, number, false) : std::vector<Event>{};
      for (Event const& event : starts) bring(queue, number, event);
      if (waits.empty())
        queue.enqueue_start(requests_of(starts));
      else if (starts.empty() && own.one_in(2))
        queue.enqueue_wait(requests_of(waits));
      else
        queue.enqueue_start_and_wait(requests_of(starts), requests_of(waits));
      for (Event const& event : waits) fetch(queue, number, event);
    }
  }
  int queue_of(Event const& event) const {
    return program_.things[event.mine->thing].queue[static_cast<std::size_t>(event.mine->side)];
  }
  // From `at` on, for one call: one behind the other of that queue, all starts or all waits.
  std::vector<Event> some_of(Draw& own, std::vector<Event> const& events, std::size_t& at, int queue,
                             bool starts) const {
    std::vector<Event> some;
    while (at < events.size() && events[at].starts == starts && queue_of(events[at]) == queue &&
           (some.empty() || own.one_in(2)))
      some.push_back(events[at++]);
    return some;
  }
  static std::vector<Request*> requests_of(std::vector<Event> const& events) {
    std::vector<Request*> all;
    for (Event const& event : events) all.push_back(&event.mine->request);
    return all;
  }
  void bring(Queue& queue, int number, Event const& event) {
    Mine& mine = *event.mine;
    queue.enqueue_function([this, &mine, e = event.epoch] { before_start(mine, e); });
    mine.buffer.bring(number);
    (mine.thing % 2 == 0 ? mine.result : mine.from).bring(number);
  }
  void fetch(Queue& queue, int number, Event const& event) {
    Mine& mine = *event.mine;
    mine.buffer.fetch(number);
    mine.result.fetch(number);
    queue.enqueue_function([this, &mine, e = event.epoch] { after_wait(mine, e); });
    mine.buffer.bring(number);  // overwritten
  }

  void before_start(Mine& mine, int epoch) {
    Thing const& thing = program_.things[mine.thing];
    bool const sends =
        thing.kind == Kind::message ? mine.side == 0 : thing.kind == Kind::broadcast && thing.source == rank_;
    std::span<std::byte> const buffer = mine.buffer.here;
    if (sends)
      drawn_for(seed_, mine.thing, epoch, thing.source).fill(buffer.data(), buffer.size());
    else
      fill_unsent(buffer.data(), buffer.size());
    std::span<double> const from = (mine.thing % 2 == 0 ? mine.result : mine.from).here;
    for (std::size_t k = 0; k < from.size(); ++k) from[k] = number_of(seed_, mine.thing, epoch, rank_, k);
  }
  void after_wait(Mine& mine, int epoch) {
    Thing const& thing = program_.things[mine.thing];
    long wrong = 0;
    std::span<std::byte> const buffer = mine.buffer.here;
    std::span<double> const result = mine.result.here;
    std::size_t const sent = std::min(thing.bytes, buffer.size());
    wrong += drawn_for(seed_, mine.thing, epoch, thing.source).differing(buffer.data(), sent);
    wrong += differing_unsent(buffer.data() + sent, buffer.size() - sent);
    for (std::size_t k = 0; k < result.size(); ++k) {
      double right = 0;
      for (int r = 0; r < ranks_; ++r) right += number_of(seed_, mine.thing, epoch, r, k);
      wrong += result[k] != right;
    }
    wrong_ += wrong;
    std::fill(buffer.begin(), buffer.end(), std::byte{0xdd});  // nobody needs it any more
  }
  void look_at_status(Mine& mine) {
    Thing const& thing = program_.things[mine.thing];
    RequestStatus const status = mine.request.status();
    wrong_ += status.starts != thing.times.size() || status.lost;
    if (thing.kind != Kind::message) return;
    wrong_ += status.bytes != thing.bytes || status.tag != thing.tag ||
              status.peer != (mine.side == 0 ? thing.target : thing.source);
  }

  Communicator& communicator_;
  int rank_, ranks_;
  std::uint64_t seed_;
  Program const& program_;
  std::deque<Mine> mine_;  // where they are made they stay
  std::atomic<long> wrong_{0};
};

struct Drawn {
  int messages = 0, collectives = 0, ready = 0, epochs = 0;
  std::size_t bytes = 0;
};

std::string run_random_program(Communicator& communicator, Group& group, std::uint64_t seed, Drawn& drawn) {
  queue_home().again();
  Draw draw(seed);
  Program const program = draw_program(draw, group.size());
  for (Thing const& thing : program.things) {
    ++(thing.kind == Kind::message ? drawn.messages : drawn.collectives);
    drawn.ready += thing.ready;
    drawn.epochs += static_cast<int>(thing.times.size());
    drawn.bytes += thing.bytes * thing.times.size();
  }
  try {
    return Rank(communicator, group.rank(), group.size(), seed, program).run();
  } catch (std::exception const& e) {
    return e.what();
  }
}

}  // namespace

Seeds seeds_of(int ranks, std::uint64_t otherwise, std::uint64_t suites) {
  constexpr char const *seed = "HOSTLESS_QUEUE_SEED", *programs = "HOSTLESS_QUEUE_PROGRAMS";
  bool const is_given = count_of(seed, -1) >= 0, is_counted = count_of(programs, -1) >= 0;
  auto const count = static_cast<std::uint64_t>(count_of(programs, is_given ? 1 : 0));
  return {static_cast<std::uint64_t>(count_of(seed, std::int64_t{1000000} * ranks)),
          is_given     ? count
          : is_counted ? (count + suites - 1) / suites
                       : otherwise};
}

std::string run_random_programs(Communicator& communicator, Group& group, Seeds const& seeds,
                                std::string const& how) {
  Drawn drawn;
  auto const began = std::chrono::steady_clock::now();
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    std::string const wrong = run_random_program(communicator, group, seed, drawn);
    if (!wrong.empty()) {
      // Also where what another rank has made of it is all that is told.
      std::fprintf(stderr, "seed %llu, rank %d of %d: %s\n", static_cast<unsigned long long>(seed),
                   group.rank(), group.size(), wrong.c_str());
      return "seed " + std::to_string(seed) + ", rank " + std::to_string(group.rank()) + " of " +
             std::to_string(group.size()) + ": " + wrong +
             "\nAgain: HOSTLESS_QUEUE_SEED=" + std::to_string(seed) + " " + how;
    }
  }
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - began;
  if (group.rank() == 0)
    std::printf(
        "%d ranks, %llu programs (seeds from %llu on): %d messages (%d ready), %d collectives, %d epochs, "
        "%.1f "
        "MB, %.1f s\n",
        group.size(), static_cast<unsigned long long>(seeds.count),
        static_cast<unsigned long long>(seeds.first), drawn.messages, drawn.ready, drawn.collectives,
        drawn.epochs, 1e-6 * static_cast<double>(drawn.bytes), took.count());
  std::fflush(stdout);
  group.barrier();  // nobody leaves while others wait
  return {};
}

}  // namespace hostless::test
