#include "hostless/exchange/gpu_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "exchange/field_checks.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "exchange/gpu/gpu_messages.hpp"
#include "exchange/peer_copies.hpp"
#include "hostless/machine/nodes.hpp"
#include "transport/stream/symmetric.hpp"

namespace hostless {
namespace {

/// What a rank carries by, and where it is.
struct Told {
  std::int32_t transport = 0, device = 0, machine = 0, copies = 0;
  char bus[32] = {};  ///< of the GPU in the machine
  bool shares_gpu_with(Told const& other) const {
    return machine == other.machine && std::strcmp(bus, other.bus) == 0;
  }
};

std::int64_t item_bytes(std::vector<Field> const& fields) {
  return std::accumulate(fields.begin(), fields.end(), std::int64_t{0}, [](std::int64_t sum, Field const& f) {
    return sum + static_cast<std::int64_t>(f.item_bytes);
  });
}

/// added: what items are added to what is received; or null.
/// Errors  usage  a field without bytes or memory, or whose memory no kernel of the device reaches
int device_of_fields(gpu::ExchangeLibrary const& library, ExchangePlan const& plan,
                     std::vector<Field> const& fields, gpu::AddedFields const* added, int wanted) {
  bool const receives = added == nullptr;
  if (wanted < -1 || wanted >= library.devices())
    throw Error(ErrorCode::usage, fmt::format("options.device: {} of {} GPUs", wanted, library.devices()));
  int device = wanted;
  if (fields.empty() && (plan.items_sent() > 0 || plan.ghosts > 0))
    throw Error(ErrorCode::usage, "no fields for a plan that moves items. Pass at least one.");
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (fields[f].item_bytes < 1 || fields[f].item_bytes > (std::size_t{1} << 20))
      throw Error(ErrorCode::usage,
                  fmt::format("fields[{}].item_bytes: {} (an item has 1 to 1,048,576 bytes)", f,
                              fields[f].item_bytes));
    auto const look = [&](void const* address, std::int64_t items, char const* what) {
      if (items == 0) return;
      int const found = address == nullptr ? -1 : library.device_of(address);
      if (found < 0)
        throw Error(
            ErrorCode::usage,
            fmt::format("fields[{}].{}: no memory of a GPU (kernels pack and unpack it). Use Exchange for "
                        "memory of the host.",
                        f, what));
      if (device < 0) device = found;
      if (device != found)
        throw Error(ErrorCode::usage,
                    fmt::format("fields[{}].{}: on GPU {}, where others are on GPU {} (a rank "
                                "has one). Use one GPU a rank.",
                                f, what, found, device));
    };
    look(fields[f].send, plan.owned, receives ? "send" : "ghosts");
    if (!receives) look(added->fields[f].owned, static_cast<std::int64_t>(added->sum.size()), "owned");
    if (receives) look(fields[f].receive, plan.ghosts, "receive");
    if (receives && plan.receive == 0 && fields[f].send != fields[f].receive)
      throw Error(
          ErrorCode::usage,
          fmt::format("fields[{}]: two arrays for a plan of one (its ghosts lie around the owned items). "
                      "Use Field::around, or a plan made with `apart`.",
                      f));
  }
  return std::max(device, 0);
}

// Where items that are received may lie as they come.
bool may_land(std::vector<Field> const& fields, bool receives) {
  constexpr std::uintptr_t number = sizeof(double);
  return fields.size() == 1 && fields[0].item_bytes % number == 0 &&
         (!receives || reinterpret_cast<std::uintptr_t>(fields[0].receive) % number == 0);
}

}  // namespace

namespace {

/// Where what goes to a rank lies together in one field.
void name_whole_parts(gpu::ExchangeProblem& problem) {
  if (problem.fields.size() != 1) return;
  Field const& field = problem.fields[0];
  constexpr std::uintptr_t number = sizeof(double);  // libraries move numbers, copy engines anything
  bool const are_numbers =
      reinterpret_cast<std::uintptr_t>(field.send) % number == 0 && field.item_bytes % number == 0;
  if (!are_numbers && !problem.setup.by_copy_engine) return;
  for (std::size_t k = 0; k < problem.rounds->size(); ++k) {
    MessageRound const& round = (*problem.rounds)[k];
    for (std::size_t p = 0; p < round.out.size(); ++p) {
      auto const first = static_cast<std::size_t>(round.out[p].first);
      auto const item = [&](std::int64_t i) { return round.from[first + static_cast<std::size_t>(i)]; };
      bool together = true;
      for (std::int64_t i = 0; i < round.out[p].items && together; ++i)
        together = item(i).staging == 0 && item(i).vector_offset == item(0).vector_offset + i;
      if (together)
        problem.setup.rounds[k].out[p].from =
            static_cast<std::byte const*>(field.send) +
            item(0).vector_offset * static_cast<std::int64_t>(field.item_bytes);
    }
  }
}

}  // namespace

