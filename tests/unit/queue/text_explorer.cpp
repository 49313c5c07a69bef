#include "text_explorer.hpp"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace hostless::test {
namespace {

using queue::MessageView;
using queue::Mode;
using queue::Progress;
using queue::Side;

// An agent is a rank; behind those, where ranks fork, are others of each, who wait.
constexpr std::size_t ranks = 2, most_agents = 2 * ranks;
constexpr int words_of_message = 8, items_of_message = 4;  // items: source, target, two slots
constexpr std::uint64_t overwritten = 99, lost_mark = 98;
using Clock = std::array<std::uint32_t, most_agents>;

void join(Clock& to, Clock const& from) {
  for (std::size_t a = 0; a < most_agents; ++a) to[a] = std::max(to[a], from[a]);
}

struct Counter {
  std::uint64_t value = 0;
  Clock released{};
};
struct Item {
  std::uint64_t value = 0;
  int writer = 0;
  std::uint32_t written = 0;
  Clock read{};
};
struct Stored {
  std::size_t word;
  Counter what;
};
struct Agent {
  std::vector<std::uint64_t> results;  // of its operations
  std::vector<Stored> buffer;
  Clock clock{};
  bool ended = false, lost = false;
};
struct State {
  std::vector<Counter> words;
  std::vector<Item> items;
  std::array<bool, 4> closed{};  // by message and side
  std::array<Clock, 4> moving{};
  std::array<Agent, most_agents> agents;
};

struct Operation {
  enum class Kind : std::uint8_t { add, load, store, copy, move, fill, check, close };
  Kind kind;
  std::size_t at = 0, from = 0;  // a word, or items; of close: message and side
  std::uint64_t value = 0;
};
struct Next {  // thrown where an operation has no result
  Operation operation;
};
struct Polled {};  // thrown where a poll decided nothing
struct Lost {};

// Who executes the text: takes results, or says what is next.
class ModelWords {
 public:
  ModelWords(Scene const& scene, std::vector<std::uint64_t> const& results)
      : scene_(scene), results_(results) {}

  std::size_t used() const { return used_; }
  std::uint64_t result(Operation const& operation) {
    if (used_ == results_.size()) throw Next{operation};
    return results_[used_++];
  }
  static std::uint64_t own(std::uint64_t const* word) { return *word; }
  static void set_own(std::uint64_t* word, std::uint64_t value) { *word = value; }
  std::uint64_t add(std::uint64_t* word, std::uint64_t value) {
    if (!scene_.fault.adds_in_two_steps) return result({Operation::Kind::add, number(word), 0, value});
    std::uint64_t const found = load(word);
    store(word, found + value);
    return found;
  }
  std::uint64_t load(std::uint64_t* word) {
    bool const is_taken =
        number(word) < scene_.modes.size() * words_of_message && number(word) % words_of_message == 6;
    if (is_taken && scene_.fault.sends_without_taken) return overwritten;
    return result({Operation::Kind::load, number(word), 0, 0});
  }
  void store(std::uint64_t* word, std::uint64_t value) {
    result({Operation::Kind::store, number(word), 0, value});
  }
  std::uint64_t reached(std::uint64_t* word) { return load(word); }
  void reach(std::uint64_t* word, std::uint64_t epoch) { store(word, epoch); }
  void put(std::byte* slot, std::byte const* from, std::size_t bytes, std::uint64_t* full,
           std::uint64_t epoch) {
    copy(slot, from, bytes);
    store(full, epoch);
  }
  bool move(std::byte* to, std::byte const* from, std::size_t) {
    return result({Operation::Kind::move, item(to), item(from), 0}) != 0;
  }
  void copy(std::byte* to, std::byte const* from, std::size_t) {
    result({Operation::Kind::copy, item(to), item(from), 0});
  }
  template <class Work>
  void once(Work const& work) {
    work();
  }

  // The numbers of words and items are their addresses.
  static std::uint64_t* word(std::size_t number) {
    return reinterpret_cast<std::uint64_t*>((number + 1) * 8);
  }
  static std::byte* bytes(std::size_t number) { return reinterpret_cast<std::byte*>(number + 1); }

