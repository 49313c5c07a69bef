#include "protocols.hpp"

#include <algorithm>

namespace hostless::test {
namespace {

using Kind = Step::Kind;

// What agents send to memories, and who reads it there.
class Builder {
 public:
  Builder(Ranks const& ranks, Mutation const& mutation)
      : ranks_(ranks), mutation_(mutation), epoch_(ranks.first_epoch) {
    p_.barriers = ranks.barriers;
    p_.first_epoch = ranks.first_epoch;
    p_.rules = mutation.rules;
    p_.programs.resize(ranks.memory_of.size());
  }

  struct Channel {
    int writer, memory;
    int first[2];  // cells, by parity
  };
  // `cells`: 2 for flagged words. `buffers`: 2 for one of each parity.
  Channel channel(int writer, int memory, int cells, int buffers, bool tells) {
    Channel c{writer, memory, {}};
    for (int parity = 0; parity < buffers; ++parity) {
      c.first[parity] = static_cast<int>(p_.cells.size());
      for (int half = 0; half < cells; ++half)
        p_.cells.push_back({writer, memory, cells == 1 ? -1 : half, parity, tells});
    }
    if (buffers == 1) c.first[1] = c.first[0];
    return c;
  }
  // To every memory that somebody else reads.
  std::vector<Channel> sums() {
    std::vector<Channel> all;
    for (int writer = 0; writer < agents(); ++writer)
      for (int memory = 0; memory <= ranks_.memory_of.back(); ++memory)
        for (int reader = 0; reader < agents(); ++reader)
          if (reads(reader, writer, memory)) {
            for (int k = 0; k < ranks_.words; ++k)
              all.push_back(channel(writer, memory, 2, mutation_.one_buffer ? 1 : 2, true));
            break;
          }
    return all;
  }
  std::vector<Channel> values(int cells, int buffers, bool tells) {
    std::vector<Channel> all;
    for (auto const& [writer, memory] : ranks_.sends)
      all.push_back(channel(writer, memory, cells, buffers, tells));
    return all;
  }
  // With values, and without: from those who only get some back to those who send them.
  std::vector<Channel> signals(bool with_values) {
    std::vector<Channel> all;
    for (auto const& [writer, memory] : ranks_.sends) {
      std::pair const back(memory, writer);
      bool const has_own = std::find(ranks_.sends.begin(), ranks_.sends.end(), back) != ranks_.sends.end();
      int const buffers = mutation_.one_buffer ? 1 : 2;
      if (with_values) all.push_back(channel(writer, memory, 2, buffers, true));
      if (!with_values && !has_own) all.push_back(channel(memory, writer, 2, buffers, true));
    }
    return all;
  }
  int agents() const { return static_cast<int>(ranks_.memory_of.size()); }
  bool brings(int barrier) const {
    return barrier <= ranks_.barriers && (barrier - 1) % ranks_.data_every == 0;
  }
  bool reads(int agent, int writer, int memory) const {
    return agent != writer && ranks_.memory_of[static_cast<std::size_t>(agent)] == memory;
  }

  void begin(int agent) {
    agent_ = agent;
    epoch_ = ranks_.first_epoch;
  }
  void fence() { program().push_back({Kind::fence, 0, {}}); }
  // What this agent writes, or what it reads, of the barrier that is `ahead` of the present one.
  void add(Kind kind, int barrier, std::vector<Channel> const& of, int ahead = 0) {
    std::uint32_t epoch = epoch_;
    for (int k = 0; k < ahead; ++k) epoch = p_.rules.next(epoch);
    Step step{kind, barrier, {}};
    for (Channel const& c : of)
      if (kind == Kind::store ? c.writer == agent_ : reads(agent_, c.writer, c.memory))
        step.cells.push_back(c.first[gpu::parity_of(epoch)]);
    if (!step.cells.empty()) program().push_back(std::move(step));
  }
  void next_barrier() { epoch_ = p_.rules.next(epoch_); }
  Protocol take() { return std::move(p_); }

 private:
  std::vector<Step>& program() { return p_.programs[static_cast<std::size_t>(agent_)]; }
  Ranks const& ranks_;
  Mutation const& mutation_;
  Protocol p_;
  int agent_ = 0;
  std::uint32_t epoch_;
};

}  // namespace

Protocol ordered_by_fences(Ranks const& ranks, bool always, Mutation const& mutation) {
  Builder b(ranks, mutation);
  auto const sums = b.sums(), values = b.values(1, 1, false);
  for (int agent = 0; agent < b.agents(); ++agent) {
    b.begin(agent);
    for (int m = 1; m <= ranks.barriers; ++m) {
      b.next_barrier();
      if (mutation.sends_early && b.brings(m + 1)) b.add(Kind::store, m + 1, values);
      if (b.brings(m) && (!mutation.sends_early || m == 1)) b.add(Kind::store, m, values);
      bool const fences = always || b.brings(m);
      if (fences && !mutation.no_fence_before) b.fence();
      b.add(Kind::store, m, sums);
      b.add(Kind::await, m, sums);
      if (fences && !mutation.no_fence_after) b.fence();
      if (b.brings(m)) b.add(Kind::read, m, values);
    }
  }
  return b.take();
}

Protocol flagged_words_of_their_own(Ranks const& ranks, bool told, Mutation const& mutation) {
  Builder b(ranks, mutation);
  auto const sums = b.sums(), values = b.values(2, mutation.one_value_buffer ? 1 : 2, told);
  for (int agent = 0; agent < b.agents(); ++agent) {
    b.begin(agent);
    for (int m = 1; m <= ranks.barriers; ++m) {
      b.next_barrier();
      if (mutation.sends_early && b.brings(m + 1)) b.add(Kind::store, m + 1, values, 1);
      if (b.brings(m) && (!mutation.sends_early || m == 1)) b.add(Kind::store, m, values);
      b.add(Kind::store, m, sums);
      b.add(Kind::await, m, sums);
      if (b.brings(m)) b.add(mutation.unpolled ? Kind::read : Kind::await, m, values);
    }
  }
  return b.take();
}

Protocol puts_with_signals(Ranks const& ranks, bool answers_first, Mutation const& mutation) {
  Builder b(ranks, mutation);
  auto const values = b.values(1, mutation.one_value_buffer ? 1 : 2, false), signals = b.signals(true);
  auto const answers = mutation.no_answers ? decltype(signals){} : b.signals(false);
  for (int agent = 0; agent < b.agents(); ++agent) {
    b.begin(agent);
    for (int m = 1; m <= ranks.barriers; ++m) {
      b.next_barrier();
      if (answers_first) b.add(Kind::store, m, answers);
      if (mutation.sends_early && m < ranks.barriers) b.add(Kind::store, m + 1, values, 1);
      if (!mutation.sends_early || m == 1) b.add(Kind::store, m, values);
      if (!mutation.no_fence_before) b.fence();
      b.add(Kind::store, m, signals);
      if (!answers_first) b.add(Kind::store, m, answers);
      b.add(Kind::await, m, signals);
      b.add(Kind::await, m, answers);
      if (!mutation.no_fence_after) b.fence();
      b.add(Kind::read, m, values);
    }
  }
  return b.take();
}

}  // namespace hostless::test
