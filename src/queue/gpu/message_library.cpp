#include "queue/gpu/message_library.hpp"

#include "transport/stream/gpu_files.hpp"

namespace hostless::gpu {

MessageLibrary& message_library() {
  std::string problems;
  for (GpuFile const& file : gpu_files()) {
    std::string problem = file.problem;
    if (file.handle != nullptr) {
      auto* const open = reinterpret_cast<OpenMessages*>(function_of(file, open_messages_name));
      if (open != nullptr && open()->devices() > 0) return *open();
      problem = open == nullptr ? file.path + " has no messages." : "no GPU is visible.";
    }
    problems += "\n  " + file.vendor + ": " + problem;
  }
  throw Error(ErrorCode::environment,
              "no GPU can be used (a queue of the type peer, or a GPU's stream, was asked for). Use auto, "
              "threads or mpi, and no stream." +
                  problems);
}

}  // namespace hostless::gpu
