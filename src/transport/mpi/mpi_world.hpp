#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hostless/base/deadline.hpp"
#include "hostless/base/wait.hpp"
#include "hostless/transport/point_to_point.hpp"
#include "hostless/transport/transport.hpp"
#include "transport/mpi/mpi_pending.hpp"

namespace hostless::mpi {

/// Tags. Messages of a plan count upwards from tag_first_message between each two ranks, whatever their ids
/// are, so they fit below MPI_TAG_UB.
constexpr int tag_poison = 0, tag_gather = 1, tag_exchange = 2, tag_first_message = 3;
/// On World::main: notes, and messages that two ranks have matched.
constexpr int tag_note = 4, tag_first_matched = 16;

/// A communicator for one endpoint at a time. They are kept and used again: creating one is expensive, and
/// freeing one is collective, which the destructor of an endpoint cannot be.
struct Slot {
  MPI_Comm communicator = MPI_COMM_NULL;
  bool used = false;
  bool soiled = false;       ///< an endpoint ended with something under way: never used again
  std::int64_t pending = 0;  ///< messages sent minus messages received here; zero over all ranks when drained
};

/// What one opened transport, its group and its endpoints share.
///
/// After a failure `broken` is set and MPI is not called again by it. What is under way is abandoned with its
/// memory (mpi_pending.hpp): the program around it may go on calling MPI.
class World {
 public:
  /// Collective over `parent`, with a deadline.
  World(MPI_Comm parent, int level);
  World(World const&) = delete;
  World& operator=(World const&) = delete;

  int rank = 0, size = 1, thread_level = MPI_THREAD_SINGLE;
  MPI_Comm main = MPI_COMM_NULL;    ///< set-up collectives, exchanges and the poison of a rank that failed
  std::atomic<bool> broken{false};  ///< threads that progress queues look at it too
  bool crowded = false;  ///< more ranks than cores on this node: whoever polls in vain gives its core away
  std::vector<Slot> slots;
  // Of point-to-point messages, over all openings.
  std::mutex point_mutex;  ///< of their calls of MPI, and of what follows
  std::uint32_t opened = 0;
  std::map<int, std::uint32_t> next_number;                ///< by source
  std::deque<std::pair<std::uint32_t, Note>> notes_ahead;  ///< of openings to come

  /// Whether those whose requests go are waited for: not while the last one was in vain, lest many of them take
  /// as many times as long.
  std::atomic<bool> patient_with_sends{true}, patient_with_receives{true};
  double patience_s() const { return limits_.later_s; }

  bool usable() const;
  /// Whether MPI is: it cannot be called any more.
  static bool finalised();
  /// Throws peer_lost when the world is broken already.
  void require();
  /// Any MPI error means that a rank or the network is gone. Poisons the others, then throws peer_lost.
  void check(int code, char const* doing);
  /// Polls the requests until all are complete. Errors  peer_lost  as said in check; late; another rank left
  void wait_all(Pending& pending, char const* doing);
  /// True when poison lies on the communicator.
  bool poisoned(MPI_Comm communicator);
  /// Sends poison to all other ranks. Best effort; ends within 0.2 s, usually within microseconds.
  void poison(MPI_Comm communicator) noexcept;
  /// Poisons everybody's set-up and stops using MPI.
  void break_off() noexcept;
  /// Waits until every rank has come here: then nothing is under way anywhere, communicators can be freed and
  /// MPI can be finalised. False (and the world is broken) when they did not come in time.
  bool end_in_order(double seconds) noexcept;
  /// Where nothing is under way on this rank; all ranks do so in one order. The world is not used afterwards.
  void free_communicators() noexcept;
  /// A duplicate of main. Collective.
  MPI_Comm duplicate(MPI_Comm of);

 private:
  bool count_neighbours();
  WaitLimits limits_ = WaitLimits::from_environment();
  MPI_Comm end_ = MPI_COMM_NULL;
};

std::unique_ptr<Group> make_group(std::shared_ptr<World> world);
std::unique_ptr<PointToPoint> make_point_to_point(std::shared_ptr<World> world);
/// Collective. `binding` has passed check_binding.
std::unique_ptr<Endpoint> make_endpoint(std::shared_ptr<World> world, Group& group, Binding const& binding);

}  // namespace hostless::mpi
