#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"

namespace hostless {

/// Collects complaints: the first few of each rule and rank in full, the others counted.
class Complaints {
 public:
  template <class... Arguments>
  void add(int rule, Rank rank, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (++count_[{rule, rank}] > shown) return;
    list_.push_back(fmt::format("check {}: rank {}: {}", rule, rank,
                                fmt::format(format, std::forward<Arguments>(arguments)...)));
  }
  bool any(int rule) const {
    auto const entry = count_.lower_bound({rule, -1});
    return entry != count_.end() && entry->first.first == rule;
  }
  std::vector<std::string> take() {
    for (auto const& [key, count] : count_)
      if (count > shown)
        list_.push_back(fmt::format("check {}: rank {}: and {} more", key.first, key.second, count - shown));
    return std::move(list_);
  }

 private:
  static constexpr int shown = 3;
  std::map<std::pair<int, Rank>, int> count_;
  std::vector<std::string> list_;
};

}  // namespace hostless
