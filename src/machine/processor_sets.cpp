#include "hostless/machine/processor_sets.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace hostless {

ProcessorSet processors_of_thread() {
  constexpr std::size_t word_bits = std::numeric_limits<unsigned long>::digits;
  std::array<unsigned long, ProcessorSet().size() / word_bits> words{};
  ProcessorSet found;
  if (sched_getaffinity(0, sizeof words, reinterpret_cast<cpu_set_t*>(words.data())) != 0) return found;
  for (std::size_t k = 0; k < found.size(); ++k)
    found[k] = ((words[k / word_bits] >> (k % word_bits)) & 1) != 0;
  return found;
}

std::vector<int> threads_on_all_processors(std::span<ProcessorSet const> of_ranks) {
  std::vector<std::pair<std::size_t, std::size_t>> by_choice;  // how many ranks may run there, the processor
  for (std::size_t processor = 0; processor < ProcessorSet().size(); ++processor) {
    auto const ranks = static_cast<std::size_t>(std::count_if(
        of_ranks.begin(), of_ranks.end(), [&](ProcessorSet const& set) { return set[processor]; }));
    if (ranks > 0) by_choice.emplace_back(ranks, processor);
  }
  std::sort(by_choice.begin(), by_choice.end());
  std::vector<int> threads(of_ranks.size(), 0);
  for (auto const& [ranks, processor] : by_choice) {
    std::size_t least = of_ranks.size();
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
      if (of_ranks[rank][processor] && (least == of_ranks.size() || threads[rank] < threads[least]))
        least = rank;
    ++threads[least];
  }
  for (int& of_rank : threads) of_rank = std::max(of_rank, 1);
  return threads;
}

}  // namespace hostless
