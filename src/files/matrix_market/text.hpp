#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "files/text.hpp"

namespace hostless::files {

enum class Field : std::uint8_t { real, integer, pattern };

/// What the first lines of a Matrix Market file say, checked as far as they can be without the body.
struct MarketHeader {
  bool array = false;      ///< values only, column by column; else coordinates
  bool symmetric = false;  ///< one triangle stands for both
  Field field = Field::real;
  std::int64_t rows = 0, columns = 0;
  std::int64_t entries = 0;    ///< of coordinates
  std::int64_t size_line = 0;  ///< byte where the line of sizes begins
  std::int64_t body = 0;       ///< byte where the first line after it begins
};

/// One line of coordinates, counted from 0.
struct Entry {
  std::int64_t row, column;
  double value;
};

/// Reads the header. Throws Problem for every kind of file that hostless does not solve with.
MarketHeader read_market_header(Text& text);

/// Reads whole lines of coordinates, the first of which begins at byte `offset`, and appends their entries;
/// where each line begins is appended to `begins`, if given. Throws Problem at the first bad line; entries
/// before it were appended.
void parse_entries(std::string_view lines, std::int64_t offset, MarketHeader const& header,
                   std::vector<Entry>& entries, std::vector<std::int64_t>* begins = nullptr);

/// The same for lines of one value each, of an array.
void parse_values(std::string_view lines, std::int64_t offset, MarketHeader const& header,
                  std::vector<double>& values, std::vector<std::int64_t>* begins = nullptr);

}  // namespace hostless::files