struct GpuExchange::Bound {
  Bound(Transport& over, ExchangePlan const& plan, std::vector<Field> const& fields,
        gpu::AddedFields const* added, GpuExchangeOptions const& options);

  void agree(Transport& over, ExchangePlan const& plan, std::vector<Field> const& fields,
             gpu::AddedFields const* added, GpuExchangeOptions const& options);
  void describe_rounds(Transport& over, bool in_place);
  void connect(Transport& over);
  double limit_s() { return std::exchange(waited_before, true) ? limits.later_s : limits.first_s; }

  gpu::ExchangeLibrary* library = nullptr;
  ExchangePlan plan;
  GpuTransport transport;
  WaitLimits limits;
  gpu::ExchangeProblem problem;
  PeerCopies copies;
  std::unique_ptr<gpu::BoundExchange> exchange;
  std::unique_ptr<GpuMessages> messages;  // of its memory: they go first
  bool waited_before = false;
};

void GpuExchange::Bound::agree(Transport& over, ExchangePlan const& of, std::vector<Field> const& fields,
                               gpu::AddedFields const* added, GpuExchangeOptions const& options) {
  Group& group = over.group();
  Told mine;
  group.together([&] {
    transport = facts_of(options.transport).transport;
    library = &gpu::exchange_library();
    mine.device = device_of_fields(*library, of, fields, added, options.device);
    library->bus_of(mine.device).copy(mine.bus, sizeof mine.bus - 1);
    require_limits(limits);
    if (options.copy_engine && transport != GpuTransport::peer)
      throw Error(ErrorCode::usage,
                  fmt::format("options.copy_engine with GPU transport {} (it is for GPUs that reach each "
                              "other's memory). Use peer, or drop it.",
                              name(transport)));
    if (added == nullptr) require_apart(of, fields);
  });
  NodeMap const machines = find_machines(group);
  mine.transport = static_cast<std::int32_t>(transport);
  mine.copies = options.copy_engine ? 1 : 0;
  auto const me = static_cast<std::size_t>(group.rank());
  mine.machine = machines.node[me];
  auto const all = group.all_gather(mine);
  int here = 0, sharers = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].transport != all[0].transport)
      throw Error(
          ErrorCode::usage,
          fmt::format("GPU transport {} on rank 0 and {} on rank {} (it is one for all). Pass the same.",
                      name(static_cast<GpuTransport>(all[0].transport)),
                      name(static_cast<GpuTransport>(all[r].transport)), r));
    if (all[r].copies != all[0].copies)
      throw Error(ErrorCode::usage,
                  fmt::format("options.copy_engine on rank {} and not on rank {} (it is one "
                              "way for all). Pass the same.",
                              all[0].copies != 0 ? 0 : r, all[0].copies != 0 ? r : 0));
    if (all[r].machine != mine.machine) continue;
    ++here;
    if (all[r].shares_gpu_with(mine)) ++sharers;
  }
  require_same_sizes(group, fields);
  group.together([&] { check_gpu_transport(transport, over.capabilities(), group.size(), here); });
  problem.transport = transport;
  problem.setup.device = mine.device;
  problem.setup.rank = group.rank();
  problem.setup.ranks = group.size();
  problem.setup.sharers = static_cast<int>(group.max(sharers));
  problem.setup.processes = !over.capabilities().threads_as_ranks;
  problem.setup.by_copy_engine = options.copy_engine;
  problem.setup.purpose = -1;  // of no solve
  problem.setup.first_s = limits.first_s;
  problem.setup.deadline_s = limits.later_s;
}

