#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hostless/exchange/exchange.hpp"
#include "hostless/plan/reverse.hpp"

namespace hostless {

/// What can be added.
enum class Element : std::uint8_t { f32, f64, i32, i64 };
std::size_t bytes_of(Element element);

/// One array of this rank's whose ghosts are added to what their owners hold, in host memory that outlives
/// the exchange, at any address. Ghosts share no byte with what is added to.
struct SumField {
  void const* ghosts = nullptr;  ///< [ghosts][values], only read
  void* owned = nullptr;         ///< [owned][values]
  Element element = Element::f64;
  int values = 1;  ///< of an item
};

/// A reverse plan bound to a transport and to any number of fields: adds the ghosts of all ranks to the items
/// that they are copies of, all fields in one message a neighbour.
///
/// An owned item becomes (item + contribution of the lowest rank) + contribution of the next rank ...: the
/// same bits by every route and on every transport. Integers wrap around. Ghosts keep their values.
///
/// Used as an Exchange is: between `start` and the end the ghosts may not change and the owned items may not
/// be touched; nothing is allocated after construction.
class ReverseExchange {
 public:
  /// Collective. The plan is needed no longer afterwards, the fields' memory is.
  ///
  /// Errors  usage  as Exchange; no values in an item, no memory for items that are added to, other elements
  ///                on other ranks; options.sums
  /// Cost    as Exchange, and memory for the contributions that this rank receives
  ReverseExchange(Transport& transport, ReversePlan const& plan, std::vector<SumField> const& fields,
                  ExchangeOptions const& options = {});

  /// Errors  usage  the last one is not complete
  void start();
  /// Moves on as far as it goes without waiting. True when all contributions have been added.
  /// Ends as Exchange::test does: `while (!test() && !lost())`.
  bool test();
  /// Waits until they have been. False: a peer is lost, and nothing has been added here.
  [[nodiscard]] bool wait();
  bool lost() const { return exchange_->lost(); }
  /// Tells the others that this rank leaves.
  void leave() noexcept { exchange_->leave(); }

 private:
  void add();
  std::vector<SumField> fields_;
  std::vector<std::int32_t> sum_;
  std::vector<std::byte*> contributions_;  // of each field
  struct Copy {
    std::byte* to;
    void const* from;
    std::size_t bytes;
  };
  std::vector<Copy> copies_;  // of ghosts, where a transport may read them after they are gone
  std::unique_ptr<Exchange> exchange_;
  bool added_ = true;
};

}  // namespace hostless
