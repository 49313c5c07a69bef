#pragma once
// Plays the duties of all blocks of all ranks, in any order: each block goes on whenever what it awaits has
// come, and what it stores is seen later, half by half, in an order that only one memory cell keeps. Every
// value says whose item it is and of which exchange.

#include <array>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "exchange/kernel_duties.hpp"
#include "plan_cases.hpp"

namespace hostless::testing {

/// Where the sum over all ranks lies: there is none and blocks answer; blocks say theirs before they exchange
/// and read ghosts when they have all; or behind the exchange.
enum class Sums { none, begun_before, behind };
/// What is done wrong on purpose.
enum class Fault { none, one_buffer, unanswered, falling_levels };

struct Played {
  std::string problem;  ///< the first one, or empty
  std::int64_t read = 0;
};

class DutyPlay {
 public:
  static constexpr int exchanges = 5;

  DutyPlay(std::vector<ExchangePlan> const& plans, std::vector<KernelDuties> const& duties, bool lands,
           Sums sums, Fault fault)
      : plans_(plans), duties_(duties), lands_(lands), sums_(sums), fault_(fault), memory_(plans.size()) {
    for (std::size_t r = 0; r < plans.size(); ++r) {
      std::int64_t const all = plans[r].owned + plans[r].ghosts;  // offsets may be anywhere in the vector
      for (int parity = 0; parity < 2; ++parity) {
        memory_[r].staging[at(parity)].resize(at(duties[r].staging));
        memory_[r].ghost[at(parity)].resize(at(lands ? plans[r].ghosts : all));
        memory_[r].answer[at(parity)].resize(at(duties[r].answers_here()));
      }
      for (PeerCopy const& copy : duties[r].copies)
        if (copy.from_staging)
          for (auto& words : memory_[r].staging) ++words.at(at(copy.from)).readers;
      for (auto& words : memory_[r].ghost)
        for (Cell& word : words) word.readers = 1;
    }
    for (std::size_t r = 0; r < plans.size(); ++r)
      for (int block = 0; block < duties[r].blocks; ++block)
        blocks_.push_back({r, block, program_of(r, block)});
    arrived_.assign(exchanges + 1, 0);
  }

  /// ghosts of each rank by number: whose items they are
  Played run(std::vector<std::vector<std::pair<Rank, std::int32_t>>> const& ghosts, unsigned seed) {
    expected_ = &ghosts;
    random_.seed(seed);
    bool const by_rank = random_() % 2 == 0;  // one that is preferred as long as it can go on
    std::vector<std::size_t> order(blocks_.size());
    for (std::size_t b = 0; b < order.size(); ++b) order[b] = b;
    std::shuffle(order.begin(), order.end(), random_);
    while (found_.problem.empty()) {
      if (random_() % 64 == 0) std::shuffle(order.begin(), order.end(), random_);
      if (!pending_.empty() && random_() % 2 == 0) deliver();
      bool went = false;
      std::size_t const first = by_rank ? 0 : random_() % order.size();
      for (std::size_t k = 0; k < order.size() && !went; ++k)
        went = go(blocks_[order[(first + k) % order.size()]]);
      if (went) continue;
      if (!pending_.empty()) {
        deliver();
        continue;
      }
      for (Block const& block : blocks_)
        if (block.exchange <= exchanges && found_.problem.empty())
          found_.problem = "block " + std::to_string(block.block) + " of rank " + std::to_string(block.rank) +
                           " waits for ever in exchange " + std::to_string(block.exchange);
      break;
    }
    return found_;
  }

 private:
  struct Half {
    std::int64_t value = 0;
    int epoch = 0;
  };
  struct Cell {
    std::array<Half, 2> half;
    int readers = 0, read = 0;  ///< of the epoch that it holds
  };
  struct Memory {
    std::array<std::vector<Cell>, 2> staging, ghost, answer;  // [parity]
  };
  struct Step {
    enum class Kind { answered, copy, arrive, all_arrived, take, answer } kind;
    PeerCopy copy;
    std::size_t number = 0;  ///< of an answer or a ghost
    DutyAnswer answer;
  };
  struct Block {
    std::size_t rank;
    int block;
    std::vector<Step> program;
    int exchange = 1;
    std::size_t at_step = 0;
  };
  struct Pending {
    Cell* word;
    std::size_t half;
    Half what;
  };

  std::size_t parity(int exchange) const { return fault_ == Fault::one_buffer ? 0 : at(exchange % 2); }
  std::size_t index_of(std::size_t rank, std::int32_t offset) const {
    return at(lands_ ? offset : offset + plans_[rank].ghosts_below);
  }

