#include "preload/communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "preload/agree.hpp"
#include "preload/taken_or.hpp"

namespace hostless::preload {
namespace {

// What ranks say to each other before anything is carried.
constexpr std::uint64_t edges_are_single = 1, may_carry = 2, wants_plan = std::uint64_t{1} << 62;

std::uint64_t hash_of_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  Hash hash;
  for (char const letter : name) hash.add(letter);
  return hash.value();
}

/// Calls of a communicator at which ranks ask each other whether to carry: each of the first 16, then each
/// second power. So what they ask costs next to nothing however often sizes change.
bool is_asked(std::int64_t call) {
  constexpr std::int64_t each_of_the_first = 16;
  return call <= each_of_the_first || (call & (call - 1)) == 0;
}

}  // namespace

int fail(MPI_Comm comm, std::string const& text) {
  report().failed(text);
  std::fprintf(stderr, "hostless preload: %s\n", text.c_str());  // MPI's own words for it say little
  PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

std::int64_t Sizes::longest() const {
  std::int64_t most = 0;
  for (auto const* list : {&sent, &received})
    for (std::int64_t const bytes : *list) most = std::max(most, bytes);
  return most;
}
bool Sizes::is_negative() const {
  auto const below = [](std::int64_t bytes) { return bytes < 0; };
  return std::any_of(sent.begin(), sent.end(), below) || std::any_of(received.begin(), received.end(), below);
}
std::uint64_t Sizes::hash() const {
  Hash hash;
  hash.add(static_cast<std::int64_t>(operation));
  hash.add(sent);
  hash.add(received);
  return hash.value();
}

Communicator::Communicator(MPI_Comm comm, Neighbours neighbours) : neighbours_(std::move(neighbours)) {
  never_ = may_not(comm);
  if (never_) return;
  Settings const& mine = settings();
  std::uint64_t const bits =
      (neighbours_.repeats() ? 0 : edges_are_single) | (mine.on && packs_bytes() ? may_carry : 0);
  Agreed const agreed = agree(comm, bits, {mine.fingerprint()});
  repeats_ = (agreed.bits & edges_are_single) == 0;
  if (!agreed.same)
    never_ = Reason::settings_differ;
  else if ((agreed.bits & may_carry) == 0)
    never_ = Reason::off;
  if (never_ || !mine.automatic) return;
  int ranks = 1;
  PMPI_Comm_size(comm, &ranks);
  bool const one =
      mine.ranks_per_node > 0 ? ranks <= mine.ranks_per_node : agree(comm, 0, {hash_of_host()}).same;
  if (one) never_ = Reason::one_node;
}

/// What each rank knows by itself to hold for all.
std::optional<Reason> Communicator::may_not(MPI_Comm comm) const {
  int ranks = 1;
  PMPI_Comm_size(comm, &ranks);
  if (ranks == 1) return Reason::one_rank;
  return {};
}

Sizes Communicator::sizes_of(Call const& call, Items const& send, Items const& receive) const {
  Sizes made;
  made.operation = call.operation;
  // Of equal blocks one stands for all: so a rank without neighbours says it too.
  std::size_t const out =
      gathers(call.operation) || is_equal(call.operation) ? 1 : neighbours_.destinations.size();
  std::size_t const in = is_equal(call.operation) ? 1 : neighbours_.sources.size();
  for (std::size_t k = 0; k < out; ++k) made.sent.push_back(call.send.count(k) * send.bytes);
  for (std::size_t k = 0; k < in; ++k) made.received.push_back(call.receive.count(k) * receive.bytes);
  return made;
}

Taken* Communicator::find(Sizes const& sizes) {
  for (auto const& one : taken_)
    if (one->sizes == sizes) return one.get();
  return nullptr;
}

/// Where counts are fixed: what became of the first ones.
Taken* Communicator::first_of(Operation operation) {
  for (auto const& one : taken_)
    if (one->sizes.operation == operation) return one.get();
  return nullptr;
}

std::uint64_t Communicator::fitting(Sizes const& sizes) const {
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k < taken_.size(); ++k)
    if (taken_[k]->sizes == sizes) bits |= std::uint64_t{1} << k;
  return bits;
}

/// Counts the call; true when it has come often enough with these sizes.
bool Communicator::wants(Sizes const& sizes) {
  if (seen_.size() >= most_seen) seen_.clear();
  bool const has_room = taken_.size() < most_sizes, is_short = sizes.longest() <= INT_MAX,
             is_some = !is_equal(sizes.operation) || sizes.longest() > 0;
  return seen_[sizes.hash()]++ >= settings().after && has_room && is_short && is_some;
}

/// Why nothing was made for these sizes: what this rank knows of it.
Reason Communicator::not_yet(Sizes const& sizes) const {
  if (sizes.longest() > INT_MAX) return Reason::too_long;
  if (is_equal(sizes.operation) && sizes.longest() == 0) return Reason::no_bytes;
  return taken_.size() < most_sizes ? Reason::seldom : Reason::many;
}