 private:
  static std::size_t number(std::uint64_t const* word) {
    return reinterpret_cast<std::uintptr_t>(word) / 8 - 1;
  }
  static std::size_t item(std::byte const* bytes) { return reinterpret_cast<std::uintptr_t>(bytes) - 1; }
  Scene const& scene_;
  std::vector<std::uint64_t> const& results_;
  std::size_t used_ = 0;
};

class Explorer {
 public:
  explicit Explorer(Scene const& scene) : scene_(scene) {
    for (std::size_t m = 0; m < scene.modes.size(); ++m) {
      MessageView view;
      std::size_t const w = m * words_of_message, p = m * items_of_message;
      view.count = ModelWords::word(w);
      view.arrived = ModelWords::word(w + 1);
      view.full = ModelWords::word(w + 2);
      view.sender_gone = ModelWords::word(w + 4);
      view.sent = ModelWords::word(w + 5);
      view.taken = ModelWords::word(w + 6);
      view.receiver_gone = ModelWords::word(w + 7);
      view.from = ModelWords::bytes(p);
      view.to = ModelWords::bytes(p + 1);
      view.slots = ModelWords::bytes(p + 2);
      view.slot_bytes = scene.fault.one_slot ? 0 : 1;
      view.bytes = 1;
      view.mode = scene.modes[m];
      views_.push_back(view);
    }
    for (auto const& acts : scene.acts)
      for (Act const& act : acts)
        if (act.kind == Act::Kind::fork) agents_ = most_agents;
  }

  Found explore() {
    State first;
    first.words.resize(views_.size() * words_of_message + 2 * ranks);
    first.items.resize(views_.size() * items_of_message);
    for (auto& agent : first.agents) agent.clock = {};
    for (std::size_t a = 0; a < agents_; ++a) first.agents[a].ended = scene_.acts[a % ranks].empty();
    visit(first);
    return found_;
  }

 private:
  Side side_of(std::size_t rank, int message, int which) const {
    if (scene_.to_itself) return which == 0 ? Side::receiver : Side::sender;
    return scene_.sender[static_cast<std::size_t>(message)] == static_cast<int>(rank) ? Side::sender
                                                                                      : Side::receiver;
  }

  // How many forks a rank has begun, and how many of them its others have ended.
  std::uint64_t* begun(std::size_t rank) const {
    return ModelWords::word(views_.size() * words_of_message + 2 * rank);
  }
  std::uint64_t* ended(std::size_t rank) const {
    return ModelWords::word(views_.size() * words_of_message + 2 * rank + 1);
  }
  using Epochs = std::array<std::array<std::uint64_t, 2>, 2>;  // by message and side
  static void decide(Progress progress) {
    if (progress == Progress::pending) throw Polled{};
    if (progress == Progress::broken) throw std::runtime_error("a wait finds what nobody meant");
    if (progress == Progress::lost) throw Lost{};
  }

  // The program of an agent from its beginning. Throws Next, Polled or Lost; returns where it has ended.
  void run(std::size_t agent, std::vector<std::uint64_t> const& results, std::size_t& poll_began) const {
    agent < ranks ? run_rank(agent, results, poll_began) : run_others(agent - ranks, results, poll_began);
  }
  // An epoch is one more than there were waits.
  void run_others(std::size_t rank, std::vector<std::uint64_t> const& results,
                  std::size_t& poll_began) const {
    ModelWords words(scene_, results);
    Epochs waits{};
    std::uint64_t forks = 0;
    bool is_forked = false;
    for (Act const& act : scene_.acts[rank]) {
      auto const m = static_cast<std::size_t>(act.message);
      Side const side = side_of(rank, act.message, act.epoch);
      std::uint64_t& before = waits[m][static_cast<std::size_t>(side)];
      poll_began = words.used();
      switch (act.kind) {
        case Act::Kind::fork:
          is_forked = true;
          if (words.load(begun(rank)) < ++forks) throw Polled{};
          break;
        case Act::Kind::join:
          is_forked = false;
          words.store(ended(rank), forks);
          break;
        case Act::Kind::start:
          if (is_forked) wait_beside(words, rank, m, side, ++before);
          break;
        case Act::Kind::wait:
          ++before;
          break;
        default:
          break;
      }
    }
    poll_began = results.size();
  }
  void wait_beside(ModelWords& words, std::size_t rank, std::size_t m, Side side, std::uint64_t epoch) const {
    if (scene_.fault.waits_before_start_counts) --epoch;
    Progress const progress = await_message(words, views_[m], side, epoch);
    if (progress == Progress::lost) words.store(ended(rank), lost_mark);
    decide(progress);
    if (is_taken_out(views_[m], side)) take_message(words, views_[m], epoch);
  }
  void run_rank(std::size_t rank, std::vector<std::uint64_t> const& results, std::size_t& poll_began) const {
    ModelWords words(scene_, results);
    Epochs epoch{};
    std::uint64_t forks = 0;
    for (Act const& act : scene_.acts[rank]) {
      auto const m = static_cast<std::size_t>(act.message);
      MessageView const& view = views_[m];
      // To itself, `epoch` says which side: 0 receives.
      Side const side = side_of(rank, act.message, act.epoch);
      std::uint64_t* const own = &epoch[m][static_cast<std::size_t>(side)];
      poll_began = results.size();
      switch (act.kind) {
        case Act::Kind::fill:
          words.result(
              {Operation::Kind::fill, m * items_of_message, 0, static_cast<std::uint64_t>(act.epoch)});
          break;
        case Act::Kind::start:
          start_message(words, view, side, own);
          break;
        case Act::Kind::wait: {
          poll_began = words.used();
          decide(poll_message(words, view, side, own));
          break;
        }
        case Act::Kind::fork:
          words.store(begun(rank), ++forks);
          break;
        case Act::Kind::join: {
          poll_began = words.used();
          std::uint64_t const there = words.load(ended(rank));
          if (there == lost_mark) throw Lost{};
          if (there < forks) throw Polled{};
          break;
        }
        case Act::Kind::check:
          words.result(
              {Operation::Kind::check, m * items_of_message + 1, 0, static_cast<std::uint64_t>(act.epoch)});
          break;
        case Act::Kind::leave:
          leave(words, rank);
          break;
      }
    }
    poll_began = results.size();
  }
  void leave(ModelWords& words, std::size_t rank) const {
    for (std::size_t m = 0; m < views_.size(); ++m) {
      Side const side = side_of(rank, static_cast<int>(m), 0);
      words.result({Operation::Kind::close, m, static_cast<std::size_t>(side), 0});
      words.store(side == Side::sender ? views_[m].sender_gone : views_[m].receiver_gone, 1);
      words.result(
          {Operation::Kind::fill, m * items_of_message + (side == Side::sender ? 0 : 1), 0, overwritten});
    }
  }

