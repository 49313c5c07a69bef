#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/exchange/field.hpp"
#include "hostless/exchange/rank_sums.hpp"
#include "hostless/plan/exchange_plan.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless {

class StageWalk;

/// What an exchange is bound with, beside its plan and its fields. Equal on all ranks but for `owner`.
struct ExchangeOptions {
  /// How long a wait may take before a silent peer counts as lost; longer than anything a peer computes
  /// between two exchanges. Above 0.
  WaitLimits limits = WaitLimits::from_environment();
  /// Of the fields' memory: kept, beyond the exchange, as long as the transport may read or write there.
  /// Empty: nobody touches it after the exchange is gone. Over a transport that may
  /// (Capabilities::late_access: MPI after a loss) all items then pass through memory of the library's, a
  /// copy more for a field that is alone.
  std::shared_ptr<void> owner;
  /// Sums over ranks are bound too. A plan that relies on them (ReuseGuarantee::reduction) is refused
  /// without.
  std::optional<Reduction> sums;
  /// Values of one sum, at most; 1 to RankSums::most.
  int sum_width = RankSums::widest;
};

/// A plan bound to a transport and to any number of fields: fills their ghosts with what the owners hold, all
/// fields in one message a neighbour; adds up numbers over ranks where it was asked to.
///
/// When it is bound the plan is turned, once, into steps over addresses and bytes. Afterwards nothing is
/// allocated, and nothing blocks but `wait` and `finish_sum`, which end by a deadline. Used by one thread at
/// a time. An exchange is one use: `start`, then `test` until it says true or `wait`. Between the two the
/// owned items may not change and the ghosts may not be touched; between an end and the next `start` both are
/// the caller's. All ranks start equally often.
///
/// It moves on only while it is called. So of several that are under way all ranks wait in one order, or test
/// all in turn: a rank that waits for A alone lets those wait that wait for B alone, until the limit.
class Exchange {
 public:
  static constexpr int widest_sum = RankSums::widest;  ///< values of one sum, unless more were asked for
  /// Collective. The plan is needed no longer afterwards, the fields' memory is.
  ///
  /// Errors  usage  on all ranks: the plan does not fit the group, is of another set than that of another
  ///                rank, has a field that this executor does not honour (the text names it), or asks for
  ///                what the transport has not; fields that do not fit the plan, share memory, or whose
  ///                items have other sizes on other ranks; limits that are no times; other sums on other
  ///                ranks
  /// Cost    O(items moved by this rank) time and memory for its steps, staging memory of the plan times the
  ///         bytes of an item of all fields, one binding of the transport
  Exchange(Transport& transport, ExchangePlan const& plan, std::vector<Field> const& fields,
           ExchangeOptions const& options = {});
  /// Of one fp64 vector with its ghosts around it, and of sums: what a solver wants.
  /// vector  the first owned entry of [ghosts below | owned | ghosts above]
  Exchange(Transport& transport, ExchangePlan const& plan, double* vector, Reduction reduction,
           WaitLimits limits, std::shared_ptr<void> owner = nullptr);
  ~Exchange();
  Exchange(Exchange const&) = delete;
  Exchange& operator=(Exchange const&) = delete;

  /// Starts the next exchange; after a loss it does nothing.
  /// Errors  usage  the last one is not complete
  void start();
  /// Moves every stage on as far as it goes without waiting. True when the exchange is complete.
  /// Looks after peers too: when one has left, or has been silent for `limits` while this was called, `lost`
  /// is true from then on and told to the others. So a loop says `while (!test() && !lost())`. Time between
  /// two calls counts as a quarter of the limit at most.
  bool test();
  /// True when all the stages of `needs` have been unpacked. Errors  usage  a stage that the plan has not
  bool unpacked(std::vector<StageId> const& needs) const;
  /// As `test` has found it; moves nothing on.
  bool complete() const { return complete_; }
  /// Waits until the exchange is complete. False: a peer is lost (latched, and told to the others, who may
  /// have completed this exchange and then see it in the next).
  [[nodiscard]] bool wait() {
    return wait([this] { return complete_; });
  }
  /// As above until `ready()`; polls messages and sums meanwhile.
  template <class Ready>
  [[nodiscard]] bool wait(Ready&& ready);

  /// Contributes `mine`, at most ExchangeOptions::sum_width values, to the next sum over ranks; one is under
  /// way at a time. After a loss: nothing. Errors  usage  more values, or one is under way; of all that is of
  /// sums: the exchange was bound without
  void begin_sum(std::span<double const> mine);
  /// Waits for it. totals[k] is the sum of value k over ranks, in the order of the plan (`ordered`). False: a
  /// peer is lost. Errors  usage  no sum was begun, or one of fewer values
  bool finish_sum(std::span<double> totals);
  /// After finish_sum, with `ordered`: value k of rank r is contributions()[r * width + k] for
  /// width = contributions().size() / ranks; the last one of a rank is its control bits.
  std::span<double const> contributions() const { return sums().contributions(); }
  /// Control bits sent with every begin_sum from now on, until `lower`; and those of all ranks after
  /// finish_sum.
  void raise(std::uint32_t flags) { sums().raise(flags); }
  void lower() { sums().lower(); }
  std::uint32_t flags() const { return sums().flags(); }
  /// How the sums are formed: `ordered` where `fast` was asked for and the transport has no such sum.
  Reduction reduction() const { return sums().reduction(); }

  bool lost() const { return lost_; }
  /// Whether items of this rank go to others, or others' come.
  bool moves() const { return moves_; }
  /// Tells the others that this rank leaves.
  void leave() noexcept;

  /// Seconds spent waiting for messages and for sums since construction.
  double waited_s() const { return waited_s_; }

 private:
  void advance();
  void look();
  RankSums& sums() {
    if (!sums_) refuse_sums();
    return *sums_;
  }
  RankSums const& sums() const {
    if (!sums_) refuse_sums();
    return *sums_;
  }
  [[noreturn]] static void refuse_sums();

  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<StageWalk> walk_;
  std::optional<RankSums> sums_;
  WaitLimits limits_;
  bool complete_ = true, lost_ = false, moves_ = false;
  bool met_ = false;  ///< a wait has ended: nobody is setting up any more
  bool is_started_ = false;
  Silence silence_;  ///< of this exchange, as `test` counts
  double waited_s_ = 0;
};

}  // namespace hostless

template <class Ready>
bool hostless::Exchange::wait(Ready&& ready) {
  if (lost_) return false;
  if (ready()) return true;
  auto const begin = Clock::now();
  Deadline const deadline = Deadline::after(met_ ? limits_.later_s : limits_.first_s);
  auto const waited = wait_for(
      [&] {
        advance();
        return ready();
      },
      [&] { return endpoint_->peer_left(); }, deadline);
  waited_s_ += std::chrono::duration<double>(Clock::now() - begin).count();
  met_ = true;
  if (waited == Waited::done) return true;
  leave();
  return false;
}
