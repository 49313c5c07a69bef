#pragma once
// Halos and sums by puts with signals into memory that every rank has: where all of it lies, and in which
// order a rank queues its part. No GPU is known here; tests/unit/exchange/signal_messages_test.cpp plays one.
//
// Why what a put overwrites has been read: each buffer is two, by the parity of the exchange or sum, and a
// signal goes both ways between two ranks that have anything to say to each other. Whoever puts number e + 2
// has awaited the other's signal of e + 1, which that one queued behind its last look at e. Every buffer has
// a signal of its own from each rank, so nothing is assumed of the order in which two puts arrive.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "transport/stream/limits.hpp"
#include "transport/stream/stream_setup.hpp"

namespace hostless::gpu {

/// Offsets in bytes, the same on every rank. A channel is a round of the plan, the last one that of sums.
class SignalOffsets {
 public:
  /// `rounds` of any of the ranks.
  SignalOffsets(std::vector<StreamRound> const& rounds, int ranks) : ranks_(ranks) {
    std::int64_t next = signal(static_cast<int>(rounds.size()) + 1, 0, 0);
    said_ = take(next, 2 * bytes_of_sum());
    spoken_ = take(next, 8 * (widest_sum + 1));
    std::int64_t most_out = 0;
    for (StreamRound const& round : rounds) {
      size_.push_back((round.most_in_bytes + widest_word - 1) / widest_word * widest_word);
      incoming_.push_back(take(next, 2 * size_.back()));
      most_out = std::max(most_out, round.out_bytes);
    }
    outgoing_ = take(next, most_out);  // the last: its size differs
    bytes_ = next;
  }
  int sums() const { return static_cast<int>(size_.size()); }
  int channels() const { return sums() + 1; }
  /// Of what this rank needs: the memory has the most that any of them does.
  std::int64_t bytes() const { return bytes_; }
  /// Where arrivals from `source` are counted.
  std::int64_t signal(int channel, int parity, int source) const {
    return 8 * ((2 * std::int64_t{channel} + parity) * most_ranks + source);
  }
  std::int64_t incoming(int round, int parity) const {
    return incoming_[static_cast<std::size_t>(round)] + parity * size_[static_cast<std::size_t>(round)];
  }
  /// What all ranks say at a sum, rank after rank.
  std::int64_t said(int parity) const { return said_ + parity * bytes_of_sum(); }
  /// What puts take it from.
  std::int64_t spoken() const { return spoken_; }
  std::int64_t outgoing() const { return outgoing_; }

 private:
  static constexpr std::int64_t widest_word = 16;  // of what kernels load at once
  std::int64_t bytes_of_sum() const { return 8 * std::int64_t{ranks_} * (widest_sum + 1); }
  static std::int64_t take(std::int64_t& next, std::int64_t bytes) {
    constexpr std::int64_t line = 128;
    std::int64_t const at = (next + line - 1) / line * line;
    next = at + bytes;
    return at;
  }
  int ranks_;
  std::vector<std::int64_t> size_, incoming_;  // by round; of one parity
  std::int64_t said_ = 0, spoken_ = 0, outgoing_ = 0, bytes_ = 0;
};

/// `bytes` from `from` here to `to` there, then one more arrival at `signal` there.
struct SignalPut {
  int rank = 0;
  std::int64_t to = 0, from = 0, bytes = 0;  ///< 0 bytes: the signal alone
  std::int64_t signal = 0;
};

/// What a rank queues.
class SignalQueue {
 public:
  virtual ~SignalQueue() = default;
  /// `count` doubles that the rank says: to `to` and to `own`.
  virtual void say(double const* mine, int count, std::int64_t to, std::int64_t own) = 0;
  virtual void put(SignalPut const& put) = 0;
  /// Inside this rank's memory.
  virtual void copy(std::int64_t to, std::int64_t from, std::int64_t bytes) = 0;
  /// One more arrival from each of `sources` (ranks as bits), with what was put before it.
  virtual void await(int channel, int parity, std::uint32_t sources) = 0;
  /// use() when what is queued here is queued in earnest, not while a text is only looked at.
  virtual void in_earnest(std::function<void()> const& use) = 0;
};

class SignalMessages {
 public:
  SignalMessages(std::vector<StreamRound> const& rounds, int rank, int ranks)
      : offsets_(rounds, ranks), rounds_(rounds), rank_(rank), ranks_(ranks) {
    for (StreamRound const& round : rounds_) others_.push_back(others_of(round));
  }
  SignalOffsets const& offsets() const { return offsets_; }

