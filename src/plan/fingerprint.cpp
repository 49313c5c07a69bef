#include "hostless/plan/routes.hpp"

namespace hostless {
namespace {

/// 64-bit FNV-1a over numbers, low byte first whatever the machine.
class Hash {
 public:
  void add(std::int64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      value_ ^= (static_cast<std::uint64_t>(number) >> (8 * byte)) & 255u;
      value_ *= 1099511628211u;
    }
  }
  template <class T>
  void add(std::vector<T> const& numbers) {
    add(static_cast<std::int64_t>(numbers.size()));
    for (T number : numbers) add(static_cast<std::int64_t>(number));
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

}  // namespace

std::uint64_t fingerprint(Route route, std::vector<Pattern> const& patterns, NodeMap const& nodes,
                          PlanOptions const& options) {
  Hash hash;
  for (std::int64_t number :
       {std::int64_t{HaloPlan::current_version}, static_cast<std::int64_t>(route),
        static_cast<std::int64_t>(options.free), static_cast<std::int64_t>(options.space),
        static_cast<std::int64_t>(options.block), static_cast<std::int64_t>(options.slices),
        static_cast<std::int64_t>(options.row_lanes)})
    hash.add(number);
  hash.add(nodes.node);
  hash.add(nodes.socket);
  hash.add(nodes.device);
  for (Pattern const& pattern : patterns) {
    hash.add(pattern.owned);
    hash.add(pattern.item);
    hash.add(pattern.first);
    hash.add(pattern.receiver);
  }
  return hash.value();
}

}  // namespace hostless
