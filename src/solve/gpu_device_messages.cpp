#include "solve/gpu_device_messages.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/variable.hpp"
#include "hostless/base/wait.hpp"

namespace hostless::gpu {
namespace {

template <class Function>
Function* loaded(char const* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));  // plugins of MPI are loaded for all
}

}  // namespace

MpiDeviceMemory ask_mpi_for_device_memory(std::string const& vendor) {
  bool const is_cuda = vendor == "cuda";
  std::string const query = is_cuda ? "MPIX_Query_cuda_support" : "MPIX_Query_rocm_support";
  auto* const of_open_mpi = loaded<int()>(query.c_str());
  if (of_open_mpi != nullptr && of_open_mpi() == 1) return {true, query + " says so"};
  auto* const of_mpich = loaded<int(int, int*)>("MPIX_GPU_query_support");
  int const kind = is_cuda ? 0 : 2;  // as MPICH numbers them
  int taken = 0;
  if (of_mpich != nullptr && of_mpich(kind, &taken) == 0 && taken != 0)
    return {true, "MPIX_GPU_query_support says so"};
  for (char const* variable :
       {"MPICH_GPU_SUPPORT_ENABLED", "MV2_USE_CUDA", "MV2_USE_ROCM", "HOSTLESS_MPI_DEVICE_MEMORY"})
    if (is_one(variable)) return {true, std::string(variable) + " is 1"};
  if (of_open_mpi != nullptr) return {false, query + " says no"};
  if (of_mpich != nullptr) return {false, "MPIX_GPU_query_support says no"};
  return {false, "this MPI has no " + query + " and no MPIX_GPU_query_support"};
}

DeviceMessages::DeviceMessages(Transport& transport, std::vector<MessageLevel> const& levels,
                               WaitLimits limits)
    : transport_(transport), messages_(levels), limits_(limits) {
  calls_.exchange = [this](int level) { return exchange(level); };
  calls_.gather = [this](double const* mine, int count, double* all) { return gather(mine, count, all); };
}

void DeviceMessages::ask(std::string const& vendor) {
  MpiDeviceMemory const answer = ask_mpi_for_device_memory(vendor);
  if (!answer.taken)
    throw Error(ErrorCode::environment,
                fmt::format("GPU transport mpi with an MPI that takes no memory of GPUs ({}). Use "
                            "--gpu-transport host, which stages it; or set HOSTLESS_MPI_DEVICE_MEMORY=1 "
                            "where its UCX does.",
                            answer.what));
  calls_.library = answer.what;
}

void DeviceMessages::bind(std::vector<std::pair<double const*, double*>> const& of_level) {
  int const rank = transport_.group().rank(), ranks = transport_.group().size();
  Binding binding;
  binding.gather_width = widest_sum + 1;
  levels_.assign(messages_.size(), {});
  for (std::size_t k = 0; k < messages_.size(); ++k) {
    auto const id = [&](int source, int target) {
      return (static_cast<int>(k) * ranks + source) * ranks + target;
    };
    auto const bytes = [](MessagePart const& part) {
      return sizeof(double) * static_cast<std::size_t>(part.items);
    };
    for (MessagePart const& part : messages_[k].out) {
      if (part.rank == rank) continue;  // the GPU copies it
      levels_[k].out.push_back(static_cast<int>(binding.out.size()));
      binding.out.push_back({id(rank, part.rank), part.rank,
                             reinterpret_cast<std::byte const*>(of_level[k].first + part.first),
                             bytes(part)});
    }
    for (MessagePart const& part : messages_[k].in) {
      if (part.rank == rank) continue;
      levels_[k].in.push_back(static_cast<int>(binding.in.size()));
      binding.in.push_back({id(part.rank, rank), part.rank,
                            reinterpret_cast<std::byte*>(of_level[k].second + part.first), bytes(part)});
    }
  }
  endpoint_.reset();  // what it holds goes first
  endpoint_ = transport_.bind(binding);
  epoch_ = 0;  // a lost rank has counted differently
  is_first_ = true;
  is_lost_ = false;
}

template <class Ready>
bool DeviceMessages::wait(Ready const& ready) {
  if (is_lost_) return false;
  Deadline const deadline = Deadline::after(is_first_ ? limits_.first_s : limits_.later_s);
  is_first_ = false;
  if (wait_for(
          ready, [&] { return endpoint_->peer_left(); }, deadline) == Waited::done)
    return true;
  is_lost_ = true;
  endpoint_->leave();
  return false;
}

bool DeviceMessages::exchange(int level) {
  if (is_lost_) return false;
  Level const& here = levels_[static_cast<std::size_t>(level)];
  if (level == 0) ++epoch_;
  for (int index : here.in) endpoint_->receive(index, epoch_);
  for (int index : here.out) endpoint_->send(index, epoch_);
  return wait([&] {
    bool done = true;
    for (int index : here.in) done = endpoint_->received(index) && done;
    for (int index : here.out) done = endpoint_->sent(index) && done;
    return done;
  });
}

bool DeviceMessages::gather(double const* mine, int count, double* all) {
  if (is_lost_) return false;
  auto const width = static_cast<std::size_t>(count);
  endpoint_->gather({mine, width});
  std::span<double> const parts(all, width * static_cast<std::size_t>(transport_.group().size()));
  return wait([&] { return endpoint_->gathered(parts); });
}

}  // namespace hostless::gpu