  /// A round of an exchange: its bytes lie at offsets().outgoing() when it is sent, and at incoming(round)
  /// when it has been awaited, until the exchange ends.
  std::int64_t incoming(int round) const { return offsets_.incoming(round, exchanges_); }
  void send(SignalQueue& queue, int round) const {
    send_round(queue, round, rounds_[static_cast<std::size_t>(round)]);
  }
  void await(SignalQueue& queue, int round) const {
    if (std::uint32_t const others = others_[static_cast<std::size_t>(round)]; others != 0)
      queue.await(round, exchanges_, others);
  }
  void end_exchange(SignalQueue& queue) {
    queue.in_earnest([this] { exchanges_ ^= 1; });
  }
  /// Returns where the parts of all ranks will be.
  std::int64_t gather(SignalQueue& queue, double const* mine, int count) {
    std::int64_t const bytes = 8 * std::int64_t{count}, own = offsets_.said(sums_) + rank_ * bytes;
    queue.say(mine, count, offsets_.spoken(), own);
    tell_all(queue, own, bytes);
    std::int64_t const all = offsets_.said(sums_);
    queue.in_earnest([this] { sums_ ^= 1; });
    return all;
  }
  /// Which buffers are next. What is recorded goes on where it was recorded: `reach` first.
  int phase() const { return 2 * sums_ + exchanges_; }
  void reach(SignalQueue& queue, int phase) {
    if ((phase & 1) != exchanges_) {
      StreamRound const nothing;
      for (int round = 0; round < offsets_.sums(); ++round) {
        send_round(queue, round, nothing);
        await(queue, round);
      }
      queue.in_earnest([this] { exchanges_ ^= 1; });
    }
    if ((phase >> 1) != sums_) {
      tell_all(queue, 0, 0);
      queue.in_earnest([this] { sums_ ^= 1; });
    }
  }
  /// After all signals have been cleared, on all ranks.
  void forget() { exchanges_ = sums_ = 0; }

 private:
  std::uint32_t others_of(StreamRound const& round) const {
    std::uint32_t others = 0;
    for (auto const* parts : {&round.out, &round.in})
      for (StreamPart const& part : *parts) others |= 1u << part.rank;
    return others & ~(1u << rank_);
  }
  // The next rank first, so that not all of them begin with the same one.
  template <class Use>
  void each_other(std::uint32_t others, Use const& use) const {
    for (int k = 1; k < ranks_; ++k)
      if (int const other = (rank_ + k) % ranks_; (others >> other & 1u) != 0) use(other);
  }
  void send_round(SignalQueue& queue, int round, StreamRound const& messages) const {
    std::int64_t const there = offsets_.incoming(round, exchanges_), here = offsets_.outgoing();
    std::vector<SignalPut> puts(static_cast<std::size_t>(ranks_));
    for (StreamPart const& part : messages.out)
      puts[static_cast<std::size_t>(part.rank)] = {part.rank, there + part.there, here + part.first,
                                                   part.bytes, 0};
    std::uint32_t const others = others_[static_cast<std::size_t>(round)];
    each_other(others, [&](int other) {
      SignalPut put = puts[static_cast<std::size_t>(other)];
      put.rank = other;
      put.signal = offsets_.signal(round, exchanges_, rank_);
      queue.put(put);
    });
    if (SignalPut const& own = puts[static_cast<std::size_t>(rank_)]; own.bytes != 0)
      queue.copy(own.to, own.from, own.bytes);
  }
  void tell_all(SignalQueue& queue, std::int64_t to, std::int64_t bytes) const {
    std::uint32_t const others = ((1u << ranks_) - 1) & ~(1u << rank_);
    each_other(others, [&](int other) {
      queue.put({other, to, offsets_.spoken(), bytes, offsets_.signal(offsets_.sums(), sums_, rank_)});
    });
    if (others != 0) queue.await(offsets_.sums(), sums_, others);
  }

  SignalOffsets offsets_;
  std::vector<StreamRound> rounds_;
  int rank_, ranks_;
  std::vector<std::uint32_t> others_;  // by round: those to whom anything goes, or from whom it comes
  int exchanges_ = 0, sums_ = 0;       // parities of the next ones
};

}  // namespace hostless::gpu
