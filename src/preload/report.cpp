#include "preload/report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/counted.hpp"

namespace hostless::preload {

char const* words(Reason reason) {
  switch (reason) {
    case Reason::off:
      return "nothing is to be carried";
    case Reason::settings_differ:
      return "HOSTLESS_PRELOAD_... differ between ranks";
    case Reason::mpi_refuses:
      return "arguments that MPI refuses, or no topology";
    case Reason::one_rank:
      return "a communicator of one rank";
    case Reason::one_node:
      return "all ranks are on one node";
    case Reason::no_gain:
      return "no route crosses fewer borders of nodes";
    case Reason::edge_twice:
      return "a neighbour occurs twice, and MPI has an order of its own";
    case Reason::counts_unknown:
      return "counts may change (HOSTLESS_PRELOAD_COUNTS)";
    case Reason::seldom:
      return "not often enough yet";
    case Reason::no_bytes:
      return "no bytes";
    case Reason::too_long:
      return "a block of 2 GB or more";
    case Reason::unequal:
      return "blocks of ranks do not fit together";
    case Reason::many:
      return "more sizes than are kept of a communicator";
    case Reason::form:
      return "each block has a type of its own";
    case Reason::nonblocking:
      return "its start may wait for nobody";
    case Reason::persistent:
      return "between start and wait nobody moves it on";
    case Reason::set_up_failed:
      return "the set-up failed";
  }
  return "";
}

void Report::taken(char const* call, char const* route, std::int64_t bytes) {
  std::lock_guard const lock(mutex_);
  Taken& sums = taken_[{call, route}];
  ++sums.calls;
  sums.bytes += bytes;
}
void Report::handed_on(char const* call, Reason reason) {
  std::lock_guard const lock(mutex_);
  ++handed_on_[{call, reason}];
}
void Report::set_up(double seconds) {
  std::lock_guard const lock(mutex_);
  ++set_ups_;
  seconds_ += seconds;
}
void Report::failed(std::string const& text) {
  std::lock_guard const lock(mutex_);
  if (failure_.empty()) failure_ = text;
}

std::string Report::text(std::string const& mpi, int rank, int ranks) const {
  std::lock_guard const lock(mutex_);
  std::int64_t taken = 0, handed_on = 0;
  for (auto const& [of, sums] : taken_) taken += sums.calls;
  for (auto const& [of, calls] : handed_on_) handed_on += calls;
  std::string all = fmt::format("hostless preload: {}, rank {} of {}: {} carried, {} handed on\n", mpi, rank,
                                ranks, counted(taken, "call"), handed_on);
  if (!settings().problem.empty()) all += "  " + settings().problem + "\n";
  for (std::string const& one : settings().unknown) all += "  " + one + "\n";
  for (auto const& [of, sums] : taken_)
    all += fmt::format("  carried {} by {}: {}, {} sent\n", std::get<0>(of), std::get<1>(of),
                       counted(sums.calls, "call"), counted(sums.bytes, "byte"));
  for (auto const& [of, calls] : handed_on_)
    all += fmt::format("  handed on {}: {} ({})\n", std::get<0>(of), counted(calls, "call"),
                       words(std::get<1>(of)));
  if (set_ups_ > 0) all += fmt::format("  {}, {:.6f} s\n", counted(set_ups_, "set-up"), seconds_);
  if (!failure_.empty()) all += "  first failure: " + failure_ + "\n";
  return all;
}

void Report::write(std::string const& mpi, int rank, int ranks) {
  std::string file = settings().report;
  std::size_t const number = file.find("%r");
  bool const mine = rank == 0 || (file != "stderr" && number != std::string::npos);
  {
    std::lock_guard const lock(mutex_);
    if (written_) return;
    written_ = true;
  }
  if (rank == 0 && file != "stderr") {
    if (!settings().problem.empty())
      std::fprintf(stderr, "hostless preload: %s\n", settings().problem.c_str());
    for (std::string const& one : settings().unknown)
      std::fprintf(stderr, "hostless preload: %s\n", one.c_str());
  }
  if (file.empty() || !mine) return;
  if (number != std::string::npos) file.replace(number, 2, std::to_string(rank));
  std::string const all = text(mpi, rank, ranks);
  // bounded: a file that the user names
  std::FILE* const to = file == "stderr" ? stderr : std::fopen(file.c_str(), "w");
  bool const is_written = to != nullptr && std::fwrite(all.data(), 1, all.size(), to) == all.size();
  bool const is_closed = to == nullptr || to == stderr || std::fclose(to) == 0;
  if (!is_written || !is_closed)
    std::fprintf(
        stderr,
        "hostless preload: %s: %s (the report is lost). Set HOSTLESS_PRELOAD_REPORT to stderr or a file.\n",
        file.c_str(), std::strerror(errno));
}

Report& report() {
  static Report* const all = new Report;  // threads may still count when the process ends
  return *all;
}

}  // namespace hostless::preload
