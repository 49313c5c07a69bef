#include "protocol_explorer.hpp"

#include <algorithm>
#include <stdexcept>

#include "protocol_state.hpp"

namespace hostless::test {
namespace {

using gpu::FlaggedWord;

class Explorer {
 public:
  Explorer(Protocol const& protocol, Stores stores)
      : p_(protocol), stores_(stores), agents_(protocol.programs.size()) {
    if (agents_ > most_agents || p_.cells.size() > most_cells || p_.barriers > most_barriers)
      throw std::logic_error("a protocol that is too large to explore");
    epoch_.assign(before + 1, p_.first_epoch);
    for (int m = 1; m <= p_.barriers; ++m) epoch_.push_back(p_.rules.next(epoch_.back()));
    find_readers();
    find_acceptable();
  }
  Explored explore() {
    State start;
    for (std::size_t c = 0; c < p_.cells.size(); ++c) start.cell[c] = before;
    settle(start);
    visit(start);
    found_.states = seen_.count();
    return found_;
  }

 private:
  using Kind = Step::Kind;
  static unsigned bit(std::size_t agent) { return 1u << agent; }
  Step const* step_of(State const& s, std::size_t agent) const {
    auto const& program = p_.programs[agent];
    return s.step[agent] < program.size() ? &program[s.step[agent]] : nullptr;
  }
  static Code shown(State const& s, int cell) { return s.cell[static_cast<std::size_t>(cell)] & 15u; }
  static bool is_pending(State const& s, std::size_t cell) { return s.cell[cell] >> code_bits != 0; }

  // ---- what flagged words hold
  std::uint64_t value_of(int writer, Code code) const {
    auto const number = static_cast<std::uint64_t>(16 * (writer + 1) + code);
    return number << 32 | (number + 1000);
  }
  FlaggedWord whole(int cell, Code code) const {
    Cell const& c = p_.cells[static_cast<std::size_t>(cell)];
    if (code == poisoned) return gpu::flagged_word_of(0, gpu::poison);
    std::uint32_t epoch = epoch_[code];
    // Before the first barrier a buffer holds the last epoch of its parity, or zeros.
    if (code == before && epoch != 0 && gpu::parity_of(epoch) != c.parity) --epoch;
    return gpu::flagged_word_of(epoch == 0 ? 0 : value_of(c.writer, code), epoch);
  }
  // Of two halves that were loaded each for itself.
  FlaggedWord joined(int word, Code first, Code second) const {
    FlaggedWord const a = whole(word, first), b = whole(word + 1, second);
    return {{a.part[0], a.part[1], b.part[2], b.part[3]}};
  }
  bool accepts(int word, Code first, Code second, int barrier) const {
    return p_.rules.accepts(joined(word, first, second), epoch_[before + static_cast<std::size_t>(barrier)]);
  }
  // With some other half.
  bool could_accept(int cell, Code code, int barrier) const {
    return acceptable_[static_cast<std::size_t>(cell)][code] >> barrier & 1u;
  }
  void find_acceptable() {
    acceptable_.resize(p_.cells.size());
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      int const half = p_.cells[c].half, word = static_cast<int>(c) - half;
      for (Code code = before; half >= 0 && code <= before + p_.barriers; ++code)
        for (Code other = before; other <= before + p_.barriers; ++other)
          for (int m = 1; m <= p_.barriers; ++m)
            if (half == 0 ? accepts(word, code, other, m) : accepts(word, other, code, m))
              acceptable_[c][code] |= 1u << m;
    }
  }

