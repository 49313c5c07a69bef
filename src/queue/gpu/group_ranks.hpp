#pragma once
// Groups of messages by NCCL or RCCL, and the words that count them.

#include <memory>
#include <span>
#include <string>

#include "device/memory.hpp"
#include "queue/gpu/message_kernels.hpp"
#include "transport/nccl/nccl_ranks.hpp"

namespace hostless::gpu {

class ConnectedRanks final : public GroupRanks {
 public:
  ConnectedRanks(int device, int rank, int ranks, double call_s);
  ~ConnectedRanks() override;
  UniqueId unique_id() override { return connected_.unique_id(); }
  void connect(UniqueId const& point, double limit_s) override;
  GroupCounts counts(int peer) const override;
  GroupCounts counts() const override { return counts(most_group_ranks); }
  bool has_failed() override;
  void abort() noexcept override;
  std::string describe() const override { return describe_nccl(); }

  /// What marks the next group of these.
  GroupMark begun(GroupPeers peers) const { return mark(0, peers); }
  GroupMark done(GroupPeers peers) const { return mark(words_of_mark, peers); }
  /// Onto the stream, or into what it records.
  /// Errors  peer_lost  the library refuses it, with its words
  void move(std::span<GroupMessage const> messages, HOSTLESS_GPU(Stream_t) stream);

 private:
  static constexpr std::size_t words_of_mark = most_group_ranks + 1;
  GroupMark mark(std::size_t first, GroupPeers peers) const;
  void queue_group(std::span<GroupMessage const> messages, HOSTLESS_GPU(Stream_t) stream);
  void send_first_messages(double limit_s);

  int device_, ranks_;
  double const call_s_;
  double call_limit_s_;               // of the next call: longer while ranks connect
  std::shared_ptr<std::byte> words_;  // [2][words_of_mark] and a byte for what has none, of a pool
  Pinned<std::uint64_t> shown_;       // [2][words_of_mark]
  Pinned<std::uint32_t> ended_;
  NcclFunctions const& use_;
  NcclRanks connected_;  // the last: nothing of it is under way when words go
};

}  // namespace hostless::gpu
