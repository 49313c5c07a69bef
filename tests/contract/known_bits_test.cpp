// The bits of the reference solves, as they were when known_bits.txt was written: the rest of the contract
// compares ways of one build with each other, and would not see all of them change together.
//
// A change that is meant to change bits writes the file anew (solve_known_bits --write FILE) and says why.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include "base/hash.hpp"
#include "solve_contract_check.hpp"

namespace hostless {
namespace {

void add(Hash& hash, std::vector<double> const& numbers) {
  hash.add(static_cast<std::int64_t>(numbers.size()));
  for (double const number : numbers) hash.add(std::bit_cast<std::int64_t>(number));
}

void add(Hash& hash, contract::Outcome const& outcome) {
  hash.add(std::bit_cast<std::int64_t>(outcome.true_residual));
  hash.add(outcome.status == Status::converged ? 1 : 0);  // the others end at the limit of iterations
  hash.add(outcome.iterations);
  hash.add(outcome.restarts);
  add(hash, outcome.history);
  add(hash, outcome.x);
}

// Ranks have rows in order: METIS deals them out as its version likes.
std::map<std::string, std::string> known_bits() {
  std::map<std::string, std::string> lines;
  for (contract::Point const& point : contract::all_points(contract::plan_sizes(), {0, 1, 2, 3, 4})) {
    contract::Plan const plan = contract::plan_at(point);
    if (plan.partition != 0) continue;
    std::string digests;
    for (int const ranks : {1, 2, 3, 4, 7}) {
      Hash hash;
      add(hash, contract::reference(plan, ranks));
      digests += fmt::format(" {:08x}", static_cast<std::uint32_t>(hash.value() >> 32));
    }
    lines[name(plan)] = digests;
  }
  return lines;
}

std::map<std::string, std::string> read(char const* path) {
  std::map<std::string, std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    auto const colon = line.find(':');
    if (line[0] != '#' && colon != std::string::npos) lines[line.substr(0, colon)] = line.substr(colon + 1);
  }
  return lines;
}

TEST(KnownBits, AreThoseOfEarlierBuilds) {
  auto const expected = read(HOSTLESS_KNOWN_BITS);
  auto const found = known_bits();
  EXPECT_EQ(expected.size(), found.size());
  for (auto const& [plan, digests] : found) {
    auto const line = expected.find(plan);
    ASSERT_NE(line, expected.end()) << plan;
    EXPECT_EQ(line->second, digests) << plan;
  }
}

int write(char const* path) {
  std::ofstream file(path);
  file << "# plan: digests of status, counts, residuals and x on 1, 2, 3, 4 and 7 ranks "
          "(known_bits_test.cpp)\n";
  for (auto const& [plan, digests] : known_bits()) file << plan << ":" << digests << "\n";
  file.close();
  if (!file)
    std::fprintf(stderr, "%s cannot be written (it is to hold the digests). Name another file.\n", path);
  return file ? 0 : 4;
}

}  // namespace
}  // namespace hostless

int main(int count, char** words) {
  if (count == 3 && std::string(words[1]) == "--write") return hostless::write(words[2]);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
