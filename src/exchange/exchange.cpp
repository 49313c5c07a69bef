#include "hostless/exchange/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hostless/base/order.hpp"

namespace hostless {
namespace {

Error inconsistent(std::string const& what) {
  return Error(ErrorCode::usage,
               what + " (the plan cannot be executed). Make the plan anew with this version.");
}

}  // namespace

Exchange::Exchange(Transport& transport, HaloPlan const& plan, double* vector, Reduction reduction,
                   WaitLimits limits, std::shared_ptr<void> owner)
    : plan_(plan),
      vector_(vector),
      reduction_(reduction),
      limits_(limits),
      ranks_(transport.group().size()),
      memory_(std::make_shared<Memory>()) {
  memory_->vector = std::move(owner);
  transport.group().together([&] {
    if (plan.ranks != ranks_ || plan.rank != transport.group().rank()) {
      throw inconsistent(fmt::format("the plan is of rank {} of {}, this is rank {} of {}", plan.rank,
                                     plan.ranks, transport.group().rank(), ranks_));
    }
    if (transport.capabilities().gather == Support::absent) {
      throw Error(ErrorCode::usage, fmt::format("the {} transport cannot gather (ordered sums need it).",
                                                transport.capabilities().transport));
    }
    BufferId last = 0;
    for (Buffer const& b : plan.buffers) last = std::max(last, b.id);
    memory_->buffers.resize(static_cast<std::size_t>(last) + 1);
    for (Buffer const& b : plan.buffers) {
      if (b.id != 0)
        memory_->buffers[static_cast<std::size_t>(b.id)].resize(static_cast<std::size_t>(b.items));
    }
    for (Stage const& s : plan.stages) {
      for (Message const& m : s.out) require_together(m.from, m.from_first, m.items);
      for (Message const& m : s.in) require_together(m.to, m.to_first, m.items);
    }
  });

  Binding binding;
  binding.memory = memory_;
  binding.gather_width = widest_sum + 1;  // one more double carries the control bits
  StageId last_stage = -1;
  for (Stage const& s : plan.stages) last_stage = std::max(last_stage, s.id);
  position_of_stage_.assign(static_cast<std::size_t>(last_stage + 1), -1);
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    position_of_stage_[static_cast<std::size_t>(plan.stages[i].id)] = static_cast<int>(i);
  }
  for (Stage const& s : plan.stages) {
    std::vector<int> outs, ins, after;
    for (Message const& m : s.out) {
      outs.push_back(static_cast<int>(binding.out.size()));
      binding.out.push_back({m.id, m.target, reinterpret_cast<std::byte const*>(at(m.from, m.from_first)),
                             static_cast<std::size_t>(m.items) * sizeof(double)});
    }
    for (Message const& m : s.in) {
      ins.push_back(static_cast<int>(binding.in.size()));
      binding.in.push_back({m.id, m.source, reinterpret_cast<std::byte*>(at(m.to, m.to_first)),
                            static_cast<std::size_t>(m.items) * sizeof(double)});
    }
    for (StageId a : s.after) after.push_back(position_of_stage_.at(static_cast<std::size_t>(a)));
    out_of_stage_.push_back(outs);
    in_of_stage_.push_back(ins);
    after_.push_back(after);
  }
  sent_.assign(binding.out.size(), 1);
  phase_.assign(plan.stages.size(), Phase::done);
  gathered_.resize(static_cast<std::size_t>(ranks_) * (widest_sum + 1));
  contribution_.resize(widest_sum + 1);
  tree_.resize(static_cast<std::size_t>(power_of_two(ranks_)));
  if (reduction_ == Reduction::fast && transport.capabilities().all_reduce == Support::absent) {
    reduction_ = Reduction::ordered;  // reported back through reduction(): the gather is the fast way there
  }
  endpoint_ = transport.bind(binding);
}

double* Exchange::memory(BufferId buffer) {
  return buffer == 0 ? vector_ : memory_->buffers.at(static_cast<std::size_t>(buffer)).data();
}

double* Exchange::at(BufferId buffer, std::int64_t item) {
  return memory(buffer) + (buffer == 0 ? plan_.place(item) : item);
}

// A transport is given one piece of memory.
void Exchange::require_together(BufferId buffer, std::int64_t first, std::int64_t items) const {
  if (buffer != 0 || items == 0 || plan_.place(first + items - 1) - plan_.place(first) == items - 1) return;
  throw inconsistent(
      fmt::format("a message of items {} to {} of the vector, where {} are owned and {} of the {} ghosts lie "
                  "before them",
                  first, first + items - 1, plan_.owned, plan_.ghosts_below, plan_.ghosts));
}

