// What the GPU library answers to those who have loaded it.
#include "base/variable.hpp"
#include "device/on_device.hpp"
#include "operate/gpu/caller_arrays.hpp"
#include "operate/gpu/caller_rows.hpp"
#include "operate/gpu/generate.impl.hpp"
#include "operate/gpu/host_copy.hpp"
#include "solve/gpu/bound_solve.hpp"
#include "solve/gpu/instance.hpp"
#include "transport/memory/paths.hpp"
#include "transport/stream/gpu_files.hpp"
#include "transport/stream/stream_transports.hpp"

namespace hostless::gpu {

bool guarded() { return is_one("HOSTLESS_GPU_GUARD"); }

namespace {

class ThisLibrary final : public Library {
 public:
  std::string describe() const override {
    int runtime = 0, driver = 0;
    (void)HOSTLESS_GPU(RuntimeGetVersion)(&runtime);
    (void)HOSTLESS_GPU(DriverGetVersion)(&driver);
    return std::string(HOSTLESS_GPU_NAME) + " runtime " + std::to_string(runtime) + ", driver for " +
           std::to_string(driver);
  }
  int devices() const override { return visible_gpus(); }
  DeviceFacts facts(int device) const override {
    HOSTLESS_DEVICE_PROPERTIES properties{};
    check(HOSTLESS_GPU(GetDeviceProperties)(&properties, device), "asking a GPU what it is");
    check(HOSTLESS_GPU(SetDevice)(device), "choosing a GPU");
    std::size_t free_now = 0, total = 0;
    check(HOSTLESS_GPU(MemGetInfo)(&free_now, &total), "asking a GPU for its memory");
    DeviceFacts facts;
    facts.name = properties.name;
    facts.memory_bytes = static_cast<std::int64_t>(total);
    facts.free_bytes = static_cast<std::int64_t>(free_now);
    facts.l2_bytes = properties.l2CacheSize;
    facts.multiprocessors = properties.multiProcessorCount;
    facts.shared_bytes_a_block = find_instance({}, 1).shared_bytes(device, Ranks::one);
    return facts;
  }
  std::vector<PathFacts> prove_paths() const override { return gpu::prove_paths(devices()); }
  PingPongFacts ping_pong(PingPongRequest const& request) const override { return gpu::ping_pong(request); }
  std::vector<TransportFacts> transports() const override { return library_transports(); }
  SymmetricOffer symmetric_offer(Problem const& problem) const override {
    return gpu::symmetric_offer(problem.transport, stream_setup(problem),
                                is_by_stream(problem) ? 0 : window_bytes(problem));
  }
  std::shared_ptr<SymmetricMemory> symmetric_memory(Problem const& problem,
                                                    std::vector<SymmetricOffer> const& all) const override {
    return gpu::symmetric_memory(problem.transport, stream_setup(problem), all);
  }
  std::unique_ptr<BoundSolve> bind(Problem const& problem) const override {
    Range const range("hostless: bind");
    return make_bound_solve(problem);
  }
  int device_of(void const* address) const override { return gpu::device_of(address); }
  std::shared_ptr<GpuMoment const> moment(int device, std::uintptr_t stream) const override {
    return gpu::moment(device, stream);
  }
  std::int64_t free_bytes(int device) const override { return gpu::free_bytes(device); }
  std::shared_ptr<void> copy_of_host(void const* from, std::size_t bytes, int device,
                                     int threads) const override {
    return gpu::copy_of_host(from, bytes, device, threads);
  }
  MirrorFacts compare_with_mirror(GpuRows const& rows) const override {
    return gpu::compare_with_mirror(rows);
  }
  PatternScan const& pattern_scan() const override { return pattern_scan_; }
  Copied copied() const override {
    return {copied_bytes.to_gpu.load(), copied_bytes.to_host.load(), copied_bytes.between_gpus.load()};
  }

 private:
  CallerPatternScan pattern_scan_;
};

}  // namespace
}  // namespace hostless::gpu

#define HOSTLESS_ENTRY extern "C" __attribute__((visibility("default")))

HOSTLESS_ENTRY int hostless_gpu_interface_version() { return hostless::gpu::interface_version; }
HOSTLESS_ENTRY hostless::gpu::Library* hostless_gpu_open() {
  static hostless::gpu::ThisLibrary library;
  return &library;
}
