#include "queue/gpu/group_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "device/on_device.hpp"
#include "queue/gpu/message_pool.hpp"
#include "transport/stream/stream_endpoint.hpp"

namespace hostless::gpu {

ConnectedRanks::ConnectedRanks(int device, int rank, int ranks, double call_s)
    : device_(device),
      ranks_(ranks),
      call_s_(call_s),
      call_limit_s_(call_s),
      words_(message_pool(device).take((2 * words_of_mark + 2) * sizeof(std::uint64_t))),
      shown_(2 * words_of_mark),
      ended_(1),
      use_(nccl_functions()),
      connected_({device, rank, ranks, nccl_purpose_of_groups}, call_s, "a queue of the type nccl",
                 "Use a queue of the type peer, or ranks with a GPU each.") {
  message_pool(device).clear(words_.get(), (2 * words_of_mark + 2) * sizeof(std::uint64_t));
  std::fill_n(shown_.data(), shown_.size(), 0);
  *ended_.data() = 0;
}

// Ranks of which a group is under way would find its messages in place of their next ones.
ConnectedRanks::~ConnectedRanks() {
  GroupCounts const now = counts();
  if (now.begun != now.done) abort();
}

GroupCounts ConnectedRanks::counts(int peer) const {
  auto const of = [&](std::size_t mark) {
    return static_cast<std::uint64_t volatile const*>(
        shown_.data())[mark * words_of_mark + static_cast<std::size_t>(peer)];
  };
  std::uint64_t const done = of(1);  // first: it is never more than has begun
  std::atomic_thread_fence(std::memory_order_acquire);
  return {of(0), done};
}

GroupMark ConnectedRanks::mark(std::size_t first, GroupPeers peers) const {
  return {reinterpret_cast<std::uint64_t*>(words_.get()) + first, shown_.device() + first, ended_.device(),
          peers};
}

void ConnectedRanks::connect(UniqueId const& point, double limit_s) {
  OnDevice const on(device_);
  connected_.connect(point, limit_s);
  call_limit_s_ = limit_s;
  try {
    send_first_messages(limit_s);
  } catch (RankLost const&) {
    connected_.give_up("the first messages were not sent");
  }
  call_limit_s_ = call_s_;
}

// Of every rank to every rank: the first message between two connects them, which no graph can record.
void ConnectedRanks::send_first_messages(double limit_s) {
  std::vector<GroupMessage> all;
  for (int peer = 0; peer < ranks_; ++peer)
    for (queue::Side const side : {queue::Side::sender, queue::Side::receiver})
      all.push_back({side, peer, nullptr, 0});
  Stream const stream;
  queue_group(all, stream.get());
  bool const is_through = wait_for([&] { return stream.done(); }, [&] { return connected_.has_failed(); },
                                   Deadline::after(limit_s)) == Waited::done;
  if (!is_through) connected_.give_up("the first messages did not arrive");
}

void ConnectedRanks::move(std::span<GroupMessage const> messages, HOSTLESS_GPU(Stream_t) stream) {
  try {
    queue_group(messages, stream);
  } catch (RankLost const&) {
    throw Error(ErrorCode::peer_lost, "a group of messages was refused by " + describe_nccl() + " (" +
                                          connected_.failure() + "). Make another communicator.");
  }
}

// What has no bytes goes as one byte: it says that the other rank has come so far.
void ConnectedRanks::queue_group(std::span<GroupMessage const> messages, HOSTLESS_GPU(Stream_t) stream) {
  NcclHandle const ranks = connected_.handle();
  std::byte* const nothing = words_.get() + 2 * words_of_mark * sizeof(std::uint64_t);
  connected_.accept(use_.begin_group());
  NcclStatus worst = nccl_success;
  for (GroupMessage const& m : messages) {
    bool const sends = m.side == queue::Side::sender;
    std::size_t const bytes = std::max<std::size_t>(m.bytes, 1);
    std::byte* const at = m.bytes != 0 ? m.buffer : nothing + (sends ? 0 : sizeof(std::uint64_t));
    NcclStatus const status = sends ? use_.send(at, bytes, nccl_char, m.peer, ranks, stream)
                                    : use_.receive(at, bytes, nccl_char, m.peer, ranks, stream);
    worst = std::max(worst, status == nccl_in_progress ? nccl_success : status);
  }
  NcclStatus const end = use_.end_group();
  connected_.accept(worst);
  connected_.accept(end);
  connected_.await_call(call_limit_s_);
}

bool ConnectedRanks::has_failed() {
  OnDevice const on(device_);
  return connected_.has_failed();
}

void ConnectedRanks::abort() noexcept {
  *static_cast<std::uint32_t volatile*>(ended_.data()) = 1;
  connected_.abort();
}

}  // namespace hostless::gpu
