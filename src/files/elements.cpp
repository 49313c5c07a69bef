#include "files/elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/setup_watch.hpp"
#include "hostless/base/error.hpp"

namespace hostless::files {
namespace {

// IEEE 754's 16 bits: a sign, 5 bits of exponent, 10 of fraction.
double from_half(std::uint64_t bits) {
  int const exponent = static_cast<int>(bits >> 10 & 31);
  auto const fraction = static_cast<double>(bits & 1023);
  double const size = exponent == 31  ? (fraction == 0 ? std::numeric_limits<double>::infinity()
                                                       : std::numeric_limits<double>::quiet_NaN())
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (bits >> 15 & 1) != 0 ? -size : size;
}

}  // namespace

void ElementReader::refill() {
  constexpr std::int64_t most = 64 << 10;
  auto const width = static_cast<std::int64_t>(type_.bytes);
  std::int64_t const count = std::min(most / width, left_);
  buffer_.resize(static_cast<std::size_t>(count * width));
  if (count == 0 || source_.read_at(begin_ + at_ * width, buffer_) != buffer_.size()) {
    throw Error(ErrorCode::bad_input,
                source_.name() + ": ends before its data (it was cut short). Copy it again.");
  }
  setup_step(count * width);
  at_ += count;
  left_ -= count;
  next_ = 0;
}

std::uint64_t ElementReader::bits() {
  if (next_ == buffer_.size()) refill();
  auto const width = static_cast<std::size_t>(type_.bytes);
  std::uint64_t value = 0;
  for (std::size_t k = 0; k < width; ++k) {
    std::size_t const shift = 8 * (type_.big_endian ? width - 1 - k : k);
    value |= std::to_integer<std::uint64_t>(buffer_[next_ + k]) << shift;
  }
  next_ += width;
  return value;
}

double ElementReader::real() {
  if (type_.kind == ElementType::Kind::real) {
    std::uint64_t const value = bits();
    return type_.bytes == 8   ? std::bit_cast<double>(value)
           : type_.bytes == 4 ? double{std::bit_cast<float>(static_cast<std::uint32_t>(value))}
                              : from_half(value);
  }
  constexpr std::int64_t exact = std::int64_t{1} << 53;
  auto const refuse = [&](auto value) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: the integer {} is beyond 2^53 (a double cannot hold it exactly). Scale it, or "
                    "save it as float64.",
                    source_.name(), value));
  };
  if (type_.kind == ElementType::Kind::natural) {
    std::uint64_t const value = bits();
    if (value > std::uint64_t{exact}) refuse(value);
    return static_cast<double>(value);
  }
  std::int64_t const value = whole();
  if (value > exact || value < -exact) refuse(value);
  return static_cast<double>(value);
}

std::int64_t ElementReader::whole() {
  std::uint64_t const value = bits();
  if (type_.kind == ElementType::Kind::boolean) return value != 0 ? 1 : 0;
  int const spare = 64 - 8 * type_.bytes;
  if (type_.kind == ElementType::Kind::integer) return static_cast<std::int64_t>(value << spare) >> spare;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

}  // namespace hostless::files
