#include "options/equal_words.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "hostless/base/error.hpp"

namespace hostless {
namespace {

std::string path_of_command(CLI::App const& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : path_of_command(*command.get_parent()) + " " + command.get_name();
}

// Each word behind its length: words may hold anything.
Bytes packed(GivenWords const& words) {
  Bytes bytes;
  auto const put = [&](std::string const& word) {
    std::uint64_t const length = word.size();
    auto const head = std::as_bytes(std::span(&length, 1));
    auto const body = std::as_bytes(std::span(word));
    bytes.insert(bytes.end(), head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
  };
  for (GivenWord const& one : words) put(one.name), put(one.text), put(one.value);
  return bytes;
}

GivenWords unpacked(Bytes const& bytes) {
  std::size_t at = 0;
  auto const take = [&] {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    std::string word(reinterpret_cast<char const*>(bytes.data() + at), length);
    at += length;
    return word;
  };
  GivenWords words;
  while (at < bytes.size()) {
    GivenWord one;
    one.name = take();
    one.text = take();
    one.value = take();
    words.push_back(std::move(one));
  }
  return words;
}

GivenWord const* find_in(GivenWords const& words, std::string const& name) {
  auto const found =
      std::find_if(words.begin(), words.end(), [&](GivenWord const& one) { return one.name == name; });
  return found == words.end() ? nullptr : &*found;
}

std::string said(std::string const& name, GivenWord const* word) {
  if (word == nullptr) return "no " + name;
  return word->text.empty() ? name : name + " " + word->text;
}

// One text for all that stand for one number; others, which are refused elsewhere, as they are.
std::string compared_text(CLI::Option const& option, std::string const& text) {
  std::string const type = option.get_type_name();
  char const* const end = text.data() + text.size();
  if (type.starts_with("INT") || type.starts_with("UINT")) {
    std::int64_t whole = 0;
    auto const [stop, problem] = std::from_chars(text.data(), end, whole);
    return problem == std::errc() && stop == end ? std::to_string(whole) : text;
  }
  if (!type.starts_with("FLOAT") || text.empty()) return text;
  char* stop = nullptr;
  double const number = std::strtod(text.c_str(), &stop);
  return stop != end ? text : fmt::format("{}", number == 0 ? 0.0 : number);
}

// The first of `a` that `b` has not, or otherwise; empty: none.
std::string first_missing(GivenWords const& a, GivenWords const& b) {
  for (GivenWord const& one : a) {
    GivenWord const* const other = find_in(b, one.name);
    if (other == nullptr || other->value != one.value) return one.name;
  }
  return "";
}

}  // namespace

GivenWords given_words(CLI::App const& command) {
  constexpr std::string_view partition_file = "file:";
  GivenWords words;
  auto const add = [&](std::string const& name, std::string const& text) {
    words.push_back({name, text, text});
  };
  add("the command", path_of_command(command));
  bool const solves = command.get_name() == "solve";  // also `bench solve`
  for (CLI::Option const* option : command.get_options()) {
    if (option->count() == 0) continue;
    std::string const name = option->get_name();
    if (solves && option->get_positional()) {
      add("the number of files", std::to_string(option->results().size()));
      continue;
    }
    std::string value;
    if (option->get_expected_max() == 0) {  // a flag, which says no word
      add(name, value);
      continue;
    }
    std::string compared;
    for (std::string const& word : option->results()) {
      value += (value.empty() ? "" : " ") + word;
      compared += (compared.empty() ? "" : " ") + compared_text(*option, word);
    }
    if (name == "--partition" && value.starts_with(partition_file)) value = compared = partition_file;
    words.push_back({name, value, compared});
  }
  return words;
}

void require_equal_words(Group& group, GivenWords const& mine) {
  if (group.size() == 1) return;
  GivenWords const first = unpacked(group.broadcast(packed(mine), 0));
  group.together([&] {
    std::string name = first_missing(first, mine);
    if (name.empty()) name = first_missing(mine, first);
    if (name.empty()) return;
    throw Error(
        ErrorCode::usage,
        fmt::format("rank {} is given {}; rank 0 {} (ranks do the same or wait for each other in vain). Give "
                    "all ranks the same.",
                    group.rank(), said(name, find_in(mine, name)), said(name, find_in(first, name))));
  });
}

}  // namespace hostless
