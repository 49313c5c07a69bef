#include "exchange/refusal.hpp"

#include <fmt/format.h>

#include <map>

#include "base/counted.hpp"
#include "hostless/plan/shape.hpp"
#include "plan/index.hpp"
#include "plan/pieces.hpp"
#include "plan/simulation.hpp"

namespace hostless {
namespace {

/// Messages of one trigger start together, as those of a stage do: so a trigger is of one stage.
std::string trigger_flaw(ExchangePlan const& plan) {
  std::map<int, std::size_t> stage_of;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (std::size_t k = 0; k < plan.stages[s].out.size(); ++k) {
      int const trigger = plan.stages[s].out[k].trigger;
      auto const [entry, fresh] = stage_of.emplace(trigger, s);
      if (!fresh && entry->second != s)
        return fmt::format(
            "stages[{}].out[{}].trigger: {} is that of a message of stages[{}] too, and stages do not start "
            "together",
            s, k, trigger, entry->second);
    }
  return {};
}

/// Both directions of this rank's messages by id.
struct Known {
  std::map<MessageId, Message const*> out, in;
};

/// Whether the message that proves a reason is there. The rest of the proof needs the plans of all ranks
/// (checker.hpp).
std::string reason_flaw(Message const& message, Known const& known, bool outgoing) {
  if (message.reuse_guarantee != ReuseGuarantee::answer && message.reuse_guarantee != ReuseGuarantee::credit)
    return {};
  auto const& others = outgoing ? known.in : known.out;
  auto const other = others.find(message.answer);
  Rank const peer = outgoing ? message.target : message.source;
  if (other == others.end() || (outgoing ? other->second->source : other->second->target) != peer)
    return fmt::format("answer: {} is no message of the opposite direction", message.answer);
  if (message.reuse_guarantee == ReuseGuarantee::credit && other->second->items != 0)
    return fmt::format("answer: {} is to be a credit and carries {}", message.answer,
                       counted(other->second->items, "item"));
  return {};
}

std::string reasons_flaw(ExchangePlan const& plan, bool has_sums) {
  Known known;
  for (Stage const& stage : plan.stages) {
    for (Message const& message : stage.out) known.out.emplace(message.id, &message);
    for (Message const& message : stage.in) known.in.emplace(message.id, &message);
  }
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (bool outgoing : {true, false}) {
      auto const& messages = outgoing ? plan.stages[s].out : plan.stages[s].in;
      for (std::size_t k = 0; k < messages.size(); ++k) {
        Message const& message = messages[k];
        auto const where = fmt::format("stages[{}].{}[{}].", s, outgoing ? "out" : "in", k);
        bool const relies = message.reuse_guarantee == ReuseGuarantee::reduction && message.items > 0;
        if (relies && !has_sums)
          return where +
                 "reuse_guarantee: reduction, but no all-rank sum lies between two uses of this exchange, as "
                 "there is with options.sums; plans for others are made with "
                 "PlanOptions::reuse_guarantee answer";
        if (relies && !outgoing && plan.buffers[at(message.to)].epochs < 2)
          return fmt::format("buffers[{}].epochs: 1, but {}reuse_guarantee is reduction, which needs 2",
                             message.to, where);
        if (std::string text = reason_flaw(message, known, outgoing); !text.empty()) return where + text;
      }
    }
  return {};
}

/// Without this rank's stages in an order in which they can run, every exchange would end at its deadline.
std::string circle_flaw(ExchangePlan const& plan) {
  auto const before = complete_before(plan);
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    if (before[s][s] != 0)
      return fmt::format("stages[{}].after: stage {} waits for itself", s, plan.stages[s].id);
  return {};
}

bool writes_owned(ExchangePlan const& plan, Pieces const& to) {
  bool found = false;
  if (to.buffer == 0) each_item(to, [&](std::int64_t item) { found = found || plan.is_owned(0, item); });
  return found;
}

std::string writes_flaw(ExchangePlan const& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    Stage const& stage = plan.stages[s];
    for (bool packs : {true, false}) {
      auto const& moves = packs ? stage.pack : stage.unpack;
      for (std::size_t k = 0; k < moves.size(); ++k)
        if (writes_owned(plan, moves[k].to))
          return fmt::format("stages[{}].{}[{}].to: writes owned items", s, packs ? "pack" : "unpack", k);
    }
    for (std::size_t k = 0; k < stage.in.size(); ++k)
      if (stage.in[k].items > 0 && plan.is_owned(stage.in[k].to, stage.in[k].to_first))
        return fmt::format("stages[{}].in[{}].to: writes owned items", s, k);
  }
  return {};
}

}  // namespace

std::string unserved_field(ExchangePlan const& plan) {
  for (std::size_t k = 0; k < plan.buffers.size(); ++k)
    if (plan.buffers[k].space != Space::host)
      return fmt::format("buffers[{}].space: {}, which no executor of this version provides", k,
                         name(plan.buffers[k].space));
  return trigger_flaw(plan);
}

std::string refusal(ExchangePlan const& plan, bool has_sums) {
  if (std::string text = flaw(plan); !text.empty()) return text;
  if (std::string text = unserved_field(plan); !text.empty()) return text;
  if (std::string text = circle_flaw(plan); !text.empty()) return text;
  if (std::string text = reasons_flaw(plan, has_sums); !text.empty()) return text;
  return writes_flaw(plan);
}

}  // namespace hostless
