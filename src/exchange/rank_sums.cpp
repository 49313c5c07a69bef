#include "hostless/exchange/rank_sums.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/base/error.hpp"
#include "hostless/base/order.hpp"

namespace hostless {

RankSums::RankSums(int ranks, Reduction reduction, int width)
    : ranks_(ranks),
      reduction_(reduction),
      gathered_(static_cast<std::size_t>(ranks) * (static_cast<std::size_t>(width) + 1)),
      contribution_(static_cast<std::size_t>(width) + 1),
      tree_(static_cast<std::size_t>(power_of_two(ranks))) {}

void RankSums::begin(Endpoint& endpoint, std::span<double const> mine) {
  if (open_)
    throw Error(ErrorCode::usage,
                "a sum was begun before the last one was finished (one is under way at a time). Finish it "
                "first.");
  if (mine.size() >= contribution_.size())
    throw Error(ErrorCode::usage, fmt::format("a sum of {} values (at most {} travel together). Split it.",
                                              mine.size(), contribution_.size() - 1));
  width_ = mine.size() + 1;
  std::copy(mine.begin(), mine.end(), contribution_.begin());
  contribution_[mine.size()] = static_cast<double>(raised_);
  std::span<double const> const all(contribution_.data(), width_);
  open_ = true;
  ready_ = false;
  if (reduction_ == Reduction::ordered) {
    endpoint.gather(all);
  } else {
    endpoint.all_reduce(all);
  }
}

void RankSums::require_begun(std::size_t totals) const {
  if (!open_)
    throw Error(ErrorCode::usage,
                "a sum is to be finished that was not begun (nothing would come). Begin it.");
  if (totals >= width_)
    throw Error(ErrorCode::usage,
                fmt::format("{} totals of a sum of {} values (there are no others). Ask for as many as were "
                            "begun.",
                            totals, width_ - 1));
}

bool RankSums::poll(Endpoint& endpoint) {
  if (ready_) return true;
  if (reduction_ == Reduction::ordered) {
    ready_ = endpoint.gathered({gathered_.data(), width_ * static_cast<std::size_t>(ranks_)});
  } else {
    ready_ = endpoint.all_reduced({gathered_.data(), width_});
  }
  return ready_;
}

void RankSums::finish(std::span<double> totals) {
  open_ = false;
  std::size_t const last = width_ - 1;
  if (reduction_ == Reduction::fast) {
    std::copy_n(gathered_.data(), totals.size(), totals.data());
    seen_ = gathered_[last] != 0 ? control::stop : 0;  // the only bit there is: any rank's sum is non-zero
    return;
  }
  for (std::size_t k = 0; k < totals.size(); ++k) {
    for (std::size_t r = 0; r < tree_.size(); ++r) {
      tree_[r] = r < static_cast<std::size_t>(ranks_) ? gathered_[r * width_ + k] : 0.0;
    }
    totals[k] = tree(tree_.data(), static_cast<int>(tree_.size()));
  }
  seen_ = 0;
  for (int r = 0; r < ranks_; ++r) {
    seen_ |= static_cast<std::uint32_t>(gathered_[static_cast<std::size_t>(r) * width_ + last]);
  }
}

}  // namespace hostless
