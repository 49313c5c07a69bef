#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hostless/base/error.hpp"

namespace hostless {

/// What is wrong with a value of a file; what() is for whoever wrote it, `problem` names the value alone.
class JsonFault : public Error {
 public:
  JsonFault(std::string const& text, std::string problem)
      : Error(ErrorCode::bad_input, text), problem_(std::move(problem)) {}
  std::string const& problem() const { return problem_; }

 private:
  std::string problem_;
};

/// A JSON document and the line on which each of its values begins.
class JsonFile {
 public:
  using Json = nlohmann::json;
  /// Errors  bad_input  not JSON, nested more than 32 deep, or a key that is there twice
  JsonFile(std::string_view text, std::string file);
  Json const& json() const { return json_; }
  std::string const& file() const { return file_; }
  int line(std::string const& pointer) const;
  [[noreturn]] void fail(int line, std::string const& problem) const;

 private:
  std::string file_;
  Json json_;
  std::map<std::string, int> lines_;  // by JSON pointer
};

/// What a number counts, and what it can be: a value outside was meant in another unit.
struct Unit {
  char const* words;
  double least, most;
  bool zero = false;  ///< zero is allowed too
};

namespace units {
constexpr Unit seconds{"seconds, as 1.4e-06", 1e-10, 0.1, true};
constexpr Unit search_seconds{"seconds of a search, as 3e-09", 1e-10, 1e-4, true};
constexpr Unit seconds_per_byte{"seconds a byte, as 4.2e-11", 1e-15, 1e-6, true};
constexpr Unit bytes_per_second{"bytes a second, as 2.4e10", 1e6, 1e15};
constexpr Unit bytes{"bytes", 1.0, 1e15};
constexpr Unit exponent{"an exponent", 1.0, 1e3};
}  // namespace units

/// One value of a JsonFile. Every complaint names file, line and value.
class JsonValue {
 public:
  explicit JsonValue(JsonFile const& file) : file_(&file), json_(&file.json()) {}

  /// Errors  bad_input  not an object, a key of `needed` is missing, or one is in neither list
  void require_keys(std::initializer_list<char const*> needed,
                    std::initializer_list<char const*> possible = {}) const;
  bool has(char const* key) const { return json_->contains(key); }
  JsonValue at(std::string const& key) const;
  /// Errors  bad_input  not a list, or an empty one
  std::vector<JsonValue> list() const;
  std::vector<std::string> keys() const;  ///< of an object
  bool is_no_data() const;                ///< the text "no data"
  bool is_null() const { return json_->is_null(); }
  std::string text() const;  ///< not empty, on one line, for people
  int whole(int least, int most) const;
  double number(Unit const& unit) const;
  /// Which of the words it is.
  std::size_t choice(std::vector<std::string> const& words) const;
  [[noreturn]] void fail(std::string const& problem) const;
  std::string shown() const;  ///< the value, short

 private:
  JsonFile const* file_;
  nlohmann::json const* json_;
  std::string pointer_;
};

}  // namespace hostless
