#include "plan/json_cursor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "hostless/base/error.hpp"

namespace hostless {

void JsonCursor::complain(std::string const& problem) const {
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: {}: {} (the plan cannot be used). Write the plan again with 'hostless plan'",
                          *file_, path(), problem));
}

std::string JsonCursor::path() const {
  if (parent_ == nullptr) return "$";
  return key_ != nullptr ? fmt::format("{}.{}", parent_->path(), key_)
                         : fmt::format("{}[{}]", parent_->path(), index_);
}

void JsonCursor::require_keys(std::initializer_list<char const*> keys) const {
  if (!json_->is_object()) complain(fmt::format("{} where an object must be", json_->type_name()));
  for (char const* key : keys)
    if (!json_->contains(key)) complain(fmt::format("'{}' is missing", key));
  for (auto const& entry : json_->items()) {
    auto const same = [&](char const* key) { return entry.key() == key; };
    if (std::none_of(keys.begin(), keys.end(), same))
      complain(fmt::format("'{}' is unknown here", entry.key().substr(0, 40)));
  }
}

JsonCursor JsonCursor::at(char const* key) const { return {(*json_)[key], *this, key, 0}; }

std::size_t JsonCursor::size() const {
  if (!json_->is_array()) complain(fmt::format("{} where a list must be", json_->type_name()));
  return json_->size();
}

JsonCursor JsonCursor::at(std::size_t index) const { return {(*json_)[index], *this, nullptr, index}; }

std::string const& JsonCursor::text() const {
  if (!json_->is_string()) complain(fmt::format("{} where a text must be", json_->type_name()));
  return json_->get_ref<std::string const&>();
}

std::int64_t JsonCursor::integer(std::int64_t low, std::int64_t high) const {
  if (!json_->is_number_integer())
    complain(fmt::format("{} where a whole number must be", json_->type_name()));
  bool const huge =
      json_->is_number_unsigned() &&
      json_->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (huge || json_->get<std::int64_t>() < low || json_->get<std::int64_t>() > high)
    complain(fmt::format("{} is not in [{}, {}]", json_->dump(), low, high));
  return json_->get<std::int64_t>();
}

namespace {

// What is wrong at a byte that the parser could not go on at; it counts them from 1.
std::string words_of(std::string_view text, std::size_t byte, bool is_behind_the_end) {
  constexpr std::string_view blank = " \t\r\n";
  if (text.find_first_not_of(blank) == std::string_view::npos) return "not JSON, but empty";
  if (byte > text.size()) return "not JSON, or cut short: it ends inside a value";
  std::size_t const at = byte > 0 ? byte - 1 : 0;
  std::size_t const line = text.substr(0, at).rfind('\n');
  std::size_t const column = line == std::string_view::npos ? at + 1 : at - line;
  // The word that it stands in, as far as it can be shown.
  constexpr std::string_view ends = " \t\r\n,:[]{}\"";
  std::size_t from = at;
  while (from > 0 && from + 20 > at && ends.find(text[from - 1]) == std::string_view::npos) --from;
  std::size_t const to = std::min(text.find_first_of(ends, at + 1), std::min(text.size(), at + 20));
  std::string word(text.substr(from, std::max(to, at + 1) - from));
  for (char& c : word)
    if (c < ' ' || c > '~') c = '?';
  char const* const why = is_behind_the_end ? " behind the end of the document"
                          : word.starts_with("//") || word.starts_with("/*") || word.starts_with("#")
                              ? " (JSON has no comments)"
                          : word.find("NaN") != std::string::npos || word.find("nan") != std::string::npos ||
                                  word.find("Inf") != std::string::npos
                              ? " (JSON has finite numbers alone)"
                              : "";
  return fmt::format("not JSON, or cut short, at column {}: '{}'{}", column, word, why);
}

}  // namespace

nlohmann::json parse_json(std::string_view text,
                          std::function<void(int line, std::string const& problem)> const& fail) {
  using Json = nlohmann::json;
  // What is no document of ours is refused while it is read, not after.
  constexpr int deepest = 32;
  auto const watch = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > deepest) fail(1, "values nested more than 32 deep");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (Json::parse_error const& problem) {
    bool const is_behind =
        std::string_view(problem.what()).find("expected end of input") != std::string_view::npos;
    auto const before = std::min(problem.byte > 0 ? problem.byte - 1 : 0, text.size());
    fail(static_cast<int>(1 +
                          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(before), '\n')),
         words_of(text, problem.byte, is_behind));
  } catch (Json::exception const&) {
    fail(1, "numbers or texts that JSON does not allow");
  }
  return {};
}

}  // namespace hostless
