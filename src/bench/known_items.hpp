#pragma once
// Fields of an exchange in which every byte says whose it is, and in which round.

#include <fmt/format.h>

#include <memory>
#include <span>
#include <vector>

#include "base/counted.hpp"
#include "bench/halo.hpp"
#include "bench/known.hpp"

namespace hostless::bench {

/// Of the bytes of an item, wherever it lies.
inline std::uint64_t seed_of(GhostHome home, int field, int round) {
  auto const word = [](int number) { return static_cast<std::uint64_t>(static_cast<std::uint32_t>(number)); };
  return mixed(mixed(word(home.rank) << 32 | word(home.item)) ^ (word(field) << 32 | word(round)));
}

/// The fields of one plan, and what is in them in each round.
class KnownItems {
 public:
  KnownItems(Halo const& what, ExchangePlan const& plan)
      : plan_(plan), homes_(homes_of_ghosts(what.patterns, plan.rank)), bytes_(what.item_bytes) {
    if (static_cast<std::int64_t>(homes_.size()) != plan.ghosts)
      throw Error(ErrorCode::usage,
                  fmt::format("a plan of {} with patterns of {} (it was made from others). Pass those "
                              "that it was made from.",
                              counted(plan.ghosts, "ghost"), homes_.size()));
    auto const items = static_cast<std::size_t>(plan.owned + plan.ghosts);
    for (int field = 0; field < what.fields; ++field) memory_->emplace_back(items * bytes_);
  }
  std::shared_ptr<void> owner() const { return memory_; }
  std::vector<Field> fields() {
    std::vector<Field> all;
    for (int field = 0; field < static_cast<int>(memory_->size()); ++field)
      all.push_back(plan_.receive == 0
                        ? Field::around(item_at(field, 0).data(), bytes_)
                        : Field::apart(item_at(field, 0).data(), ghost_at(field, 0).data(), bytes_));
    return all;
  }

  /// The same arrays elsewhere.
  std::vector<Field> fields_at(std::vector<std::byte*> const& base) {
    std::vector<Field> all = fields();
    for (std::size_t field = 0; field < all.size(); ++field) {
      std::byte const* const here = bytes_of(field).data();
      auto const moved = [&](void const* at) {
        return base[field] + (static_cast<std::byte const*>(at) - here);
      };
      all[field].send = moved(all[field].send);
      all[field].receive = moved(all[field].receive);
    }
    return all;
  }
  std::span<std::byte> bytes_of(std::size_t field) { return (*memory_)[field]; }

  void fill(int round) {
    for (int field = 0; field < static_cast<int>(memory_->size()); ++field)
      for (std::int64_t item = 0; item < plan_.owned; ++item)
        fill_known(item_at(field, item),
                   seed_of({plan_.rank, static_cast<std::int32_t>(item)}, field, round));
  }
  /// Errors  environment  a ghost has other bytes than its owner
  void check(int round) {
    for (int field = 0; field < static_cast<int>(memory_->size()); ++field)
      for (std::int64_t ghost = 0; ghost < plan_.ghosts; ++ghost) {
        GhostHome const home = homes_[static_cast<std::size_t>(ghost)];
        auto const here = ghost_at(field, ghost);
        std::size_t const at = first_unknown(here, seed_of(home, field, round));
        if (at < here.size())
          throw wrong(
              fmt::format("a ghost is not what its owner has: byte {} of ghost {} of rank {}, field "
                          "{}, is not that of item {} of rank {}",
                          at, ghost, plan_.rank, field, home.item, home.rank));
      }
  }

 private:
  // One array of a field's: [ghosts below | owned | ghosts above], or owned and then all ghosts.
  std::span<std::byte> bytes_at(int field, std::int64_t item) {
    return std::span((*memory_)[static_cast<std::size_t>(field)])
        .subspan(static_cast<std::size_t>(item) * bytes_, bytes_ * (item < plan_.owned + plan_.ghosts));
  }
  std::span<std::byte> item_at(int field, std::int64_t item) {
    return bytes_at(field, item + (plan_.receive == 0 ? plan_.ghosts_below : 0));
  }
  std::span<std::byte> ghost_at(int field, std::int64_t ghost) {
    std::int64_t const behind = plan_.owned + ghost;
    return bytes_at(field, plan_.receive == 0 ? plan_.ghosts_below + plan_.vector_offset(behind) : behind);
  }

  ExchangePlan const& plan_;
  std::vector<GhostHome> homes_;
  std::size_t bytes_;
  std::shared_ptr<std::vector<std::vector<std::byte>>> memory_ =
      std::make_shared<std::vector<std::vector<std::byte>>>();  // a late message may come after a loss
};

// One exchange and what follows it, in rounds with bytes of their own. Items: fill(round), check(round).
template <class Items, class Step>
void prove(Items& items, Step const& step) {
  for (int round = 1; round <= 4; ++round) {  // both parities of epochs, twice
    items.fill(round);
    step();
    items.check(round);
  }
}

}  // namespace hostless::bench
