#include "exchange/gpu/grouped_sends.hpp"

#include <utility>

#include "device/on_device.hpp"
#include "transport/nccl/nccl_ranks.hpp"

namespace hostless::gpu {
namespace {

void require(NcclStatus status, char const* call) {
  if (status == nccl_success) return;
  throw Error(ErrorCode::environment, std::string(call) + " failed: " + nccl_functions().text(status) + " (" +
                                          describe_nccl() + "). Its log says why: set NCCL_DEBUG=WARN.");
}

class RawGroup final : public GroupedSends {
 public:
  explicit RawGroup(GroupedRank const& mine) : use_(nccl_functions()), device_(mine.device) {
    OnDevice const on(device_);
    require(use_.join(&ranks_, mine.ranks, mine.name, mine.rank), "ncclCommInitRank");
  }
  RawGroup(RawGroup const&) = delete;
  RawGroup& operator=(RawGroup const&) = delete;
  ~RawGroup() override {
    try {
      OnDevice const on(device_);
      if (ranks_ != nullptr) (void)use_.end(ranks_);
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }

  void enqueue(std::vector<GroupedPart> const& out, std::vector<GroupedPart> const& in,
               void* stream) override {
    OnDevice const on(device_);
    auto const raw = static_cast<HOSTLESS_GPU(Stream_t)>(stream);
    require(use_.begin_group(), "ncclGroupStart");
    NcclStatus sent = nccl_success,
               received = nccl_success;  // a group that was begun is ended, whatever they say
    for (GroupedPart const& part : out)
      if (sent == nccl_success) sent = use_.send(part.at, part.bytes, nccl_char, part.rank, ranks_, raw);
    for (GroupedPart const& part : in)
      if (received == nccl_success)
        received = use_.receive(part.at, part.bytes, nccl_char, part.rank, ranks_, raw);
    NcclStatus const ended = use_.end_group();
    require(sent, "ncclSend");
    require(received, "ncclRecv");
    require(ended, "ncclGroupEnd");
  }
  void abort() noexcept override {
    if (NcclHandle const ranks = std::exchange(ranks_, nullptr)) (void)use_.abort(ranks);
  }
  std::string describe() const override { return describe_nccl() + ", ncclSend and ncclRecv in a group"; }

 private:
  NcclFunctions const& use_;
  int device_;
  NcclHandle ranks_ = nullptr;
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
