#pragma once
// What the runs on GPUs recorded, as a file for people: a Chrome trace.

#include <string>

#include "hostless/transport/group.hpp"
#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// Rank 0 writes what all ranks recorded; a process of the trace is a rank, a thread a block, or of a run
/// phase by phase 0 what computes and 1 what travels.
/// together  collective, and all ranks hear whether it was written; else, where ranks were lost, each is for
///           itself and rank 0 writes its own
/// Errors  environment  the file cannot be written
void write_trace(Group& group, std::string const& path, Trace const& trace, bool together);

}  // namespace hostless::gpu
