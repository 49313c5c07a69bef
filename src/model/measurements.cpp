#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "hostless/base/error.hpp"
#include "hostless/model/fit.hpp"
#include "model/json_file.hpp"
#include "model/names.hpp"

namespace hostless {
namespace {

constexpr std::string_view messages_head = "series,memory,locality,bytes,messages,active_ranks,seconds";
constexpr std::string_view copies_head = "direction,processes,bytes,seconds";

/// One line of a file, cut at its commas.
class Row {
 public:
  Row(std::string_view line, std::string const& file, int number) : file_(file), number_(number) {
    for (std::size_t at = 0; at <= line.size();) {
      std::size_t const comma = std::min(line.find(',', at), line.size());
      fields_.push_back(line.substr(at, comma - at));
      at = comma + 1;
    }
  }
  std::size_t size() const { return fields_.size(); }
  std::string_view text(std::size_t column) const { return fields_[column]; }
  [[noreturn]] void fail(std::string const& problem) const {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}:{}: {} (the measurements cannot be used). Correct that line.", file_, number_,
                            problem));
  }
  double number(std::size_t column, Unit const& unit) const {
    double value = 0;
    std::string_view const text = fields_[column];
    auto const [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || stop != text.data() + text.size())
      fail(fmt::format("'{}' where a number must be ({})", text, unit.words));
    if (!(value >= unit.least && value <= unit.most))
      fail(
          fmt::format("{} cannot be {}: it is not in [{:g}, {:g}]", text, unit.words, unit.least, unit.most));
    return value;
  }
  int whole(std::size_t column) const {
    int value = 0;
    std::string_view const text = fields_[column];
    auto const [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || stop != text.data() + text.size() || value < 1)
      fail(fmt::format("'{}' where a whole number from 1 on must be", text));
    return value;
  }
  template <class Values>
  auto choice(std::size_t column, Values const& values) const {
    for (auto value : values)
      if (fields_[column] == name(value)) return value;
    fail(fmt::format("'{}' is none of the words of this column", fields_[column]));
  }

 private:
  std::string const& file_;
  int number_;
  std::vector<std::string_view> fields_;
};

constexpr Unit measured{"measured seconds", 1e-10, 1e3};
constexpr Unit any_bytes{"bytes", 0.0, 1e15};

MessageSample message_of(Row const& row, std::map<std::string, int>& series) {
  MessageSample sample;
  int const next = static_cast<int>(series.size());
  sample.series = series.emplace(row.text(0), next).first->second;
  sample.pattern.memory = row.choice(1, all_memory_kinds);
  sample.pattern.span = row.choice(2, all_spans);
  sample.pattern.bytes = row.number(3, any_bytes);
  sample.pattern.messages = row.whole(4);
  sample.pattern.active_ranks = row.whole(5);
  sample.seconds = row.number(6, measured);
  return sample;
}

}  // namespace

void read_measurements(std::string_view text, std::string const& file, Measurements& into) {
  std::map<std::string, int> series;
  std::string_view head;
  int number = 0, before = 0, samples = 0;
  for (MessageSample const& sample : into.messages) before = std::max(before, sample.series + 1);
  // What spreadsheets put in front, and blank lines, say nothing.
  if (constexpr std::string_view mark = "\xef\xbb\xbf"; text.starts_with(mark))
    text.remove_prefix(mark.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    Row const row(line, file, number);
    if (head.empty()) {
      head = line;
      if (head != messages_head && head != copies_head)
        row.fail(
            fmt::format("'{}' where '{}' or '{}' must be", line.substr(0, 60), messages_head, copies_head));
      continue;
    }
    ++samples;
    std::size_t const fields = head == messages_head ? 7 : 4;
    if (row.size() != fields) row.fail(fmt::format("{} fields where {} must be", row.size(), fields));
    if (fields == 7) {
      into.messages.push_back(message_of(row, series));
      into.messages.back().series += before;
    } else {
      into.copies.push_back({row.choice(0, all_copy_directions), row.whole(1), row.number(2, any_bytes),
                             row.number(3, measured)});
    }
  }
  if (samples == 0) Row("", file, std::max(number, 1)).fail("no measurement");
}

std::string messages_csv(std::vector<MessageSample> const& samples, std::vector<std::string> const& series) {
  std::string text = fmt::format("{}\n", messages_head);
  for (MessageSample const& s : samples)
    text += fmt::format("{},{},{},{},{},{},{:.6e}\n", series[static_cast<std::size_t>(s.series)],
                        name(s.pattern.memory), name(s.pattern.span), s.pattern.bytes, s.pattern.messages,
                        s.pattern.active_ranks, s.seconds);
  return text;
}

}  // namespace hostless
