// The memory of an exchange that kernels of users execute: words of two epochs that other ranks store to, and
// the duties of blocks.
#include "exchange/gpu/kernel_window.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "device/clock.hpp"
#include "device/on_device.hpp"
#include "transport/memory/opened_memory.hpp"
#include "transport/stream/limits.hpp"
#include "transport/stream/signals.hpp"

namespace hostless::gpu {
namespace {

static_assert(sizeof(kernel::ItemCopy) == sizeof(PeerCopy) &&
              sizeof(kernel::ReadAnswer) == sizeof(DutyAnswer));
static_assert(offsetof(kernel::ItemCopy, target) == offsetof(PeerCopy, target) &&
              offsetof(kernel::ItemCopy, to_staging) == offsetof(PeerCopy, to_staging));
static_assert(kernel::most_ranks == most_ranks);

/// Byte offsets in a rank's window: words staged and of ghosts, then answers, each for both parities.
struct WindowOffsets {
  explicit WindowOffsets(KernelContact const& of) : of_(of) {}
  std::int64_t staged(int parity) const { return word * (parity * of_.staged); }
  std::int64_t ghosts(int parity) const { return word * (2 * of_.staged + parity * of_.ghosts); }
  std::int64_t answers(int parity) const {
    return word * 2 * (of_.staged + of_.ghosts) +
           static_cast<std::int64_t>(sizeof(std::uint64_t)) * parity * of_.answers;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(std::max<std::int64_t>(word, answers(2))); }

 private:
  static constexpr std::int64_t word = sizeof(kernel::ItemWord);
  KernelContact const& of_;
};

template <class T>
Array<T> on_gpu(std::vector<T> const& values) {
  Array<T> array(values.size());
  array.put(values.data(), values.size());
  return array;
}

class Window final : public KernelWindow {
 public:
  explicit Window(KernelProblem const& problem)
      : setup_(problem.setup), on_(problem.setup.device), opened_(setup_.rank, setup_.processes, nullptr) {
    KernelDuties const& d = *problem.duties;
    contact_ = {
        setup_.device, d.staging * problem.words, problem.ghosts * problem.words, d.answers_here(), {}};
    lending_ = {setup_.processes, nullptr, true};
    window_ = Array<std::byte>(WindowOffsets(contact_).bytes(), lending_);
    window_.clear();
    if (lending_.to_processes) lent_ = std::make_unique<Lent>();
    copies_ = on_gpu(d.copies);
    answers_ = on_gpu(d.answers);
    for (auto const* list : {&d.first, &d.landings, &d.first_landing, &d.first_answer, &d.first_awaited})
      lists_.push_back(on_gpu(*list));
    ended_ = Array<kernel::EndedExchanges>(static_cast<std::size_t>(d.blocks));
    ended_.clear();
    lost_ = Array<std::uint32_t>(1);
    lost_.clear();
    describe(problem);
    LivingMemory::of_this_process().free_returned();
    on_.reset();
  }
  ~Window() override {
    try {
      OnDevice const on(setup_.device);
      opened_.give_back();
      if (lending_.to_processes)
        LivingMemory::of_this_process().keep_until_returned(std::move(window_), std::move(lent_),
                                                            all_others());
      for (auto& list : lists_) list = {};
      copies_ = {}, answers_ = {}, ended_ = {}, lost_ = {}, window_ = {};
    } catch (Error const&) {  // a GPU that has failed has said so before
    }
  }

  KernelContact contact() const override {
    OnDevice const on(setup_.device);
    KernelContact contact = contact_;
    contact.window = lend(window_, window_.data(), lending_);
    if (lent_) contact.window.borrowing = lent_->contact();
    return contact;
  }
  void connect(std::vector<KernelContact> const& all) override {
    OnDevice const on(setup_.device);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      opened_.reach(setup_.device, all[rank].device);
      auto* const base =
          static_cast<std::byte*>(opened_.address_of(all[rank].window, static_cast<int>(rank)));
      WindowOffsets const offsets(all[rank]);
      for (int parity = 0; parity < 2; ++parity) {
        view_.staged[parity][rank] = reinterpret_cast<kernel::ItemWord*>(base + offsets.staged(parity));
        view_.ghosts[parity][rank] = reinterpret_cast<kernel::ItemWord*>(base + offsets.ghosts(parity));
        view_.answered[parity][rank] = reinterpret_cast<unsigned long long*>(base + offsets.answers(parity));
      }
    }
  }
  kernel::KernelExchange const& view() const override { return view_; }
  bool lost() const override {
    OnDevice const on(setup_.device);
    std::uint32_t lost = 0;
    lost_.get(&lost, 1);
    return lost != 0;
  }
  std::int64_t bytes() const override {
    std::size_t all = window_.bytes() + copies_.bytes() + answers_.bytes() + ended_.bytes() + lost_.bytes();
    for (auto const& list : lists_) all += list.bytes();
    return static_cast<std::int64_t>(all);
  }

 private:
  std::uint32_t all_others() const { return ((1u << setup_.ranks) - 1) & ~(1u << setup_.rank); }
  void describe(KernelProblem const& problem) {
    view_.magic = kernel::exchange_magic;
    view_.version = kernel::exchange_version;
    view_.size = sizeof view_;
    view_.rank = setup_.rank;
    view_.blocks = problem.duties->blocks;
    view_.levels = problem.duties->levels;
    view_.words = problem.words;
    view_.owned = problem.owned;
    view_.ghosts_below = problem.ghosts_below;
    view_.deadline_cycles =
        cycles_of(std::max(setup_.first_s, setup_.deadline_s), clock_hertz(setup_.device));
    view_.copies = reinterpret_cast<kernel::ItemCopy const*>(copies_.data());
    view_.answers = reinterpret_cast<kernel::ReadAnswer const*>(answers_.data());
    view_.first = lists_[0].data();
    view_.landings = lists_[1].data();
    view_.first_landing = lists_[2].data();
    view_.first_answer = lists_[3].data();
    view_.first_awaited = lists_[4].data();
    view_.ended = ended_.data();
    view_.lost = lost_.data();
  }

  StreamSetup setup_;
  std::optional<OnDevice> on_;  // while it is made
  Lending lending_;
  OpenedMemory opened_;
  KernelContact contact_;
  Array<std::byte> window_;
  std::unique_ptr<Lent> lent_;  // to processes
  Array<PeerCopy> copies_;
  Array<DutyAnswer> answers_;
  std::vector<Array<std::int32_t>> lists_;
  Array<kernel::EndedExchanges> ended_;
  Array<std::uint32_t> lost_;
  kernel::KernelExchange view_{};
};

}  // namespace

std::unique_ptr<KernelWindow> make_kernel_window(KernelProblem const& problem) {
  return std::make_unique<Window>(problem);
}

}  // namespace hostless::gpu
