#include "exchange/gpu/grouped_sends.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "device/on_device.hpp"
#include "transport/nccl/nccl_ranks.hpp"
#include "transport/stream/stragglers.hpp"

namespace hostless::gpu {
namespace {

void require(NcclStatus status, char const* call) {
  if (status == nccl_success) return;
  throw Error(ErrorCode::environment, std::string(call) + " failed: " + nccl_functions().text(status) + " (" +
                                          describe_nccl() + "). Its log says why: set NCCL_DEBUG=WARN.");
}

[[noreturn]] void late(ErrorCode code, char const* call, char const* what_it_does) {
  throw Error(code, std::string(call) + " has not returned within the deadline (" + describe_nccl() + ' ' +
                        what_it_does + " in it). Its log says why: set NCCL_DEBUG=WARN.");
}

/// Calls that block in the library: those that wait for other ranks are made by a thread of their own, which is
/// left behind when they do not return in time. What it uses is its own.
class RawGroup final : public GroupedSends {
 public:
  explicit RawGroup(GroupedRank const& mine)
      : use_(nccl_functions()), mine_(mine), is_connected_(2 * static_cast<std::size_t>(mine.ranks)) {
    struct Joined {
      NcclStatus status = nccl_success;
      NcclHandle ranks = nullptr;
    };
    auto const joined = std::make_shared<Joined>();
    bool const in_time = call_within(mine.first_s, [joined, mine, join = use_.join] {
      (void)HOSTLESS_GPU(SetDevice)(mine.device);
      joined->status = join(&joined->ranks, mine.ranks, mine.name, mine.rank);
    });
    if (!in_time) late(ErrorCode::environment, "ncclCommInitRank", "has all ranks join");
    require(joined->status, "ncclCommInitRank");
    ranks_ = joined->ranks;
  }
  RawGroup(RawGroup const&) = delete;
  RawGroup& operator=(RawGroup const&) = delete;
  ~RawGroup() override { end_by(use_.end); }

  void enqueue(std::vector<GroupedPart> const& out, std::vector<GroupedPart> const& in,
               void* stream) override {
    OnDevice const on(mine_.device);
    auto const raw = static_cast<HOSTLESS_GPU(Stream_t)>(stream);
    Said said;
    if (knows(out, in)) {
      said = group(use_, ranks_, out, in, raw);
    } else {
      auto const told = std::make_shared<Said>();
      bool const in_time =
          call_within(mine_.first_s, [told, out, in, raw, use = use_, ranks = ranks_, device = mine_.device] {
            (void)HOSTLESS_GPU(SetDevice)(device);
            *told = group(use, ranks, out, in, raw);
          });
      if (!in_time) late(ErrorCode::peer_lost, "ncclGroupEnd", "connects ranks with their first messages");
      said = *told;
    }
    require(said.begun, "ncclGroupStart");
    require(said.sent, "ncclSend");
    require(said.received, "ncclRecv");
    require(said.ended, "ncclGroupEnd");
    for (GroupedPart const& part : out) is_connected_[sender(part)] = 1;
    for (GroupedPart const& part : in) is_connected_[receiver(part)] = 1;
  }
  void abort() noexcept override { end_by(use_.abort); }
  std::string describe() const override { return describe_nccl() + ", ncclSend and ncclRecv in a group"; }

 private:
  struct Said {
    NcclStatus begun = nccl_success, sent = nccl_success, received = nccl_success, ended = nccl_success;
  };
  static Said group(NcclFunctions const& use, NcclHandle ranks, std::vector<GroupedPart> const& out,
                    std::vector<GroupedPart> const& in, HOSTLESS_GPU(Stream_t) stream) {
    Said said;
    said.begun = use.begin_group();
    if (said.begun != nccl_success) return said;
    for (GroupedPart const& part : out)  // a group that was begun is ended, whatever they say
      if (said.sent == nccl_success)
        said.sent = use.send(part.at, part.bytes, nccl_char, part.rank, ranks, stream);
    for (GroupedPart const& part : in)
      if (said.received == nccl_success)
        said.received = use.receive(part.at, part.bytes, nccl_char, part.rank, ranks, stream);
    said.ended = use.end_group();
    return said;
  }

  // The first message from one rank to another connects them.
  static std::size_t sender(GroupedPart const& part) { return 2 * static_cast<std::size_t>(part.rank); }
  static std::size_t receiver(GroupedPart const& part) { return sender(part) + 1; }
  bool knows(std::vector<GroupedPart> const& out, std::vector<GroupedPart> const& in) const {
    return std::all_of(out.begin(), out.end(),
                       [&](GroupedPart const& part) { return is_connected_[sender(part)] != 0; }) &&
           std::all_of(in.begin(), in.end(),
                       [&](GroupedPart const& part) { return is_connected_[receiver(part)] != 0; });
  }

  void end_by(NcclStatus (*call)(NcclHandle)) noexcept {
    NcclHandle const ranks = std::exchange(ranks_, nullptr);
    if (ranks == nullptr) return;
    try {
      (void)call_within(mine_.deadline_s, [call, ranks, device = mine_.device] {
        (void)HOSTLESS_GPU(SetDevice)(device);
        (void)call(ranks);
      });
    } catch (std::exception const&) {
      // No thread can be had, and both calls may wait for ever: they stay connected until the process ends.
    }
  }

  NcclFunctions const& use_;
  GroupedRank mine_;
  NcclHandle ranks_ = nullptr;
  std::vector<char> is_connected_;  // [2 * ranks] with those that this one has sent to, and received from
};

}  // namespace

UniqueId make_group_name() {
  UniqueId name;
  require(nccl_functions().make_name(&name), "ncclGetUniqueId");
  return name;
}

std::unique_ptr<GroupedSends> make_grouped_sends(GroupedRank const& mine) {
  return std::make_unique<RawGroup>(mine);
}

}  // namespace hostless::gpu
