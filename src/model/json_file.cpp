#include "model/json_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/control_characters.hpp"
#include "base/nearest.hpp"
#include "hostless/base/error.hpp"
#include "plan/json_cursor.hpp"

namespace hostless {
namespace {

/// Walks a text that is known to be JSON, and notes where values begin.
class LineWalk {
 public:
  LineWalk(std::string_view text, std::map<std::string, int>& lines) : text_(text), lines_(lines) {}
  void value(std::string const& pointer) {
    blank();
    lines_.emplace(pointer, line_);
    if (now() == '{') return members(pointer);
    if (now() == '[') return elements(pointer);
    if (now() == '"') {
      string();
      return;
    }
    while (at_ < text_.size() && std::string_view(",]} \t\r\n").find(now()) == std::string_view::npos) ++at_;
  }
  std::string twice;  ///< a key that is there twice
  int twice_line = 0;

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blank() {
    for (; std::string_view(" \t\r\n").find(now()) != std::string_view::npos && at_ < text_.size(); ++at_)
      line_ += now() == '\n';
  }
  std::string string() {
    std::size_t const begin = at_++;
    while (now() != '"' && at_ < text_.size()) at_ += now() == '\\' ? 2 : 1;
    ++at_;
    return nlohmann::json::parse(text_.substr(begin, at_ - begin)).get<std::string>();
  }
  void members(std::string const& pointer) {
    for (++at_; blank(), now() != '}';) {
      std::string const key = string();
      std::string const inner = pointer + "/" + key;
      if (lines_.contains(inner) && twice.empty()) twice = key, twice_line = line_;
      blank();
      ++at_;  // the colon
      value(inner);
      blank();
      if (now() == ',') ++at_;
    }
    ++at_;
  }
  void elements(std::string const& pointer) {
    ++at_;
    for (int k = 0; blank(), now() != ']'; ++k) {
      value(fmt::format("{}/{}", pointer, k));
      blank();
      if (now() == ',') ++at_;
    }
    ++at_;
  }

  std::string_view text_;
  std::map<std::string, int>& lines_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

JsonFile::JsonFile(std::string_view text, std::string file) : file_(std::move(file)) {
  json_ = parse_json(text, [&](int line, std::string const& problem) { fail(line, problem); });
  LineWalk walk(text, lines_);
  walk.value("");
  if (!walk.twice.empty())
    fail(walk.twice_line, fmt::format("'{}' is there twice", walk.twice.substr(0, 40)));
}

int JsonFile::line(std::string const& pointer) const {
  auto const found = lines_.find(pointer);
  return found == lines_.end() ? 1 : found->second;
}

void JsonFile::fail(int line, std::string const& problem) const {
  throw JsonFault(
      fmt::format("{}:{}: {} (the machine's file cannot be used). Correct that line; docs/machine-files.md "
                  "has the format.",
                  file_, line, problem),
      problem);
}

void JsonValue::fail(std::string const& problem) const {
  file_->fail(file_->line(pointer_), fmt::format("{}{}{}", pointer_.empty() ? "" : pointer_.substr(1),
                                                 pointer_.empty() ? "" : ": ", problem));
}

std::string JsonValue::shown() const {
  std::string text = json_->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

void JsonValue::require_keys(std::initializer_list<char const*> needed,
                             std::initializer_list<char const*> possible) const {
  if (!json_->is_object()) fail(fmt::format("{} where an object must be", shown()));
  std::vector<std::string> known(needed.begin(), needed.end());
  known.insert(known.end(), possible.begin(), possible.end());
  for (auto const& entry : json_->items())
    if (std::find(known.begin(), known.end(), entry.key()) == known.end())
      at(entry.key())
          .fail(fmt::format("'{}' is unknown here.{} Known are {}", entry.key().substr(0, 40),
                            did_you_mean(entry.key(), known), fmt::join(known, ", ")));
  for (char const* key : needed)
    if (!has(key)) fail(fmt::format("'{}' is missing", key));
}

JsonValue JsonValue::at(std::string const& key) const {
  JsonValue inner = *this;
  inner.json_ = &(*json_)[key];
  inner.pointer_ += "/" + key;
  return inner;
}

std::vector<JsonValue> JsonValue::list() const {
  if (!json_->is_array()) fail(fmt::format("{} where a list must be", shown()));
  if (json_->empty()) fail("an empty list; say \"no data\" where there is none");
  std::vector<JsonValue> all;
  for (std::size_t k = 0; k < json_->size(); ++k) {
    all.push_back(*this);
    all.back().json_ = &(*json_)[k];
    all.back().pointer_ += fmt::format("/{}", k);
  }
  return all;
}

std::vector<std::string> JsonValue::keys() const {
  if (!json_->is_object()) fail(fmt::format("{} where an object must be", shown()));
  std::vector<std::string> all;
  for (auto const& entry : json_->items()) all.push_back(entry.key());
  return all;
}

bool JsonValue::is_no_data() const { return json_->is_string() && *json_ == "no data"; }

std::string JsonValue::text() const {
  if (!json_->is_string() || json_->get_ref<std::string const&>().find_first_not_of(' ') == std::string::npos)
    fail(fmt::format("{} where a text must be", shown()));
  auto const& text = json_->get_ref<std::string const&>();
  if (has_control_characters(text)) fail(fmt::format("{} has control characters", shown()));
  return text;
}

int JsonValue::whole(int least, int most) const {
  if (!json_->is_number_integer()) fail(fmt::format("{} where a whole number must be", shown()));
  double const value = json_->get<double>();
  if (value < least || value > most) fail(fmt::format("{} is not in [{}, {}]", shown(), least, most));
  return json_->get<int>();
}

double JsonValue::number(Unit const& unit) const {
  if (!json_->is_number()) fail(fmt::format("{} where a number must be ({})", shown(), unit.words));
  double const value = json_->get<double>();
  if (unit.zero && value == 0.0) return value;
  if (!(value >= unit.least && value <= unit.most))
    fail(fmt::format("{} cannot be {}: it is not in [{:g}, {:g}]", shown(), unit.words, unit.least,
                     unit.most));
  return value;
}

std::size_t JsonValue::choice(std::vector<std::string> const& words) const {
  auto const found =
      json_->is_string() ? std::find(words.begin(), words.end(), json_->get<std::string>()) : words.end();
  if (found == words.end()) fail(fmt::format("{} is none of {}", shown(), fmt::join(words, ", ")));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace hostless