// A box or a list on either side: item i of `from` goes to item i of `to`.
void Exchange::move(Move const& m) {
  double* const from = memory(m.from.buffer);
  double* const to = memory(m.to.buffer);
  HaloPlan const& plan = plan_;
  std::int64_t const items = m.from.items();
  if (m.from.buffer == 0 && m.to.buffer != 0 && !m.from.index.empty() && m.to.index.empty() &&
      m.to.rows == 1) {  // the common pack
    std::int32_t const* index = m.from.index.data();
    std::int64_t const first = m.from.first;
    double* const packed = to + m.to.first;
    for (std::int64_t i = 0; i < items; ++i) packed[i] = from[plan.place(first + index[i])];
    return;
  }
  auto const place = [&plan](Pieces const& p, std::int64_t i) -> std::int64_t {
    std::int64_t item = p.first;
    if (!p.index.empty()) {
      item += p.index[static_cast<std::size_t>(i)];
    } else {
      item += p.rows == 1 ? i : i / p.count * p.stride + i % p.count;
    }
    return p.buffer == 0 ? plan.place(item) : item;
  };
  for (std::int64_t i = 0; i < items; ++i) to[place(m.to, i)] = from[place(m.from, i)];
}

void Exchange::start() {
  ++epoch_;
  complete_ = plan_.stages.empty();
  for (std::size_t s = 0; s < phase_.size(); ++s) {
    phase_[s] = Phase::waiting;
    for (int index : in_of_stage_[s]) endpoint_->receive(index, epoch_);
  }
  advance();
}

bool Exchange::step(std::size_t s) {
  Stage const& stage = plan_.stages[s];
  if (phase_[s] == Phase::waiting) {
    for (int a : after_[s]) {
      if (phase_[static_cast<std::size_t>(a)] != Phase::done) return false;
    }
    for (Move const& m : stage.pack) move(m);
    for (int index : out_of_stage_[s]) {
      sent_[static_cast<std::size_t>(index)] = 0;
      endpoint_->send(index, epoch_);
    }
    phase_[s] = Phase::started;
  }
  if (phase_[s] == Phase::started) {
    for (int index : in_of_stage_[s]) {
      if (!endpoint_->received(index)) return false;
    }
    for (Move const& m : stage.unpack) move(m);
    phase_[s] = Phase::done;
  }
  return true;
}

bool Exchange::all_sent() {
  bool all = true;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i] == 0) sent_[i] = endpoint_->sent(static_cast<int>(i)) ? 1 : 0;
    all = all && sent_[i] != 0;
  }
  return all;
}

bool Exchange::advance() {
  if (sum_open_ && !sum_ready_) poll_sum();
  if (complete_ || lost_) return complete_;
  bool done = true;
  for (std::size_t s = 0; s < phase_.size(); ++s) done = step(s) && done;
  complete_ = all_sent() && done;
  return complete_;
}

bool Exchange::unpacked(std::vector<StageId> const& needs) const {
  return std::all_of(needs.begin(), needs.end(), [&](StageId id) {
    return phase_[static_cast<std::size_t>(position_of_stage_[static_cast<std::size_t>(id)])] == Phase::done;
  });
}

void Exchange::begin_sum(std::span<double const> mine) {
  if (lost_)
    return;  // formed without ghosts, perhaps: a rank that comes late must not find this sum complete
  width_ = mine.size() + 1;
  std::copy(mine.begin(), mine.end(), contribution_.begin());
  contribution_[mine.size()] = static_cast<double>(raised_);
  std::span<double const> const all(contribution_.data(), width_);
  sum_open_ = true;
  sum_ready_ = false;
  if (reduction_ == Reduction::ordered) {
    endpoint_->gather(all);
  } else {
    endpoint_->all_reduce(all);
  }
}

bool Exchange::poll_sum() {
  if (reduction_ == Reduction::ordered) {
    sum_ready_ = endpoint_->gathered({gathered_.data(), width_ * static_cast<std::size_t>(ranks_)});
  } else {
    sum_ready_ = endpoint_->all_reduced({gathered_.data(), width_});
  }
  return sum_ready_;
}

bool Exchange::finish_sum(std::span<double> totals) {
  if (!wait([this] { return sum_ready_ || poll_sum(); })) return false;
  sum_open_ = false;
  std::size_t const last = width_ - 1;
  if (reduction_ == Reduction::fast) {
    std::copy_n(gathered_.data(), totals.size(), totals.data());
    seen_ = gathered_[last] != 0 ? control::stop : 0;  // the only bit there is: any rank's sum is non-zero
    return true;
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
  return true;
}

void Exchange::leave() noexcept {
  lost_ = true;
  endpoint_->leave();
}

}  // namespace hostless