  void complain(std::string const& problem) {
    if (found_.problem.empty()) found_.problem = problem;
  }

  // ---- memory
  void show(State& s, std::size_t rank) const {
    Stored const& oldest = s.agents[rank].buffer.front();
    s.words[oldest.word] = oldest.what;
    s.agents[rank].buffer.erase(s.agents[rank].buffer.begin());
  }
  void read(State& s, std::size_t rank, std::size_t at) {
    Item& item = s.items[at];
    Clock const& now = s.agents[rank].clock;
    if (now[static_cast<std::size_t>(item.writer)] < item.written) complain("bytes are read beside a store");
    item.read[rank] = now[rank];
  }
  void write(State& s, std::size_t rank, std::size_t at, std::uint64_t value) {
    Item& item = s.items[at];
    Clock const& now = s.agents[rank].clock;
    if (now[static_cast<std::size_t>(item.writer)] < item.written)
      complain("bytes are stored beside a store");
    for (std::size_t a = 0; a < agents_; ++a)
      if (now[a] < item.read[a]) complain("bytes are stored beside a load");
    item.value = value;
    item.writer = static_cast<int>(rank);
    item.written = now[rank];
  }
  std::uint64_t move(State& s, std::size_t rank, Operation const& o) {
    // The other side's buffer, under its lock.
    std::size_t const m = o.at / items_of_message;
    bool const sends = !scene_.to_itself && scene_.sender[m] == static_cast<int>(rank);
    std::size_t const lock = m * 2 + static_cast<std::size_t>(sends ? Side::receiver : Side::sender);
    join(s.agents[rank].clock, s.moving[lock]);
    bool const may = !s.closed[lock] || scene_.fault.moves_after_leave;
    if (may) copy(s, rank, o);
    join(s.moving[lock], s.agents[rank].clock);
    return may ? 1 : 0;
  }
  void copy(State& s, std::size_t rank, Operation const& o) {
    read(s, rank, o.from);
    write(s, rank, o.at, s.items[o.from].value);
  }
  std::uint64_t load(State& s, std::size_t rank, std::size_t at) const {
    Agent& agent = s.agents[rank];
    for (auto stored = agent.buffer.rbegin(); stored != agent.buffer.rend(); ++stored)
      if (stored->word == at) return stored->what.value;
    if (!scene_.fault.loads_acquire_nothing) join(agent.clock, s.words[at].released);
    return s.words[at].value;
  }

  std::uint64_t execute(State& s, std::size_t rank, Operation const& o) {
    Agent& agent = s.agents[rank];
    if (o.kind != Operation::Kind::load) ++agent.clock[rank];  // polls in vain change nothing
    switch (o.kind) {
      case Operation::Kind::add: {
        while (!agent.buffer.empty()) show(s, rank);
        Counter& word = s.words[o.at];
        join(agent.clock, word.released);
        join(word.released, agent.clock);
        word.value += o.value;
        return word.value - o.value;
      }
      case Operation::Kind::load:
        return load(s, rank, o.at);
      case Operation::Kind::store:
        agent.buffer.push_back(
            {o.at, {o.value, scene_.fault.stores_release_nothing ? Clock{} : agent.clock}});
        return 0;
      case Operation::Kind::copy:
        copy(s, rank, o);
        return 0;
      case Operation::Kind::move:
        return move(s, rank, o);
      case Operation::Kind::fill:
        write(s, rank, o.at, o.value);
        return 0;
      case Operation::Kind::check:
        read(s, rank, o.at);
        if (s.items[o.at].value != o.value) complain("a wait has ended, and the target has another epoch");
        write(s, rank, o.at, overwritten);
        return 0;
      case Operation::Kind::close: {
        std::size_t const lock = o.at * 2 + o.from;
        join(agent.clock, s.moving[lock]);
        s.closed[lock] = true;
        join(s.moving[lock], agent.clock);
        return 0;
      }
    }
    return 0;
  }