  // ---- what agents do
  void store(State& s, int cell, Code code) const {
    std::uint16_t& all = s.cell[static_cast<std::size_t>(cell)];
    for (int at = 1; at <= most_pending; ++at) {
      if ((all >> at * code_bits & 15u) != 0) continue;
      all = static_cast<std::uint16_t>(all | code << at * code_bits);
      return;
    }
    throw std::logic_error("a cell with more waiting stores than its state has room for");
  }
  bool is_drained(State const& s, std::size_t agent) const {
    for (std::size_t c = 0; c < p_.cells.size(); ++c)
      if (p_.cells[c].writer == static_cast<int>(agent) && is_pending(s, c)) return false;
    return true;
  }
  // Steps that commute with everything others do: storing into the own buffer, passing a fence that holds
  // nothing up, ending.
  void settle(State& s) const {
    for (std::size_t agent = 0; agent < agents_; ++agent) {
      while (((s.lost | s.ended) & bit(agent)) == 0) {
        Step const* const step = step_of(s, agent);
        if (step == nullptr) {
          end(s, agent);
        } else if (step->kind == Kind::store) {
          for (int cell : step->cells) store_all_of(s, cell, static_cast<Code>(before + step->barrier));
        } else if (step->kind == Kind::fence) {
          if (!is_drained(s, agent)) break;
          s.early[agent] = {};
        } else if (!are_over(s, agent, *step)) {
          break;
        } else if (has_failed(s, agent)) {
          s.failed = static_cast<std::uint8_t>(s.failed | bit(agent));
          if (p_.telling == Telling::everybody) tell(s, agent, -1);
          end(s, agent);
          break;
        }
        s.wait[agent] = {};
        if (step != nullptr) ++s.step[agent];
      }
    }
  }
  void store_all_of(State& s, int cell, Code code) const {
    store(s, cell, code);
    if (p_.cells[static_cast<std::size_t>(cell)].half == 0) store(s, cell + 1, code);
  }
  static void end(State& s, std::size_t agent) {
    s.ended = static_cast<std::uint8_t>(s.ended | bit(agent));
    s.wait[agent] = {};
    s.early[agent] = {};
  }
  static bool are_over(State const& s, std::size_t agent, Step const& step) {
    for (std::size_t k = 0; k < step.cells.size(); ++k)
      if (s.wait[agent][k] != got && s.wait[agent][k] != failed_wait) return false;
    return true;
  }
  static bool has_failed(State const& s, std::size_t agent) {
    auto const& waits = s.wait[agent];
    return std::find(waits.begin(), waits.end(), failed_wait) != waits.end();
  }
  void tell(State& s, std::size_t agent, int memory) const {
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      Cell const& cell = p_.cells[c];
      if (cell.writer == static_cast<int>(agent) && cell.half >= 0 && cell.tells &&
          (memory < 0 || cell.memory == memory))
        store(s, static_cast<int>(c), poisoned);
    }
  }

