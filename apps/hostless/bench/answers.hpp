#pragma once
// Whether ways of solving one system gave the same bits.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hostless/transport/group.hpp"

namespace hostless {

/// What one way gave, of this rank's rows.
struct Answer {
  bool is_brief;  ///< the beginning of a solve alone
  std::vector<double> x, history;
  double true_residual;
};

struct Compared {
  std::string bits;      ///< `first`, `equal`, or what differs
  std::uint64_t digest;  ///< of x, history and true residual: of equal bits it is equal
  bool differs;
};

/// The answers to several questions, to hold others against.
class Answers {
 public:
  explicit Answers(Group& group) : group_(group) {}
  /// Collective. With every other answer to the same question: all of it, or the beginning of its history.
  /// brief_iterations  those of brief answers
  Compared compare(std::string const& question, Answer answer, std::int64_t brief_iterations = 0);

 private:
  std::string difference(Answer const& one, Answer const& other);

  Group& group_;
  std::map<std::string, std::vector<Answer>> answers_;  // a whole one, a brief one
};

}  // namespace hostless