void GpuExchange::Bound::describe_rounds(Transport& over, bool in_place) {
  Group& group = over.group();
  GpuTransportFacts const& facts = facts_of(transport);
  copies = peer_copies(plan, group, true);
  messages = std::make_unique<GpuMessages>(
      over, plan, copies,
      GpuMessages::Options{transport, static_cast<std::size_t>(item_bytes(problem.fields)), in_place, false,
                           limits, library->vendor()});
  problem.rounds = &messages->rounds();
  problem.setup.rounds = messages->stream_rounds();
  name_whole_parts(problem);
  problem.setup.host = messages->host();
  problem.setup.node = messages->node();
  problem.setup.speaks = messages->speaks();
  problem.staging = messages->is_staged() ? 0 : copies.staging;
  problem.ghosts = plan.ghosts;
  if (facts.symmetric_memory)
    problem.setup.symmetric = gpu::take_symmetric_memory(
        group, [&] { return library->symmetric_offer(transport, problem.setup); },
        [&](auto const& offers) { return library->symmetric_memory(transport, problem.setup, offers); });
}

void GpuExchange::Bound::connect(Transport& over) {
  Group& group = over.group();
  gpu::StreamContact contact;
  auto const tell = [&] {
    group.together([&] { contact = exchange->contact(); });
    return group.all_gather(contact);
  };
  auto contacts = tell();
  if (facts_of(transport).stays_connected && !have_met(contacts)) contacts = tell();  // a new place
  messages->bind(exchange->message_buffers());
  group.together([&] { exchange->connect(contacts); });
  group.barrier();  // nobody stores before all know each other
}

GpuExchange::Bound::Bound(Transport& over, ExchangePlan const& of, std::vector<Field> const& fields,
                          gpu::AddedFields const* added, GpuExchangeOptions const& options)
    : plan(of), transport(options.transport), limits(options.limits) {
  agree(over, plan, fields, added, options);
  problem.fields = fields;
  problem.added = added;
  describe_rounds(over, may_land(fields, added == nullptr));
  over.group().together([&] { exchange = library->bind(problem); });
  problem.added = nullptr;  // the caller's
  connect(over);
}

namespace {

std::vector<Field> sent_fields(std::vector<SumField> const& fields) {
  std::vector<Field> all;
  for (SumField const& field : fields)
    all.push_back({field.ghosts, nullptr, bytes_of(field.element) * static_cast<std::size_t>(field.values)});
  return all;
}

}  // namespace

GpuExchange::GpuExchange(Transport& transport, ExchangePlan const& plan, std::vector<Field> const& fields,
                         GpuExchangeOptions const& options)
    : bound_(std::make_unique<Bound>(transport, plan, fields, nullptr, options)) {}

GpuExchange::GpuExchange(Transport& transport, ReversePlan const& plan, std::vector<SumField> const& fields,
                         GpuExchangeOptions const& options) {
  Group& group = transport.group();
  gpu::AddedFields const added{fields, plan.sum, plan.owned};
  group.together([&] { require_room(plan, fields); });
  require_elements(group, fields);
  bound_ = std::make_unique<Bound>(transport, plan.exchange, sent_fields(fields), &added, options);
}

GpuExchange::~GpuExchange() = default;
void GpuExchange::enqueue(void* stream) { bound_->exchange->enqueue(stream); }
void GpuExchange::start(void* stream) { bound_->exchange->start(stream); }
void GpuExchange::finish(void* stream) { bound_->exchange->finish(stream); }
bool GpuExchange::test() { return bound_->exchange->test(); }
bool GpuExchange::wait() {
  if (bound_->exchange->wait(bound_->limit_s())) return true;
  leave();
  return false;
}
bool GpuExchange::lost() const { return bound_->exchange->lost(); }
void GpuExchange::leave() noexcept {
  bound_->exchange->leave();
  bound_->messages->leave();
}
GpuTransport GpuExchange::transport() const { return bound_->transport; }
bool GpuExchange::may_be_recorded() const { return bound_->exchange->may_be_recorded(); }
int GpuExchange::device() const { return bound_->problem.setup.device; }
std::string GpuExchange::describe() const { return bound_->exchange->describe(); }
std::int64_t GpuExchange::bytes() const { return bound_->exchange->bytes(); }

}  // namespace hostless