  // ---- moves
  // A store that may become visible at once (Stores::that_matter), or -1.
  int indifferent(State const& s) const {
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      Cell const& cell = p_.cells[c];
      if (cell.half < 0 || !is_pending(s, c) || (p_.lost_together >> cell.writer & 1u) != 0) continue;
      Code const old = s.cell[c] & 15u;
      bool matters = old == poisoned;
      for (int m = 1; m <= p_.barriers && !matters; ++m)
        for (Reader const& reader : readers_[c][before + static_cast<std::size_t>(m)])
          matters = matters || (has_still_to_read(s, reader) &&
                                (!polls(reader) || could_accept(static_cast<int>(c), old, m)));
      if (!matters) return static_cast<int>(c);
    }
    return -1;
  }
  // True when those that will happen without a loss or a deadline are among them.
  bool list(State const& s, Moves& moves) const {
    bool sure = false;
    for (std::size_t c = 0; c < p_.cells.size(); ++c) {
      if (!is_pending(s, c)) continue;
      moves.add({Move::Kind::show, static_cast<std::uint8_t>(c)});
      sure = sure || (s.lost & bit(static_cast<std::size_t>(p_.cells[c].writer))) == 0;
    }
    for (std::size_t agent = 0; agent < agents_; ++agent) {
      if (((s.lost | s.ended) & bit(agent)) != 0) continue;
      Step const* const step = step_of(s, agent);
      list_early(s, agent, moves);
      if (step->kind != Kind::await && step->kind != Kind::read) continue;
      for (std::size_t k = 0; k < step->cells.size(); ++k) {
        if (s.wait[agent][k] == got || s.wait[agent][k] == failed_wait) continue;
        if (step->kind == Kind::read) {
          moves.add({Move::Kind::read, static_cast<std::uint8_t>(agent), static_cast<std::uint8_t>(k)});
          sure = true;
        } else {
          sure = list_wait(s, agent, k, *step, moves) || sure;
        }
      }
    }
    return sure;
  }
  bool list_wait(State const& s, std::size_t agent, std::size_t k, Step const& step, Moves& moves) const {
    int const word = step.cells[k];
    std::uint8_t const wait = s.wait[agent][k];
    auto const of = [&](Move::Kind kind, int half = 0) {
      return Move{kind, static_cast<std::uint8_t>(agent), static_cast<std::uint8_t>(k),
                  static_cast<std::uint8_t>(half)};
    };
    auto const [first, second] = loaded(s, wait, word);
    bool sure = true;
    if (accepts(word, first, second, step.barrier)) {
      moves.add(of(Move::Kind::take));
    } else if (gpu::is_poisoned(joined(word, first, second))) {
      moves.add(of(Move::Kind::fail));
    } else {
      sure = wait != waiting;  // another poll is the last one then: nobody hangs here
    }
    // Half of a flagged word is loaded before the other where that is not there yet; with both there, later
    // is as good.
    if (wait != waiting || (sure && stores_ == Stores::that_matter)) return sure;
    for (int half = 0; half < 2; ++half)
      if (could_accept(word + half, shown(s, word + half), step.barrier))
        moves.add(of(Move::Kind::first_half, half));
    return sure;
  }
  static std::array<Code, 2> loaded(State const& s, std::uint8_t wait, int word) {
    std::array<Code, 2> codes{shown(s, word), shown(s, word + 1)};
    if (wait >= holds) codes[wait >> code_bits & 1u] = wait & 15u;
    return codes;
  }
  // Loads of a later step, unless a fence lies between.
  void list_early(State const& s, std::size_t agent, Moves& moves) const {
    auto const& program = p_.programs[agent];
    for (std::size_t at = s.step[agent] + 1u; at < program.size(); ++at) {
      if (program[at].kind == Kind::fence) return;
      if (program[at].kind != Kind::read) continue;
      for (std::size_t k = 0; k < program[at].cells.size(); ++k)
        if (s.early[agent][k] == nothing)
          moves.add({Move::Kind::early, static_cast<std::uint8_t>(agent), static_cast<std::uint8_t>(k)});
      return;
    }
  }
  void list_deadlines(State const& s, Moves& moves) const {
    for (std::size_t agent = 0; agent < agents_; ++agent) {
      Step const* const step = ((s.lost | s.ended) & bit(agent)) != 0 ? nullptr : step_of(s, agent);
      if (step == nullptr || step->kind != Kind::await) continue;
      for (std::size_t k = 0; k < step->cells.size(); ++k)
        if (s.wait[agent][k] == waiting)
          moves.add({Move::Kind::deadline, static_cast<std::uint8_t>(agent), static_cast<std::uint8_t>(k)});
    }
  }

  // The state after a move; found_.problem when it should not have been possible.
  State after(State s, Move const& move) {
    std::size_t const agent = move.agent;
    if (move.kind == Move::Kind::show) {
      show(s, move.agent);
    } else if (move.kind == Move::Kind::lose) {
      s.lost = static_cast<std::uint8_t>(p_.lost_together & ~static_cast<unsigned>(s.ended));
      for (std::size_t a = 0; a < agents_; ++a)
        if ((s.lost & bit(a)) != 0) s.wait[a] = s.early[a] = {};
    } else {
      Step const& step = *step_of(s, agent);
      std::uint8_t& wait = s.wait[agent][move.wait];
      switch (move.kind) {
        case Move::Kind::first_half:
          wait = static_cast<std::uint8_t>(holds | move.half << code_bits |
                                           shown(s, step.cells[move.wait] + move.half));
          return s;  // nobody else goes on by that
        case Move::Kind::take:
          take(s, agent, move.wait, step);
          break;
        case Move::Kind::read:
          read(s, agent, move.wait, step);
          break;
        case Move::Kind::early:
          load_early(s, agent, move.wait);
          return s;
        default:
          fail(s, agent, move.wait, step);
          break;
      }
    }
    settle(s);
    return s;
  }
  void show(State& s, std::size_t cell) {
    Code const old = s.cell[cell] & 15u;
    s.cell[cell] = static_cast<std::uint16_t>(s.cell[cell] >> code_bits);
    Code const now = s.cell[cell] & 15u;
    if (old <= before || old == poisoned || now == poisoned) return;
    for (Reader const& reader : readers_[cell][old]) {
      if (has_still_to_read(s, reader))
        complain("what agent " + std::to_string(reader.agent) + " has not read is overwritten");
    }
  }
  void take(State& s, std::size_t agent, std::size_t k, Step const& step) {
    int const word = step.cells[k];
    auto const [first, second] = loaded(s, s.wait[agent][k], word);
    FlaggedWord const right = whole(word, static_cast<Code>(before + step.barrier)),
                      seen = joined(word, first, second);
    if (gpu::bits_of(seen) != gpu::bits_of(right) || seen.part[1] != right.part[1] ||
        seen.part[3] != right.part[3])
      complain("agent " + std::to_string(agent) + " accepts a word that nobody meant");
    s.wait[agent][k] = got;
  }
  void read(State& s, std::size_t agent, std::size_t k, Step const& step) {
    Code const early = s.early[agent][k], seen = early != nothing ? early : shown(s, step.cells[k]);
    if (seen != before + step.barrier)
      complain("agent " + std::to_string(agent) + " reads a value of another meeting");
    s.wait[agent][k] = got;
    s.early[agent][k] = nothing;
  }
  void load_early(State& s, std::size_t agent, std::size_t k) const {
    auto const& program = p_.programs[agent];
    std::size_t at = s.step[agent] + 1u;
    while (program[at].kind != Kind::read) ++at;
    s.early[agent][k] = shown(s, program[at].cells[k]);
  }
  void fail(State& s, std::size_t agent, std::size_t k, Step const& step) const {
    s.wait[agent][k] = failed_wait;
    Cell const& missed = p_.cells[static_cast<std::size_t>(step.cells[k])];
    if (p_.telling == Telling::missed) tell(s, agent, missed.writer);
  }

  // ---- the search
  bool visit(State const& s) {
    if (!seen_.insert(s)) return true;
    Moves moves;
    if (int const cell = stores_ == Stores::each ? -1 : indifferent(s); cell >= 0) {
      moves.add({Move::Kind::show, static_cast<std::uint8_t>(cell)});
      return go(s, moves);
    }
    bool const sure = list(s, moves);
    bool const all_ended = (s.ended | s.lost) == bit(agents_) - 1;
    if (all_ended && !sure) {
      ++found_.ends;
      if (s.failed != 0) ++found_.losses;
    }
    if (!all_ended &&
        (p_.deadlines == Deadlines::any_time || (!sure && p_.deadlines == Deadlines::last_resort))) {
      list_deadlines(s, moves);
    } else if (!all_ended && !sure) {
      complain("somebody waits for ever");
      return false;
    }
    if (p_.lost_together != 0 && s.lost == 0 && (p_.lost_together & ~static_cast<unsigned>(s.ended)) != 0)
      moves.add({Move::Kind::lose});
    return go(s, moves);
  }
  bool go(State const& s, Moves const& moves) {
    for (int m = 0; m < moves.count; ++m) {
      Move const& move = moves.move[static_cast<std::size_t>(m)];
      ++found_.moves;
      path_.push_back(move);
      State const next = after(s, move);
      if (!found_.problem.empty() || !visit(next)) return false;
      path_.pop_back();
    }
    return true;
  }
  void complain(std::string problem) {
    found_.problem = std::move(problem);
    for (Move const& move : path_) found_.path.push_back(words_of(move));
  }
  std::string words_of(Move const& move) const {
    static constexpr std::array<char const*, 8> names = {
        "shows", "loads the first half", "accepts", "finds poison", "waits no longer",
        "reads", "reads ahead",          "loss"};
    std::string const name = names[static_cast<std::size_t>(move.kind)];
    if (move.kind == Move::Kind::lose) return name;
    if (move.kind != Move::Kind::show)
      return "agent " + std::to_string(move.agent) + " " + name + ", wait " + std::to_string(move.wait);
    Cell const& cell = p_.cells[move.agent];
    return "memory " + std::to_string(cell.memory) + " " + name + " cell " + std::to_string(move.agent) +
           " of agent " + std::to_string(cell.writer);
  }

  struct Reader {
    std::size_t agent, step, wait;
  };
  bool has_still_to_read(State const& s, Reader const& reader) const {
    if (((s.lost | s.ended) & bit(reader.agent)) != 0) return false;
    std::uint8_t const step = s.step[reader.agent], wait = s.wait[reader.agent][reader.wait];
    return step < reader.step || (step == reader.step && wait != got && wait != failed_wait);
  }
  bool polls(Reader const& reader) const {
    return p_.programs[reader.agent][reader.step].kind == Kind::await;
  }
  void find_readers() {
    readers_.resize(p_.cells.size());
    for (auto& of_cell : readers_) of_cell.resize(before + 1u + static_cast<std::size_t>(p_.barriers));
    for (std::size_t agent = 0; agent < agents_; ++agent) {
      auto const& program = p_.programs[agent];
      for (std::size_t at = 0; at < program.size(); ++at) {
        Step const& step = program[at];
        if (step.cells.size() > most_waits) throw std::logic_error("a step of too many cells");
        if (step.kind != Kind::await && step.kind != Kind::read) continue;
        for (std::size_t k = 0; k < step.cells.size(); ++k) {
          auto const cell = static_cast<std::size_t>(step.cells[k]);
          auto const code = before + static_cast<std::size_t>(step.barrier);
          readers_[cell][code].push_back({agent, at, k});
          if (step.kind == Kind::await) readers_[cell + 1][code].push_back({agent, at, k});
        }
      }
    }
  }

  Protocol const& p_;
  Stores stores_;
  std::size_t agents_;
  std::vector<std::uint32_t> epoch_;                       // by code
  std::vector<std::vector<std::vector<Reader>>> readers_;  // by cell and code
  std::vector<std::array<unsigned, 16>> acceptable_;       // by cell and code: the barriers, as bits
  Seen seen_;
  std::vector<Move> path_;
  Explored found_;
};

}  // namespace

Explored explore(Protocol const& protocol, Stores stores) { return Explorer(protocol, stores).explore(); }

}  // namespace hostless::test
