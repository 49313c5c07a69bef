#pragma once
// Ranks whose end Python holds: those of exchanges, which have no matrix.

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "away.hpp"
#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"
#include "hostless/transport/composite.hpp"
#include "hostless/transport/mpi.hpp"
#include "hostless/transport/transport.hpp"

namespace hostless::python {

/// By its name. Errors  usage  another one than openmpi or mpich
MpiVendor mpi_vendor_from(std::string const& text);
/// The transport of a communicator; by_reach: composite, else MPI alone. Collective.
/// Errors  usage  some processes ask for composite and others do not; on all
std::unique_ptr<Transport> open_communicator(MpiVendor mpi, int fortran_communicator, bool by_reach);

/// One rank's end of a transport, for as long as it is there: of a thread of run_threads until its function
/// returns, else until it is closed. Used by one thread at a time.
class Ranks {
 public:
  /// What is bound to the transport, and may not outlive it.
  class Bound {
   public:
    virtual ~Bound() = default;
    /// Lets go of all that is of the transport. Without the GIL.
    virtual void end() noexcept = 0;
  };

  /// This thread alone.
  static std::shared_ptr<Ranks> single();
  /// This process is a rank of an MPI communicator, which is duplicated; by_reach as open_communicator.
  static std::shared_ptr<Ranks> of_mpi(std::string const& vendor, int fortran_communicator, bool by_reach);
  /// A rank of run_threads; `lent` lives until `end`.
  explicit Ranks(Transport& lent) : transport_(&lent), watch_(setup_watch()) { note_ranks(); }
  ~Ranks();
  Ranks(Ranks const&) = delete;
  Ranks& operator=(Ranks const&) = delete;

  /// While it lives the ranks are at work here, and the GIL is free.
  /// Errors  usage    they have ended, are of another process (after a fork), or at work in another thread
  ///         aborted  as look, unless something ends anyway
  class Use {
   public:
    explicit Use(Ranks& ranks, bool ends = false) : busy_(ranks) {
      if (!ends) ranks.require_wanted();
    }

   private:
    struct Busy {
      explicit Busy(Ranks& of);
      ~Busy() { ranks.busy_ = false; }
      Busy(Busy const&) = delete;
      Busy& operator=(Busy const&) = delete;
      Ranks& ranks;
    };
    Busy busy_;
    Away away_;  // the GIL is back before somebody else may use the ranks
  };

  /// In waits, ten times a second, without the GIL.
  /// Errors  aborted  run_threads is to end, or the interpreter ends; what a signal raised in Python
  void look();
  /// As transport/agreement.hpp has it, without the GIL meanwhile.
  void agree(std::optional<Error> const& problem, std::string const& same);
  /// A number that all ranks have in common; `indifferent` goes along with the others.
  /// Returns  `none` where two differ, or one has none, or all are indifferent. Collective
  std::int64_t common(std::int64_t mine);
  static constexpr std::int64_t none = -1, indifferent = -2;
  void barrier();
  /// Everything that is bound lets go, then the transport goes: of MPI collective, and waited for, but where
  /// this rank is `leaving` by an exception: the others may be anywhere, and are told a second later.
  /// Errors  usage  at work in another thread
  void close(bool leaving);
  /// The same at the end of a function of run_threads: waits for other threads that it may have given its
  /// rank to, which see that it ends.
  void end() noexcept;

  /// Errors  usage  they have ended, or are of another process
  void check_usable() const;
  void add(Bound* bound) { bound_.push_back(bound); }
  void remove(Bound const* bound) { std::erase(bound_, bound); }
  std::vector<Bound*> const& bound() const { return bound_; }
  Transport& transport() { return *transport_; }
  bool ended() const { return transport_ == nullptr; }
  /// False in a process that was forked from the one with the ranks, where nothing may be destroyed.
  bool is_here() const;
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  explicit Ranks(std::unique_ptr<Transport> owned) : owned_(std::move(owned)), transport_(owned_.get()) {
    note_ranks();
  }
  void note_ranks();
  void require_wanted() const;
  void let_go() noexcept;

  std::unique_ptr<Transport> owned_;
  Transport* transport_;
  SetupWatch const* watch_ = nullptr;  // of run_threads, which outlives the transport
  std::vector<Bound*> bound_;          // with the GIL
  std::atomic<bool> busy_{false}, ending_{false};
  bool began_at_end_ = ending;  // the interpreter's end has begun it
  long process_ = 0;
  int rank_ = 0, size_ = 1;
};

/// Calls body(ranks) on `count` threads, each with a rank of its own, and returns what they returned, by
/// rank. The calling thread waits and looks for signals; what one raises ends the ranks at their next call.
///
/// Errors  what a signal raised; what a body raised: of several that of the lowest rank that did not merely
///         miss another one
nanobind::list run_threads(int count, nanobind::callable const& body);

void bind_ranks(nanobind::module_& module);

}  // namespace hostless::python
