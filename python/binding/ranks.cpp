#include "ranks.hpp"

#include <cxxabi.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "binding.hpp"
#include "hostless/base/wait.hpp"
#include "transport/agreement.hpp"
#include "watched.hpp"

namespace nb = nanobind;

namespace hostless::python {
namespace {

[[noreturn]] void refuse(char const* text) { throw Error(ErrorCode::usage, text); }

}  // namespace

MpiVendor mpi_vendor_from(std::string const& text) {
  for (MpiVendor vendor : {MpiVendor::openmpi, MpiVendor::mpich}) {
    if (text == name(vendor)) return vendor;
  }
  throw Error(ErrorCode::usage, "unknown MPI '" + text + "'. Use openmpi or mpich.");
}

std::unique_ptr<Transport> open_communicator(MpiVendor mpi, int fortran_communicator, bool by_reach) {
  auto opened = open_mpi_transport(mpi, fortran_communicator);
  int const wanted = opened->group().sum(by_reach ? 1 : 0), all = opened->group().size();
  if (wanted == 0) return opened;
  if (wanted < all)
    throw Error(ErrorCode::usage, "transport='composite' on " + std::to_string(wanted) + " of " +
                                      std::to_string(all) +
                                      " processes (it is everybody's). Pass the same on all.");
  return open_composite_transport(std::move(opened));
}

std::shared_ptr<Ranks> Ranks::single() { return std::shared_ptr<Ranks>(new Ranks(single_transport())); }

std::shared_ptr<Ranks> Ranks::of_mpi(std::string const& vendor, int fortran_communicator, bool by_reach) {
  MpiVendor const mpi = mpi_vendor_from(vendor);
  std::unique_ptr<Transport> opened;
  {
    Away const away;
    opened = open_communicator(mpi, fortran_communicator, by_reach);
  }
  return std::shared_ptr<Ranks>(new Ranks(std::move(opened)));
}

void Ranks::note_ranks() {
  process_ = getpid();
  rank_ = transport_->group().rank();
  size_ = transport_->group().size();
}

bool Ranks::is_here() const { return process_ == getpid(); }

Ranks::~Ranks() {
  if (!is_here()) {
    static_cast<void>(owned_.release());  // locks and waits of threads that did not come along never end
    return;
  }
  let_go();
}

void Ranks::check_usable() const {
  if (!is_here())
    refuse("ranks of another process (a fork takes none of them along). Make the plan after the fork.");
  if (ended() || ending_)
    refuse(
        "the ranks have ended (the plan was closed, or the function of run_threads has returned). Make a new "
        "plan.");
}

Ranks::Use::Busy::Busy(Ranks& of) : ranks(of) {
  of.check_usable();
  if (of.busy_.exchange(true))
    refuse(
        "this rank is at work in another thread (it does one thing at a time). Wait for it, or give each "
        "thread a rank by hostless.run_threads.");
}

void Ranks::require_wanted() const {
  bool const over = !began_at_end_ && ending;
  if (over || ending_ || (watch_ != nullptr && watch_->stopped()))
    throw Error(
        ErrorCode::aborted,
        "the program has asked all ranks to end (nothing of an exchange goes on). See what it raised.");
}

void Ranks::look() {
  require_wanted();
  Back const back;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void Ranks::agree(std::optional<Error> const& problem, std::string const& same) {
  Use const use(*this);
  static_cast<void>(hostless::agree(transport_->group(), problem, same, false));
}

std::int64_t Ranks::common(std::int64_t mine) {
  Use const use(*this);
  std::int64_t found = indifferent;
  for (std::int64_t const number : transport_->group().all_gather(mine)) {
    if (number == indifferent) continue;
    if (number == none || (found != indifferent && found != number)) return none;
    found = number;
  }
  return found == indifferent ? none : found;
}

void Ranks::barrier() {
  Use const use(*this);
  transport_->group().barrier();
}

// The transport of threads is only lent: what is bound to it goes before it.
void Ranks::let_go() noexcept {
  auto const bound = std::exchange(bound_, {});
  auto owned = std::exchange(owned_, nullptr);
  transport_ = nullptr;
  nb::gil_scoped_release const release;  // ranks that are processes wait for each other
  for (Bound* const one : bound) one->end();
  owned.reset();
}

void Ranks::close(bool leaving) {
  if (ended() || !is_here()) return;
  if (busy_) refuse("this rank is at work in another thread (it cannot end). Close it afterwards.");
  if (!leaving) return let_go();
  struct AtEnd {
    Ranks& ranks;
    ~AtEnd() { ranks.let_go(); }
  };
  try {
    AtEnd const at_end{*this};
    throw Error(ErrorCode::aborted, "an exception of Python's has left these ranks.");
  } catch (Error const&) {  // transports see it pass by, as they would see one of C++
  }
}

void Ranks::end() noexcept {
  ending_ = true;
  {
    nb::gil_scoped_release const release;
    for (Backoff backoff; busy_; backoff.pause()) {
    }  // bounded: who waits looks at ending_, or at its limit
  }
  if (!ended()) let_go();
}

namespace {

/// What the bodies returned and raised, by rank.
struct Outcome {
  explicit Outcome(int count)
      : returned(static_cast<std::size_t>(count)), raised(static_cast<std::size_t>(count)) {}
  std::vector<nb::object> returned;
  std::vector<std::exception_ptr> raised;

  void run(Transport& transport, nb::callable const& body) {
    auto const me = static_cast<std::size_t>(transport.group().rank());
    Back const back;
    try {
      auto const ranks = std::make_shared<Ranks>(transport);
      struct End {
        Ranks& ranks;
        ~End() { ranks.end(); }
      } const end{*ranks};
      returned[me] = body(nb::cast(ranks));
    } catch (abi::__forced_unwind&) {  // the interpreter went while the body was at work
      stay();
    } catch (...) {
      raised[me] = std::current_exception();
    }
  }
};

bool misses_another(std::exception_ptr const& raised) {
  try {
    std::rethrow_exception(raised);
  } catch (nb::python_error const& e) {
    nb::object const errors = nb::module_::import_("hostless.errors");
    return e.matches(errors.attr("PeerLostError")) || e.matches(errors.attr("AbortedError"));
  } catch (Error const& e) {
    return e.code() == ErrorCode::peer_lost || e.code() == ErrorCode::aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

nb::list run_threads(int count, nb::callable const& body) {
  Outcome outcome(count);
  std::exception_ptr failed;
  try {
    run_watched([&] {
      run_with_threads_transport(count, [&](Transport& transport) {
        outcome.run(transport, body);
        // So the others miss this one at once.
        if (outcome.raised[static_cast<std::size_t>(transport.group().rank())])
          throw Error(ErrorCode::peer_lost, "a function of run_threads has raised an exception.");
      });
    });
  } catch (Error const&) {
    failed = std::current_exception();
  }
  std::exception_ptr chosen;
  for (auto const& one : outcome.raised) {
    if (!one) continue;
    if (!chosen) chosen = one;
    if (misses_another(one)) continue;
    chosen = one;
    break;
  }
  if (chosen) std::rethrow_exception(chosen);
  if (failed) std::rethrow_exception(failed);
  nb::list all;
  for (nb::object const& one : outcome.returned) all.append(one);
  return all;
}

void bind_ranks(nb::module_& module) {
  nb::class_<Ranks>(module, "Ranks", "One rank's end of a transport.")
      .def_static("single", &Ranks::single)
      .def_static("of_mpi", &Ranks::of_mpi, nb::arg("vendor"), nb::arg("communicator"), nb::arg("by_reach"))
      .def(
          "agree",
          [](Ranks& self, std::optional<std::pair<std::string, std::string>> const& problem,
             std::string const& same) {
            std::optional<Error> mine;
            if (problem) mine.emplace(code_of(problem->first), problem->second);
            self.agree(mine, same);
          },
          nb::arg("problem").none(), nb::arg("same"))
      .def("common", &Ranks::common, nb::arg("mine"),
           "A number of all ranks that is not -2; -1 where they differ, or one has -1. Collective.")
      .def("barrier", &Ranks::barrier, "Waits for all ranks. Collective.")
      .def("close", &Ranks::close, nb::arg("leaving") = false)
      .def_prop_ro("ended", &Ranks::ended)
      .def_prop_ro("rank", &Ranks::rank, "The number of this rank, from 0 on.")
      .def_prop_ro("size", &Ranks::size, "How many ranks there are.");
  module.def("run_threads", run_threads, nb::arg("ranks"), nb::arg("body"));
}

}  // namespace hostless::python
