#pragma once

#include <memory>

#include "queue/gpu/message_library.hpp"

namespace hostless::gpu {

/// Of the GPU in use.
std::unique_ptr<StreamBench> make_stream_bench(int device);

}  // namespace hostless::gpu
