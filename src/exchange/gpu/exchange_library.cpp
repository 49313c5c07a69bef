#include "exchange/gpu/exchange_library.hpp"

#include "hostless/base/error.hpp"
#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {

ExchangeLibrary& exchange_library() {
  std::string problems;
  for (GpuFile const& file : gpu_files()) {
    if (auto* const open = reinterpret_cast<OpenExchanges*>(function_of(file, open_exchanges_name))) {
      ExchangeLibrary* const library = open();
      if (library->devices() > 0) return *library;
    }
    problems += "\n  " + file.vendor + ": " + (file.problem.empty() ? "no GPU is visible." : file.problem);
  }
  throw Error(ErrorCode::environment,
              "no GPU can be used (an exchange between GPUs was asked for). Use Exchange." + problems);
}

}  // namespace hostless::gpu
