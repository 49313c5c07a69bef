#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "hostless/plan/exchange_plan.hpp"
#include "plan/complaints.hpp"

namespace hostless {

/// Positions of the two sides of a message: (rank, position of the stage in its plan, message).
struct Side {
  Rank rank = 0;
  std::size_t stage = 0;
  Message const* message = nullptr;
};
struct Wired {
  Side out, in;
};
using Wiring = std::map<MessageId, Wired>;

/// What happens on a rank: a stage begins (its `after` are complete; pack, then send) or ends (in, then
/// unpack).
struct Happening {
  Rank rank = 0;
  std::size_t stage = 0;
  bool end = false;
};

/// An order in which all stages of all ranks can run; shorter than the number of happenings when some wait in
/// a circle.
std::vector<Happening> order_of(std::vector<ExchangePlan> const& plans, Wiring const& wiring);

/// before[a][b]: stage a of the plan is complete before stage b begins.
std::vector<std::vector<char>> complete_before(ExchangePlan const& plan);

/// The global identity of an item, used as its value.
using Value = std::int64_t;
constexpr Value nothing = -1;
inline Value value_of(Rank source, std::int64_t item) { return (Value{source} << 32) | item; }

/// Runs one exchange of all ranks over values. Complaints of rules 1 (written twice), 4, 5 and 7 are raised
/// on the way.
///
/// ghosts  [ranks] the value every ghost must end with
class Simulation {
 public:
  Simulation(std::vector<ExchangePlan> const& plans, Wiring const& wiring,
             std::vector<std::vector<Value>> const& ghosts, Complaints& complaints);
  void run(std::vector<Happening> const& order);
  void compare_ghosts();
  void count_crossings();

 private:
  /// Parts of a stage, in their order.
  enum class Part : std::uint8_t { pack, out, in, unpack };
  struct When {
    std::size_t stage = 0;
    Part part = Part::pack;
  };
  struct Cell {
    Value value = nothing;
    bool written = false;
    When when;
  };

  Value read(Rank rank, BufferId buffer, std::int64_t offset, When now);
  void write(Rank rank, BufferId buffer, std::int64_t offset, Value value, When now);
  void move(Rank rank, Move const& what, When now);

  std::vector<ExchangePlan> const& plans_;
  Wiring const& wiring_;
  std::vector<std::vector<Value>> const& ghosts_;
  Complaints& complaints_;
  std::vector<std::vector<std::vector<char>>> before_;  // [rank] complete_before
  std::vector<std::vector<std::vector<Cell>>> cells_;   // [rank][buffer][item]; of buffer 0 what is not owned
  std::map<MessageId, std::vector<Value>> sent_values_;
};

}  // namespace hostless
