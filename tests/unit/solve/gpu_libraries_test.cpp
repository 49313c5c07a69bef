// The libraries with the kernels can be loaded and fit to this program, on machines without a GPU too.
// HOSTLESS_COMPILED_<vendor>: the file that this build makes, or empty without a compiler.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "solve/gpu_solver/gpu_library.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {
namespace {

struct Vendor {
  std::string name, compiler, file, runtime;
};
Vendor const vendors[] = {{"cuda", "nvcc", HOSTLESS_COMPILED_CUDA, "libcuda"},
                          {"hip", "hipcc", HOSTLESS_COMPILED_HIP, "libamdhip64"}};

struct Unload {
  void operator()(void* library) const { dlclose(library); }
};

class GpuLibraries : public testing::TestWithParam<Vendor> {
 protected:
  void SetUp() override {
    if (GetParam().file.empty())
      GTEST_SKIP() << "not compiled: no usable " << GetParam().compiler
                   << " was found when this was configured, or HOSTLESS_GPU is off";
    library_.reset(dlopen(GetParam().file.c_str(), RTLD_NOW | RTLD_LOCAL));
    char const* const problem = library_ == nullptr ? dlerror() : "";
    if (std::string(problem).find(GetParam().runtime) != std::string::npos)
      GTEST_SKIP() << "the vendor's run-time library is not installed: " << problem;
    ASSERT_NE(library_, nullptr) << problem;
  }
  std::unique_ptr<void, Unload> library_;
};

TEST_P(GpuLibraries, SpeaksTheInterfaceOfThisProgram) {
  auto* const version = reinterpret_cast<InterfaceVersion*>(dlsym(library_.get(), interface_version_name));
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(version(), interface_version);
  ASSERT_NE(dlsym(library_.get(), open_name), nullptr);
}

// Whatever is not visible may clash with the program's own, or with the other vendor's.
TEST_P(GpuLibraries, ShowsOnlyItsTwoEntries) {
  EXPECT_EQ(dlsym(library_.get(), "_ZN8hostless3gpu7guardedEv"), nullptr);
}

TEST_P(GpuLibraries, IsFoundAndSaysWhetherThereIsAGpu) {
  for (Found const& found : libraries()) {
    if (found.vendor != GetParam().name) continue;
    ASSERT_NE(found.library, nullptr) << found.problem;
    EXPECT_FALSE(found.library->describe().empty());
    if (found.library->devices() == 0) {
      EXPECT_NE(found.problem.find("no GPU is visible"), std::string::npos) << found.problem;
    } else {
      EXPECT_EQ(found.problem, "");
      EXPECT_GT(found.library->facts(0).multiprocessors, 0);
    }
    return;
  }
  FAIL() << GetParam().name << " is not asked for";
}

INSTANTIATE_TEST_SUITE_P(Vendors, GpuLibraries, testing::ValuesIn(vendors),
                         [](auto const& one) { return one.param.name; });

}  // namespace
}  // namespace hostless::gpu
