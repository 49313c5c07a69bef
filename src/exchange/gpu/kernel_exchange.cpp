#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "exchange/agreement.hpp"
#include "exchange/field_checks.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "exchange/kernel_duties.hpp"
#include "hostless/base/error.hpp"
#include "hostless/exchange/gpu_kernel_exchange.hpp"
#include "hostless/machine/nodes.hpp"
#include "transport/stream/limits.hpp"

namespace hostless {

struct GpuKernelExchange::Bound {
  Bound(Transport& over, ExchangePlan const& plan, KernelExchangeOptions const& options) {
    Group& group = over.group();
    check(over, plan, options);
    KernelShape shape{options.blocks, options.block_of_item, options.boundary_rows, true,
                      options.block_of_ghost};
    duties = kernel_duties(plan, group, shape, {options.has_sums, options.item_bytes});
    gpu::KernelProblem problem;
    problem.setup.device = options.device;
    problem.setup.rank = group.rank();
    problem.setup.ranks = group.size();
    problem.setup.processes = !over.capabilities().threads_as_ranks;
    problem.setup.first_s = options.limits.first_s;
    problem.setup.deadline_s = options.limits.later_s;
    problem.duties = &duties;
    problem.words = static_cast<int>(options.item_bytes / 8);
    problem.ghosts = plan.ghosts;
    if (plan.receive == 0) {
      problem.owned = static_cast<int>(plan.owned);
      problem.ghosts_below = static_cast<int>(plan.ghosts_below);
    }
    gpu::KernelContact contact;
    group.together([&] {
      window = gpu::exchange_library().kernel_window(problem);
      contact = window->contact();
    });
    auto const all = group.all_gather(contact);
    group.together([&] { window->connect(all); });
    group.barrier();  // nobody stores before all know each other
    device = options.device;
  }

  /// Everything that can be known before other ranks are asked.
  static void check(Transport& over, ExchangePlan const& plan, KernelExchangeOptions const& options) {
    Group& group = over.group();
    group.together([&] {
      require_limits(options.limits);
      int const devices = gpu::exchange_library().devices();
      if (options.device < 0 || options.device >= devices)
        throw Error(ErrorCode::usage, fmt::format("options.device: {} of {} GPUs", options.device, devices));
      if (group.size() > gpu::most_ranks)
        throw Error(ErrorCode::usage, fmt::format("{} ranks (kernels know of at most {}). Use GpuExchange.",
                                                  group.size(), gpu::most_ranks));
      if (plan.receive == 0 && plan.owned > std::numeric_limits<int>::max())
        throw Error(
            ErrorCode::usage,
            fmt::format("owned: {} items (kernels count them in 32 bits). Use more ranks.", plan.owned));
    });
    NodeMap const machines = find_machines(group);
    group.together([&] {
      if (machines.nodes() > 1)
        throw Error(ErrorCode::usage,
                    fmt::format("ranks on {} machines (kernels store into the memory of GPUs of one). "
                                "Use GpuExchange.",
                                machines.nodes()));
    });
    if (auto const other = first_difference(
            group, {static_cast<std::int64_t>(options.item_bytes), options.has_sums ? 1 : 0}))
      throw Error(
          ErrorCode::usage,
          fmt::format("{}: {} on rank 0 and {} on rank {} (it is the same everywhere). Pass the same.",
                      other->index == 0 ? "item_bytes" : "has_sums", other->of_first, other->value,
                      other->rank));
  }

  KernelDuties duties;
  std::unique_ptr<gpu::KernelWindow> window;
  int device = 0;
};

GpuKernelExchange::GpuKernelExchange(Transport& transport, ExchangePlan const& plan,
                                     KernelExchangeOptions const& options)
    : bound_(std::make_unique<Bound>(transport, plan, options)) {}
GpuKernelExchange::~GpuKernelExchange() = default;
kernel::KernelExchange const& GpuKernelExchange::view() const { return bound_->window->view(); }
bool GpuKernelExchange::lost() const { return bound_->window->lost(); }
int GpuKernelExchange::device() const { return bound_->device; }
std::int64_t GpuKernelExchange::bytes() const { return bound_->window->bytes(); }

}  // namespace hostless