/// Of equal blocks, or of counts that are fixed: whoever has had this size carries, which holds for all then.
std::optional<Reason> Communicator::choose_agreed(Call const& call, Sizes const& sizes, Taken*& chosen) {
  chosen = find(sizes);
  if (chosen != nullptr) return chosen->never;
  bool const is_wanted = wants(sizes);
  if (!is_asked(++asked_)) return not_yet(sizes);
  std::vector<std::uint64_t> numbers{static_cast<std::uint64_t>(sizes.operation)};
  if (is_equal(call.operation)) {
    numbers.push_back(static_cast<std::uint64_t>(sizes.sent[0]));
    numbers.push_back(static_cast<std::uint64_t>(sizes.received[0]));
  }
  Agreed const agreed = agree(call.comm, is_wanted ? wants_plan : 0, numbers);
  if (!agreed.same) return Reason::unequal;
  if ((agreed.bits & wants_plan) == 0) return not_yet(sizes);
  chosen = add(call.comm, sizes);
  return chosen->never;
}

/// All ranks say which of what they have carried fits the counts that they have now.
std::optional<Reason> Communicator::choose_checked(Call const& call, Sizes const& sizes, Taken*& chosen) {
  std::uint64_t const mine = fitting(sizes);
  bool const is_wanted = wants(sizes);
  std::uint64_t const all = agree(call.comm, mine | (is_wanted ? wants_plan : 0)).bits;
  if (std::uint64_t const fit = all & (wants_plan - 1); fit != 0) {
    std::size_t first = 0;
    while ((fit >> first & 1u) == 0) ++first;
    chosen = taken_[first].get();
  } else if ((all & wants_plan) != 0) {
    chosen = add(call.comm, sizes);
  } else {
    return not_yet(sizes);
  }
  return chosen->never;
}

/// Of counts that are fixed. A rank whose counts have changed all the same can neither carry nor not.
std::optional<Reason> Communicator::choose_fixed(Call const& call, Sizes const& sizes, Taken*& chosen) {
  Taken* const first = first_of(call.operation);
  if (first == nullptr) return choose_agreed(call, sizes, chosen);
  if (first->never) return first->never;
  if (first->sizes == sizes) chosen = first;
  return {};
}

std::optional<Reason> Communicator::choose(Call const& call, Sizes const& sizes, Taken*& chosen) {
  if (sizes.is_negative()) return Reason::mpi_refuses;
  if (repeats_ && !gathers(call.operation)) return Reason::edge_twice;
  if (is_equal(call.operation)) return choose_agreed(call, sizes, chosen);
  if (settings().counts == Counts::checked) return choose_checked(call, sizes, chosen);
  if (settings().counts == Counts::fixed) return choose_fixed(call, sizes, chosen);
  return Reason::counts_unknown;
}

void Communicator::leave() {
  for (auto const& one : taken_)
    if (one->exchange) one->exchange->leave();
  never_ = Reason::set_up_failed;
}

std::optional<Reason> Communicator::carry(Call const& call, int& code) {
  if (never_) return never_;
  Items const send = items_of(call.send.type), receive = items_of(call.receive.type);
  Sizes const sizes = sizes_of(call, send, receive);
  Taken* chosen = nullptr;
  if (auto const reason = choose(call, sizes, chosen)) return reason;
  if (chosen == nullptr) {
    leave();
    code =
        fail(call.comm, std::string(call.name) +
                            ": counts have changed on this rank (HOSTLESS_PRELOAD_COUNTS says that they are "
                            "fixed). Set it to checked.");
    return {};
  }
  code = move(call, send, receive, *chosen);
  if (code == MPI_SUCCESS) report().taken(call.name, chosen->route, chosen->bytes);
  return {};
}

namespace {

std::atomic<bool> mpi_ends{false};

int forget_one(MPI_Comm, int, void* communicator, void*) {
  if (!mpi_ends) delete static_cast<Communicator*>(communicator);
  return MPI_SUCCESS;
}
int key_of_communicators() {
  static int const key = [] {
    int made = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_one, &made, nullptr);
    return made;
  }();
  return key;
}

}  // namespace

Communicator* communicator_of(MPI_Comm comm) {
  void* found = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(comm, key_of_communicators(), static_cast<void*>(&found), &is_there);
  if (is_there != 0) return static_cast<Communicator*>(found);
  auto neighbours = neighbours_of(comm);
  if (!neighbours) return nullptr;
  auto* const made = new Communicator(comm, std::move(*neighbours));
  PMPI_Comm_set_attr(comm, key_of_communicators(), made);
  return made;
}

void forget_communicators() { mpi_ends = true; }

void write_report() {
  int rank = 0, ranks = 1, length = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> version{};
  PMPI_Get_library_version(version.data(), &length);
  std::string text = version.data();  // "Open MPI v4.1.4, package: ..."; "MPICH Version:\t4.0.2\n..."
  text.resize(std::min(text.find_first_of(",\n"), text.size()));
  if (auto const colon = text.find(":\t"); colon != std::string::npos) text.replace(colon, 2, " ");
  report().write(text, rank, ranks);
}

}  // namespace hostless::preload
