#pragma once
// What a GPU has recorded as spans of one clock, of which solve/clock_trace.hpp makes times.

#include "solve/clock_trace.hpp"
#include "solve/gpu_solver/gpu_library.hpp"

namespace hostless::gpu {

/// ranks: of the solve; of one nothing communicates.
///
/// Of a persistent kernel: a block computes from the beginning of a phase until its threads are together, and
/// while the decision is taken; communication is, barrier by barrier, from the moment at which the first
/// block of this rank was together, and its words left, until the last one had seen the words of all.
/// Multiprocessors have clocks of their own: each is moved so that its block meets the others when the first
/// block does, by the median over all barriers, which is true to the time between two looks at a word.
///
/// Of stamps: what lies between Mark::computes and Mark::computed, where the gate was open; between
/// Mark::departs and Mark::arrived. Where kernels themselves store to other ranks and wait for them there is
/// no such mark, so that all of it counts as computing.
///
/// The first iterations, which fill caches, are left out, and so is the last one, which may not be whole.
ClockTrace clock_trace(Trace const& trace, int ranks);

}  // namespace hostless::gpu
