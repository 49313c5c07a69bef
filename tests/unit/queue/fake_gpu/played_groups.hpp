#pragma once
// A library that moves messages in groups, as NCCL does: it knows no tags, a group waits as a whole until the
// groups of all ranks from which it receives have begun, and of each two ranks the k-th ones move together. What NCCL would
// do wrong without a word, groups whose messages are not each other's, ends the process here.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "queue/gpu/message_library.hpp"

namespace hostless::gpu {

/// What the ranks of one connection share.
class PlayedConnection {
 public:
  /// What a rank has for another in one group, and how far it is.
  struct Posted {
    std::vector<GroupMessage> out, in;
    std::vector<std::shared_ptr<std::byte[]>> sent;  ///< of one that only sends, which does not wait
  };
  using Key = std::pair<int, int>;  ///< who has posted, for whom
  std::mutex mutex;
  std::condition_variable changed;
  int arrived = 0;
  std::map<Key, std::map<std::uint64_t, Posted>> posted;  ///< until taken, by the number of the pair's group

  static std::shared_ptr<PlayedConnection> of(UniqueId const& unique) {
    static auto* const all_mutex = new std::mutex;
    static auto* const all = new std::map<std::string, std::shared_ptr<PlayedConnection>>;
    std::lock_guard const lock(*all_mutex);
    auto& one = (*all)[unique.name];
    if (one == nullptr) one = std::make_shared<PlayedConnection>();
    return one;
  }
};

/// What streams have of a rank, also after its communicator has gone.
class PlayedRankCore {
 public:
  PlayedRankCore(int rank, int ranks)
      : rank_(rank), by_peer_(static_cast<std::size_t>(ranks)), ranks_(ranks) {}
  /// False: it was given up.
  bool move(std::vector<GroupMessage> const& messages, GroupPeers peers) {
    if (aborted_) return false;
    count(&GroupCounts::begun, peers);
    std::map<int, PlayedConnection::Posted> mine;
    for (GroupMessage const& m : messages)
      (m.side == queue::Side::sender ? mine[m.peer].out : mine[m.peer].in).push_back(m);
    std::unique_lock lock(connection_->mutex);
    std::map<int, std::uint64_t> number;
    for (auto& [peer, what] : mine) {
      number[peer] = ++groups_[peer];
      if (what.in.empty()) keep_sent(what);
      if (!what.out.empty()) connection_->posted[{rank_, peer}][number[peer]] = what;
    }
    connection_->changed.notify_all();
    for (auto const& [peer, what] : mine)
      if (!what.in.empty() && !wait(lock, [&, peer = peer] {
            return connection_->posted[{peer, rank_}].count(number[peer]) != 0;
          }))
        return false;
    for (auto const& [peer, what] : mine)
      if (!what.in.empty()) copy_from(peer, what.in, number[peer]);
    connection_->changed.notify_all();
    for (auto const& [peer, what] : mine)
      if (!what.in.empty() && !what.out.empty() && !wait(lock, [&, peer = peer] {
            return connection_->posted[{rank_, peer}].count(number[peer]) == 0;
          }))
        return false;
    lock.unlock();
    count(&GroupCounts::done, peers);
    return true;
  }
  void abort() {
    aborted_ = true;
    if (connection_) connection_->changed.notify_all();
  }
  GroupCounts counts(int peer) {
    std::lock_guard const lock(counts_mutex_);
    return by_peer_[static_cast<std::size_t>(peer)];
  }
  GroupCounts counts() {
    std::lock_guard const lock(counts_mutex_);
    return all_;
  }
  bool connect(UniqueId const& unique, double limit_s) {
    connection_ = PlayedConnection::of(unique);
    std::unique_lock lock(connection_->mutex);
    ++connection_->arrived;
    connection_->changed.notify_all();
    Deadline const deadline = Deadline::after(limit_s);
    while (connection_->arrived < ranks_ && !deadline.passed())
      connection_->changed.wait_for(lock, std::chrono::milliseconds(1));
    return connection_->arrived >= ranks_;
  }

 private:
  template <class Ready>
  bool wait(std::unique_lock<std::mutex>& lock, Ready const& ready) {
    while (!ready()) {
      if (aborted_) return false;
      connection_->changed.wait_for(lock, std::chrono::milliseconds(1));
    }
    return true;
  }
  // NCCL's buffers have it, and nobody waits.
  static void keep_sent(PlayedConnection::Posted& what) {
    for (GroupMessage& m : what.out) {
      auto& copy = what.sent.emplace_back(new std::byte[m.bytes + 1]);
      if (m.bytes != 0) std::memcpy(copy.get(), m.buffer, m.bytes);
      m.buffer = copy.get();
    }
  }
  void copy_from(int peer, std::vector<GroupMessage> const& in, std::uint64_t number) const {
    auto& posted = connection_->posted[{peer, rank_}];
    PlayedConnection::Posted const& there = posted[number];
    if (in.size() != there.out.size()) differ(peer, std::to_string(there.out.size()) + " messages");
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (in[k].bytes != there.out[k].bytes) differ(peer, std::to_string(there.out[k].bytes) + " bytes");
      if (in[k].bytes != 0) std::memmove(in[k].buffer, there.out[k].buffer, in[k].bytes);
    }
    posted.erase(number);
  }
  void differ(int peer, std::string const& what) const {
    std::fprintf(stderr, "played groups: rank %d has %s for rank %d, which awaits others\n", peer,
                 what.c_str(), rank_);
    std::abort();
  }
  void count(std::uint64_t GroupCounts::*of, GroupPeers peers) {
    std::lock_guard const lock(counts_mutex_);
    ++(all_.*of);
    for (std::size_t peer = 0; peer < by_peer_.size(); ++peer)
      if ((peers >> peer & 1u) != 0) ++(by_peer_[peer].*of);
  }

  int rank_;
  std::shared_ptr<PlayedConnection> connection_;
  std::atomic<bool> aborted_{false};
  std::map<int, std::uint64_t> groups_;  ///< of the stream's thread
  std::mutex counts_mutex_;
  std::vector<GroupCounts> by_peer_;
  GroupCounts all_;
  int ranks_;
};

class PlayedRanks final : public GroupRanks {
 public:
  PlayedRanks(int rank, int ranks) : rank_(rank), core_(std::make_shared<PlayedRankCore>(rank, ranks)) {}
  ~PlayedRanks() override { core_->abort(); }
  // It keeps nobody connected.
  UniqueId unique_id() override {
    if (!std::exchange(was_asked_, true) || rank_ != 0) return {};
    static std::atomic<int> made{0};
    UniqueId unique;
    std::snprintf(unique.name, sizeof unique.name, "played %d", ++made);
    return unique;
  }
  void connect(UniqueId const& unique, double limit_s) override {
    if (!core_->connect(unique, limit_s))
      throw Error(ErrorCode::environment, "played ranks did not all connect.");
  }
  GroupCounts counts(int peer) const override { return core_->counts(peer); }
  GroupCounts counts() const override { return core_->counts(); }
  bool has_failed() override { return false; }
  void abort() noexcept override { core_->abort(); }
  std::string describe() const override { return "played groups"; }
  std::shared_ptr<PlayedRankCore> core() const { return core_; }

 private:
  int rank_;
  bool was_asked_ = false;
  std::shared_ptr<PlayedRankCore> core_;
};

}  // namespace hostless::gpu
