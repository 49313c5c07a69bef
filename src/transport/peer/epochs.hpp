#pragma once
// Epochs, and flagged words that bear them: what decides whether a number has arrived. Plain functions, which
// tests/unit/run/protocol_exploration_test.cpp tries with every order of stores and loads.

#include "device/runtime.hpp"

namespace hostless::gpu {

constexpr std::uint32_t poison = 0x80000000u;

/// Epochs have 31 bits and alternate their parity, also where they begin again.
HOSTLESS_HOST_DEVICE std::uint32_t next_epoch(std::uint32_t epoch) {
  return epoch + 1 == poison ? 2 : epoch + 1;
}
/// Which of two buffers an epoch has.
HOSTLESS_HOST_DEVICE int parity_of(std::uint32_t epoch) { return static_cast<int>(epoch & 1u); }

HOSTLESS_HOST_DEVICE FlaggedWord flagged_word_of(std::uint64_t bits, std::uint32_t epoch) {
  return {{static_cast<std::uint32_t>(bits), epoch, static_cast<std::uint32_t>(bits >> 32), epoch}};
}
HOSTLESS_HOST_DEVICE std::uint64_t bits_of(FlaggedWord const& flagged_word) {
  return static_cast<std::uint64_t>(flagged_word.part[2]) << 32 | flagged_word.part[0];
}
HOSTLESS_HOST_DEVICE bool matches(FlaggedWord const& flagged_word, std::uint32_t epoch) {
  return flagged_word.part[1] == epoch && flagged_word.part[3] == epoch;
}
HOSTLESS_HOST_DEVICE bool is_poisoned(FlaggedWord const& flagged_word) {
  return ((flagged_word.part[1] | flagged_word.part[3]) & poison) != 0;
}

}  // namespace hostless::gpu
