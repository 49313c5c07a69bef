#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hostless {

/// A place in a JSON document that knows its path, so that every complaint can name file and place. The path
/// is only put together when there is something to complain about.
class JsonCursor {
 public:
  using Json = nlohmann::json;
  /// root  outlives the cursor, as must `file`
  JsonCursor(Json const& root, std::string const& file) : json_(&root), file_(&file) {}

  /// Errors  bad_input  not an object with exactly these keys
  void require_keys(std::initializer_list<char const*> keys) const;
  JsonCursor at(char const* key) const;
  /// Errors  bad_input  not an array
  std::size_t size() const;
  JsonCursor at(std::size_t index) const;

  std::string const& text() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  /// Any number of a type; ranges are left to flaw().
  template <class T>
  T number() const {
    return static_cast<T>(integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
  template <class T>
  std::vector<T> numbers() const {
    std::vector<T> all;
    for (std::size_t k = 0; k < size(); ++k) all.push_back(at(k).number<T>());
    return all;
  }
  [[noreturn]] void complain(std::string const& problem) const;

 private:
  JsonCursor(Json const& json, JsonCursor const& parent, char const* key, std::size_t index)
      : json_(&json), file_(parent.file_), parent_(&parent), key_(key), index_(index) {}
  std::string path() const;

  Json const* json_;
  std::string const* file_;
  JsonCursor const* parent_ = nullptr;
  char const* key_ = nullptr;
  std::size_t index_ = 0;
};

/// fail(line, problem) must throw: not JSON, more than 32 levels deep, or what JSON does not allow.
nlohmann::json parse_json(std::string_view text,
                          std::function<void(int line, std::string const& problem)> const& fail);

}  // namespace hostless
