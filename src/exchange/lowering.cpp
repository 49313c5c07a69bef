#include "exchange/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "exchange/field_checks.hpp"
#include "hostless/base/error.hpp"
#include "plan/index.hpp"
#include "plan/pieces.hpp"

namespace hostless {
namespace {

/// Items of one buffer in the order in which a step takes them: from `first` on, or a list.
struct Positions {
  std::int64_t first = 0, count = 0;
  std::vector<std::int32_t> list;
};

class Lowering {
 public:
  Lowering(ExchangePlan const& plan, std::span<Field const> fields, bool in_place)
      : plan_(plan), fields_(fields), in_place_(in_place) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      require_fit(f);
      offset_.push_back(row_);
      row_ += fields[f].item_bytes;
    }
    require_apart(plan, fields);
    if (fields.empty() && plan.items_sent() + plan.items_received() > 0)
      refuse_fields("no fields for a plan that moves items");
    blocks_.resize(plan.buffers.size(), nullptr);
    for (Buffer const& buffer : plan.buffers)
      if (buffer.id >= plan.first_staging()) blocks_[at(buffer.id)] = staging(buffer.items);
  }

  LoweredPlan run() {
    for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
      auto const id = at(plan_.stages[s].id);
      if (made_.position_of_stage.size() <= id) made_.position_of_stage.resize(id + 1, -1);
      made_.position_of_stage[id] = static_cast<int>(s);
    }
    for (Stage const& stage : plan_.stages) made_.stages.push_back(lowered(stage));
    return std::move(made_);
  }

 private:
  void require_fit(std::size_t f) const {
    Field const& field = fields_[f];
    if (field.item_bytes == 0) refuse_fields(fmt::format("fields[{}].item_bytes: 0", f));
    require_size(f);
    if (plan_.receive == 0 && field.send != field.receive)
      refuse_fields(fmt::format(
          "fields[{}].receive: another array than `send`, but the plan is of one (its `receive` is 0)", f));
    if (field.send == nullptr && plan_.owned > 0 && reads_owned())
      refuse_fields(fmt::format("fields[{}].send: no memory for {} items", f, plan_.owned));
    if (field.receive == nullptr && plan_.ghosts > 0)
      refuse_fields(fmt::format("fields[{}].receive: no memory for {} ghosts", f, plan_.ghosts));
  }

  /// Every offset fits into a signed one.
  void require_size(std::size_t f) const {
    std::int64_t most = 1;
    for (Buffer const& buffer : plan_.buffers) most = std::max(most, buffer.items);
    std::size_t const room = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / at(most);
    if (fields_[f].item_bytes > room - row_)
      refuse_fields(
          fmt::format("fields[{}].item_bytes: {}, which with the fields before it and for {} items are more "
                      "bytes than there can be",
                      f, fields_[f].item_bytes, most));
  }

  bool reads_owned() const {
    for (Stage const& stage : plan_.stages) {
      for (Move const& move : stage.pack)
        if (move.from.buffer == 0 && move.from.items() > 0) return true;
      for (Message const& message : stage.out)
        if (message.from == 0 && message.items > 0) return true;
    }
    return false;
  }

  std::byte* staging(std::int64_t items) {
    made_.staging.emplace_back(new std::byte[at(items) * row_]);  // no page before it is used
    return made_.staging.back().get();
  }

  bool is_staging(BufferId buffer) const { return buffer >= plan_.first_staging(); }
  std::size_t stride(BufferId buffer, std::size_t f) const {
    return is_staging(buffer) ? row_ : fields_[f].item_bytes;
  }
  /// Where position 0 of a field is. The caller's owned items are only read: `refusal` has seen to it.
  std::byte* base(BufferId buffer, std::size_t f) const {
    if (is_staging(buffer)) return blocks_[at(buffer)] + offset_[f];
    void const* const memory = buffer == plan_.receive ? fields_[f].receive : fields_[f].send;
    return static_cast<std::byte*>(const_cast<void*>(memory));
  }
  std::int64_t position(BufferId buffer, std::int64_t item) const {
    return buffer == 0 && plan_.receive == 0 ? plan_.vector_offset(item) : item;
  }

  Positions positions_of(Pieces const& pieces) const {
    Positions found;
    found.count = pieces.items();
    if (found.count == 0) return found;
    each_item(pieces, [&](std::int64_t item) {
      found.list.push_back(static_cast<std::int32_t>(position(pieces.buffer, item)));
    });
    found.first = found.list.front();
    bool together = true;
    for (std::size_t k = 0; k < found.list.size(); ++k)
      together = together && found.list[k] == found.first + static_cast<std::int64_t>(k);
    if (together) found.list.clear();
    return found;
  }

  std::int32_t const* keep(std::vector<std::int32_t> const& list) {
    if (list.empty()) return nullptr;
    made_.index.emplace_back(new std::int32_t[list.size()]);
    std::copy(list.begin(), list.end(), made_.index.back().get());
    return made_.index.back().get();
  }

  /// Item k of `from` goes to item k of `to`, of every field.
  void add_copies(Pieces const& from, Pieces const& to, std::vector<CopyStep>& steps) {
    Positions const here = positions_of(from), there = positions_of(to);
    if (here.count == 0) return;
    std::int32_t const* const from_index = keep(here.list);
    std::int32_t const* const to_index = keep(there.list);
    bool const whole_rows = is_staging(from.buffer) && is_staging(to.buffer);
    for (std::size_t f = 0; f < (whole_rows ? 1 : fields_.size()); ++f) {
      CopyStep step;
      step.items = here.count;
      step.bytes = whole_rows ? row_ : fields_[f].item_bytes;
      step.from_stride = stride(from.buffer, f);
      step.to_stride = stride(to.buffer, f);
      step.from = base(from.buffer, f);
      step.to = base(to.buffer, f);
      step.from_index = from_index;
      step.to_index = to_index;
      if (from_index == nullptr) step.from += here.first * static_cast<std::int64_t>(step.from_stride);
      if (to_index == nullptr) step.to += there.first * static_cast<std::int64_t>(step.to_stride);
      steps.push_back(step);
    }
  }

  static Pieces range(BufferId buffer, std::int64_t first, std::int64_t items) {
    Pieces pieces;
    pieces.buffer = buffer;
    pieces.first = first;
    pieces.count = static_cast<std::int32_t>(items);
    return pieces;
  }

  /// The one piece of memory that a message's items are, nullptr where they are several.
  std::byte* in_place(BufferId buffer, std::int64_t first, std::int64_t items) const {
    if (is_staging(buffer)) return blocks_[at(buffer)] + first * static_cast<std::int64_t>(row_);
    if (fields_.size() != 1 || !in_place_) return nullptr;
    std::int64_t const begin = position(buffer, first);
    if (position(buffer, first + items - 1) - begin != items - 1) return nullptr;
    return base(buffer, 0) + begin * static_cast<std::int64_t>(fields_[0].item_bytes);
  }

  /// A staging buffer that the plan does not have.
  BufferId extra(std::int64_t items) {
    blocks_.push_back(staging(items));
    return static_cast<BufferId>(blocks_.size()) - 1;
  }

  void send(Message const& m, LoweredStage& stage) {
    std::byte* from = nullptr;
    if (m.items > 0) from = in_place(m.from, m.from_first, m.items);
    if (m.items > 0 && from == nullptr) {
      BufferId const packed = extra(m.items);
      add_copies(range(m.from, m.from_first, m.items), range(packed, 0, m.items), stage.pack);
      from = blocks_[at(packed)];
    }
    stage.out.push_back(static_cast<int>(made_.out.size()));
    made_.out.push_back({m.id, m.target, from, at(m.items) * row_, m.items == 0});
  }

  void receive(Message const& m, LoweredStage& stage) {
    std::byte* to = nullptr;
    if (m.items > 0) to = in_place(m.to, m.to_first, m.items);
    if (m.items > 0 && to == nullptr) {
      BufferId const landed = extra(m.items);
      add_copies(range(landed, 0, m.items), range(m.to, m.to_first, m.items), stage.unpack);
      to = blocks_[at(landed)];
    }
    stage.in.push_back(static_cast<int>(made_.in.size()));
    made_.in.push_back({m.id, m.source, to, at(m.items) * row_, m.items == 0});
  }

  LoweredStage lowered(Stage const& from) {
    LoweredStage stage;
    for (StageId const id : from.after) stage.after.push_back(made_.position_of_stage.at(at(id)));
    for (Move const& move : from.pack) add_copies(move.from, move.to, stage.pack);
    // What crosses the farthest boundary takes longest.
    std::vector<Message> out = from.out;
    std::stable_sort(out.begin(), out.end(),
                     [](Message const& a, Message const& b) { return a.locality > b.locality; });
    for (Message const& message : out) send(message, stage);
    for (Message const& message : from.in) receive(message, stage);
    for (Move const& move : from.unpack) add_copies(move.from, move.to, stage.unpack);
    return stage;
  }

  ExchangePlan const& plan_;
  std::span<Field const> fields_;
  bool in_place_;
  std::vector<std::size_t> offset_;  // of a field in a row of staging memory
  std::size_t row_ = 0;              // bytes of one item of all fields
  std::vector<std::byte*> blocks_;   // by buffer, nullptr for the caller's; then the extra ones
  LoweredPlan made_;
};

}  // namespace

LoweredPlan lower_plan(ExchangePlan const& plan, std::span<Field const> fields, bool in_place) {
  return Lowering(plan, fields, in_place).run();
}

}  // namespace hostless
