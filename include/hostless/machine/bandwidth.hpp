#pragma once

#include <cstdint>

namespace hostless {

/// Bytes per second that `threads` threads read from memory together, each summing its own part of one array.
///
/// The array is four times the last-level caches (64 MiB at least), is touched first by the thread that reads
/// it, and its sum is compared with the known one, so no read can be left out. This is the ceiling of a
/// sparse matrix-vector product, which reads far more than it writes. Local; takes about `seconds` after the
/// first touch, and allocates that array only. at_once: how many processes measure at the same time, each with as much of
/// the array. Errors  usage        threads < 1, seconds <= 0 or at_once < 1
///         environment  no memory for the array, or a thread cannot be started, or memory returned wrong
///         values
double measure_read_bandwidth(int threads, double seconds, int at_once = 1);

/// As measure_read_bandwidth, for a[i] = b[i] + s c[i]; counts 24 bytes an element, as STREAM does (the line
/// that a store first reads is not counted).
double measure_triad_bandwidth(int threads, double seconds);

/// Bytes of the arrays that both measurements walk through, for a machine with these last-level caches.
constexpr std::int64_t bandwidth_bytes(std::int64_t last_level_bytes) {
  constexpr std::int64_t least = std::int64_t{64} << 20;
  return 4 * last_level_bytes > least ? 4 * last_level_bytes : least;
}

}  // namespace hostless