  std::vector<Step> program_of(std::size_t rank, int block) const {
    using Kind = Step::Kind;
    KernelDuties const& d = duties_[rank];
    auto const me = at(block);
    std::vector<Step> steps;
    if (fault_ != Fault::unanswered)
      for (std::int32_t k = d.first_awaited[me]; k < d.first_awaited[me + 1]; ++k)
        steps.push_back({Kind::answered, {}, at(k), {}});
    if (sums_ == Sums::begun_before) steps.push_back({Kind::arrive, {}, 0, {}});
    for (int turn = 0; turn < d.levels; ++turn) {
      int const level = turn == 0 || fault_ != Fault::falling_levels ? turn : d.levels - turn;
      for (std::int32_t k = d.first_of(block, level); k < d.first[at(block * d.levels + level) + 1]; ++k)
        steps.push_back({Kind::copy, d.copies[at(k)], 0, {}});
    }
    if (sums_ == Sums::begun_before) steps.push_back({Kind::all_arrived, {}, 0, {}});
    for (std::int32_t k = d.first_landing[me]; k < d.first_landing[me + 1]; ++k)
      steps.push_back({Kind::take, {}, at(d.landings[at(k)]), {}});
    if (!lands_)
      for (std::int64_t g = block; g < plans_[rank].ghosts; g += d.blocks)
        steps.push_back({Kind::take, {}, at(g), {}});
    for (std::int32_t k = d.first_answer[me]; k < d.first_answer[me + 1]; ++k)
      steps.push_back({Kind::answer, {}, 0, d.answers[at(k)]});
    if (sums_ == Sums::behind) {
      steps.push_back({Kind::arrive, {}, 0, {}});
      steps.push_back({Kind::all_arrived, {}, 0, {}});
    }
    return steps;
  }

  /// One step. False: it cannot.
  bool go(Block& block) {
    if (block.exchange > exchanges) return false;
    if (block.at_step < block.program.size() && !done(block, block.program[block.at_step])) return false;
    if (++block.at_step >= block.program.size()) {
      block.at_step = 0;
      ++block.exchange;
    }
    return true;
  }
  bool done(Block& block, Step const& step) {
    using Kind = Step::Kind;
    int const n = block.exchange;
    Memory& here = memory_[block.rank];
    switch (step.kind) {
      case Kind::answered:
        return n <= 2 || holds(here.answer[parity(n)].at(step.number), n - 2);
      case Kind::copy:
        return copied(block, step.copy);
      case Kind::arrive:
        ++arrived_[at(n)];
        return true;
      case Kind::all_arrived:
        return arrived_[at(n)] == blocks_.size();
      case Kind::take:
        return taken(block, step.number);
      case Kind::answer:
        store(memory_[at(step.answer.target)].answer[parity(n)].at(at(step.answer.slot)), 0, n);
        return true;
    }
    return false;
  }
  static bool holds(Cell const& word, int epoch) {
    return word.half[0].epoch == epoch && word.half[1].epoch == epoch;
  }
  bool copied(Block& block, PeerCopy const& copy) {
    int const n = block.exchange;
    std::int64_t value = 0;
    if (copy.from_staging) {
      Cell& word = memory_[block.rank].staging[parity(n)].at(at(copy.from));
      if (!holds(word, n)) return false;
      ++word.read;
      value = word.half[0].value;
    } else {
      value = n + 100 * value_of(static_cast<Rank>(block.rank), copy.from);
    }
    auto const target = at(copy.target);
    Memory& there = memory_[target];
    store(copy.to_staging ? there.staging[parity(n)].at(at(copy.to))
                          : there.ghost[parity(n)].at(index_of(target, copy.to)),
          value, n);
    return true;
  }
  bool taken(Block& block, std::size_t ghost) {
    int const n = block.exchange;
    ExchangePlan const& plan = plans_[block.rank];
    std::size_t const index =
        lands_ ? ghost
               : index_of(block.rank, static_cast<std::int32_t>(
                                          plan.vector_offset(plan.owned + static_cast<std::int64_t>(ghost))));
    Cell& word = memory_[block.rank].ghost[parity(n)].at(index);
    if (!holds(word, n)) return false;
    auto const [source, item] = (*expected_)[block.rank].at(ghost);
    std::int64_t const expected = n + 100 * value_of(source, item);
    if (word.half[0].value != expected || word.half[1].value != expected)
      fail("ghost " + std::to_string(ghost) + " of rank " + std::to_string(block.rank) +
           " is wrong in exchange " + std::to_string(n));
    ++word.read;
    ++found_.read;
    return true;
  }

  void store(Cell& word, std::int64_t value, int epoch) {
    for (std::size_t half = 0; half < 2; ++half) pending_.push_back({&word, half, {value, epoch}});
  }
  /// Any store that waits, but of one cell the first.
  void deliver() {
    std::size_t const chosen = random_() % pending_.size();
    Pending const any = pending_[chosen];
    std::size_t first = 0;
    while (pending_[first].word != any.word || pending_[first].half != any.half) ++first;
    Pending const store = pending_[first];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(first));
    Cell& word = *store.word;
    Half& half = word.half[store.half];
    if (half.epoch != 0 && word.readers != 0 && word.half[1 - store.half].epoch != store.what.epoch) {
      if (word.read != word.readers)
        fail("a word is overwritten in exchange " + std::to_string(store.what.epoch) + " and was read by " +
             std::to_string(word.read) + " of " + std::to_string(word.readers));
    }
    if (word.half[1 - store.half].epoch != store.what.epoch) word.read = 0;
    half = store.what;
  }
  void fail(std::string const& what) {
    if (found_.problem.empty()) found_.problem = what;
  }

  std::vector<ExchangePlan> const& plans_;
  std::vector<KernelDuties> const& duties_;
  bool lands_;
  Sums sums_;
  Fault fault_;
  std::vector<Memory> memory_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> arrived_;  // [exchange] blocks
  std::deque<Pending> pending_;
  std::vector<std::vector<std::pair<Rank, std::int32_t>>> const* expected_ = nullptr;
  std::mt19937 random_;
  Played found_;
};

}  // namespace hostless::testing
