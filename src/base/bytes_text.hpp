#pragma once

#include <cstdio>
#include <iterator>
#include <string>

namespace hostless {

/// An amount of memory for people, of three digits and a unit of 1,000: "12.3 MB".
inline std::string bytes_text(double bytes) {
  constexpr char const* units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
  constexpr double next = 999.5;  // what three digits would round to 1,000
  std::size_t unit = 0;
  for (; bytes >= next && unit + 1 < std::size(units); ++unit) bytes /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", bytes, units[unit]);
  return text;
}

}  // namespace hostless