  // ---- the search
  /// Goes on by one operation; false: it polls in vain, and is as it was.
  bool go_on(State& s, std::size_t rank) {
    Agent& agent = s.agents[rank];
    std::size_t poll_began = 0;
    try {
      run(rank, agent.results, poll_began);
    } catch (Next const& next) {
      agent.results.push_back(execute(s, rank, next.operation));
    }
    return settle(s, rank);
  }
  /// What follows from the results that are there.
  bool settle(State& s, std::size_t rank) {
    Agent& agent = s.agents[rank];
    std::size_t poll_began = 0;
    try {
      run(rank, agent.results, poll_began);
      agent.ended = true;
    } catch (Next const&) {
    } catch (Polled const&) {
      agent.results.resize(poll_began);
      return false;
    } catch (Lost const&) {
      agent.ended = agent.lost = true;
      if (!scene_.may_be_lost) complain("a wait says that its peer has gone");
    } catch (std::runtime_error const& e) {
      complain(e.what());
    }
    return true;
  }
  // Whether a rank's whole poll, now, would be in vain. Not of one in the middle of it.
  bool waits_in_vain(State const& now, std::size_t rank) {
    State s = now;
    for (std::size_t steps = 0; steps < 8; ++steps) {
      std::size_t poll_began = 0;
      try {
        run(rank, s.agents[rank].results, poll_began);
        return false;
      } catch (Next const& next) {
        bool const is_midway = steps == 0 && poll_began != s.agents[rank].results.size();
        if (is_midway || next.operation.kind != Operation::Kind::load) return false;
        s.agents[rank].results.push_back(load(s, rank, next.operation.at));
      } catch (Polled const&) {
        return true;
      } catch (...) {
        return false;
      }
    }
    return false;
  }

  void visit(State const& s) {
    if (!found_.problem.empty() || !seen_.insert(text_of(s)).second) return;
    ++found_.states;
    bool stuck = true, all_ended = true;
    for (std::size_t r = 0; r < agents_; ++r) {
      Agent const& agent = s.agents[r];
      all_ended = all_ended && (agent.ended || r >= ranks);  // others of a lost rank have no fork to come
      stuck = stuck && agent.buffer.empty() && (agent.ended || waits_in_vain(s, r));
    }
    if (stuck && !all_ended) return complain("somebody waits for ever");
    if (stuck) {
      ++found_.ends;
      found_.losses += s.agents[0].lost || s.agents[1].lost;
      return;
    }
    for (std::size_t r = 0; r < agents_; ++r) {
      if (!s.agents[r].buffer.empty()) {
        State next = s;
        ++found_.moves;
        show(next, r);
        visit(next);
      }
      if (s.agents[r].ended) continue;
      State next = s;
      ++found_.moves;
      go_on(next, r);
      visit(next);
    }
  }
  std::string text_of(State const& s) const {
    std::string text;
    auto const add = [&](auto const& value) {
      text.append(reinterpret_cast<char const*>(&value), sizeof value);
    };
    auto const add_clock = [&](Clock const& clock) {
      for (std::size_t a = 0; a < agents_; ++a) add(clock[a]);
    };
    for (Counter const& w : s.words) add(w.value), add_clock(w.released);
    for (Item const& p : s.items) add(p.value), add(p.writer), add(p.written), add_clock(p.read);
    add(s.closed);
    for (Clock const& clock : s.moving) add_clock(clock);
    for (std::size_t which = 0; which < agents_; ++which) {
      Agent const& a = s.agents[which];
      add_clock(a.clock), add(a.ended), add(a.lost), add(a.results.size()), add(a.buffer.size());
      for (std::uint64_t const r : a.results) add(r);
      for (Stored const& b : a.buffer) add(b.word), add(b.what.value), add_clock(b.what.released);
    }
    return text;
  }

  Scene const& scene_;
  std::size_t agents_ = ranks;
  std::vector<MessageView> views_;
  std::unordered_set<std::string> seen_;
  Found found_;
};

}  // namespace

Found explore_text(Scene const& scene) { return Explorer(scene).explore(); }

}  // namespace hostless::test
