#include "rows.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <sstream>

#include "child_command.hpp"
#include "exchange/gpu/exchange_library.hpp"
#include "hostless/transport/mpi.hpp"
#include "lists.hpp"
#include "numbers.hpp"
#include "solve/gpu_solver/gpu_loader.hpp"
#include "standard_output.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

/// A transport with one of its faces: how a start of this command gets it, and what may be missing.
struct TransportRow {
  char const* transport;  ///< in the words of --transports
  char const* face;
  char const* option = nullptr;       ///< of --transport; null: what is usual
  std::optional<MpiVendor> mpi = {};  ///< that must be there
  bool is_stream() const { return std::string_view(face) == "stream"; }
  bool is_of_gpus() const { return std::string_view(face) != "host"; }
};

// Faces of the host, of kernels, and whatever has one of streams.
std::vector<TransportRow> const& all_rows() {
  static auto const all = [] {
    std::vector<TransportRow> rows = {{"threads", "host", "threads"},
                                      {"processes", "host", "processes"},
                                      {"openmpi", "host", "mpi", MpiVendor::openmpi},
                                      {"mpich", "host", "mpi", MpiVendor::mpich},
                                      {"peer", "kernel"}};
    for (GpuTransportFacts const& facts : gpu_transports())
      rows.push_back({facts.name, "stream", facts.symmetric_memory ? "processes" : facts.needs_transport});
    return rows;
  }();
  return all;
}

bool is_of_gpus(TransportRow const& row) { return row.is_of_gpus(); }

// In the order in which they were named, once for each time.
std::vector<TransportRow> rows_named(std::string const& list) {
  std::vector<TransportRow> rows;
  for (std::string const& word : words_in(list))
    for (TransportRow const& row : all_rows())
      if (word == "all" || word == row.transport) rows.push_back(row);
  return rows;
}

// Accepts words that name rows, and no others.
CLI::Validator names_of_rows() {
  auto refuse = [](std::string const& list) -> std::string {
    std::vector<std::string> known = {"all"};
    for (TransportRow const& row : all_rows()) known.emplace_back(row.transport);
    auto const known_word = one_of(known);
    for (std::string word : words_in(list))
      if (std::string problem = known_word(word); !problem.empty()) return problem;
    return {};
  };
  return {refuse, ""};
}

std::string missing_mpi(MpiVendor vendor) {
  static auto const plugins = mpi_plugins();
  for (MpiPlugin const& plugin : plugins)
    if (plugin.vendor == vendor && !plugin.problem.empty()) return plugin.problem;
  static_cast<void>(mpirun_command(vendor, 1, {"true"}));
  return {};
}

// Why this machine has no such row; empty: it has.
std::string missing(TransportRow const& row) {
  try {
    if (row.mpi) return missing_mpi(*row.mpi);
    if (row.is_stream()) {
      for (gpu::TransportFacts const& facts : gpu::exchange_library().transports())
        if (facts.name == row.transport && !facts.problem.empty()) return facts.problem;
    } else if (is_of_gpus(row)) {
      static_cast<void>(gpu::library());
    }
  } catch (Error const& e) {
    return e.what();
  }
  return {};
}

// The options of this command as they were given, but for those that choose rows or are of GPUs alone.
std::vector<std::string> options_for_all(CLI::App& command) {
  std::set<std::string> const of_rows = {"--transports",    "--row-limit", "--json",         "--gpus",
                                         "--oversubscribe", "--sums",      "--gpu-transport"};
  std::vector<std::string> words;
  for (CLI::Option* option : command.get_options()) {
    std::string const key = option->get_name();
    if (option->count() == 0 || of_rows.contains(key)) continue;
    if (key.starts_with("-")) words.push_back(key);
    words.insert(words.end(), option->results().begin(), option->results().end());
  }
  return words;
}

std::vector<std::string> options_of(TransportRow const& row, MessageOptions const& o) {
  if (!is_of_gpus(row)) return {"--transport", row.option};
  std::vector<std::string> words = {"--gpus",
                                    std::to_string(o.gpus > 0 ? o.gpus : std::max(1, o.ranks.ranks))};
  if (o.oversubscribe) words.emplace_back("--oversubscribe");
  if (row.is_stream()) words.insert(words.end(), {"--gpu-transport", row.transport});
  if (row.option != nullptr) words.insert(words.end(), {"--transport", row.option});
  if (o.sums > 0 && !row.is_stream()) words.insert(words.end(), {"--sums", std::to_string(o.sums)});
  return words;
}

/// What became of one.
struct RowEnd {
  enum class Kind { measured, absent, failed } kind = Kind::measured;
  int code = 0;
  std::string why;  ///< it was not measured
  Json report;
};

char const* name(RowEnd::Kind kind) {
  char const* const names[] = {"measured", "absent", "failed"};
  return names[static_cast<int>(kind)];
}

// What ranks and launcher have said of their end, each thing once; else the last line of all.
std::string last_words(std::string const& errors) {
  constexpr std::string_view mark = "hostless: ";
  std::istringstream lines(errors);
  std::string line, last, ours;
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
    if (!line.starts_with(mark)) continue;
    std::string const words = line.substr(mark.size());
    if (ours.find(words) == ours.npos) ours += (ours.empty() ? "" : " ") + words;
  }
  return ours.empty() ? last : ours;
}

// The object in what a command has printed; libraries of MPI may have said something around it.
Json report_in(std::string const& output) {
  auto const begin = output.starts_with("{\n") ? 0 : output.find("\n{\n"), end = output.rfind("\n}");
  if (begin == output.npos || end == output.npos || end < begin) return Json::value_t::discarded;
  return Json::parse(output.substr(begin, end + 2 - begin), nullptr, false);
}

RowEnd measured(Timed what, TransportRow const& row, MessageOptions const& o, CLI::App& command) {
  using Kind = RowEnd::Kind;
  constexpr int usage = static_cast<int>(ErrorCode::usage), most_code = 4;
  if (std::string const why = missing(row); !why.empty()) return {Kind::absent, most_code, why, {}};
  ChildCommand child;
  child.words = {this_program(), "bench", name(what), "--json", "-"};
  for (auto const& some : {options_for_all(command), options_of(row, o)})
    child.words.insert(child.words.end(), some.begin(), some.end());
  if (row.mpi) child.environment = {{"HOSTLESS_MPI", name(*row.mpi)}};
  child.is_heard = true;
  child.longest_s = o.row_limit_s;
  ChildEnd const end = run_quietly(child);
  if (!end.problem.empty()) return {Kind::failed, most_code, end.problem, {}};
  if (end.code != 0) {
    std::string const why = last_words(end.errors);
    // An MPI is asked by its ranks alone, what it takes.
    bool const is_refused = row.is_stream() && why.find("takes no memory of GPUs") != why.npos;
    return {end.code == usage || is_refused ? Kind::absent : Kind::failed,
            std::min(end.code, most_code),
            why.empty() ? fmt::format("it ended with exit code {}", end.code) : why,
            {}};
  }
  Json report = report_in(end.output);
  if (report.is_discarded()) return {Kind::failed, most_code, "it wrote no result", {}};
  return {Kind::measured, 0, {}, std::move(report)};
}

Json json_of(TransportRow const& row, RowEnd const& end) {
  Json j = {{"transport", row.transport}, {"face", row.face}, {"status", name(end.kind)}};
  if (end.kind != RowEnd::Kind::measured) {
    j["error"] = end.why;
    return j;
  }
  if (Json const& whence = end.report["provenance"]; whence.value("mpi", Json()).is_string())
    j["mpi"] = whence["mpi"];
  for (auto const& [key, value] : end.report.items())
    if (key != "version" && key != "program" && key != "bench" && key != "provenance" && key != "transport")
      j[key] = value;
  return j;
}

// Each transport and face in front of what one alone would print.
std::vector<std::string> lines_of(Timed what, TransportRow const& row, RowEnd const& end) {
  auto const label = [&](std::string const& face) { return fmt::format("{:10} {:14}", row.transport, face); };
  if (end.kind != RowEnd::Kind::measured)
    return {fmt::format("{} {}: {}", label(row.face), name(end.kind), end.why)};
  std::vector<std::string> lines;
  for (Json const& one : rows_of(what, end.report)) {
    std::string const by = one.contains("by") ? " " + one["by"].get<std::string>() : "";
    lines.push_back(label(row.face + by) + " " + line_of(what, one));
  }
  return lines;
}

}  // namespace

void add_rows(CLI::App& command, MessageOptions& o) {
  std::string words;
  std::set<std::string> named;
  for (TransportRow const& row : all_rows())
    if (named.insert(row.transport).second)
      words += fmt::format("{}{}", words.empty() ? "" : ", ", row.transport);
  command
      .add_option("--transports", o.transports,
                  fmt::format("Each of these in a start of its own, in one table: of {}, between commas, or "
                              "all; from peer on between GPUs (--gpus) [what --transport says]",
                              words))
      ->check(names_of_rows())
      ->excludes(command.get_option("--transport"))
      ->excludes(command.get_option("--gpu-transport"));
  command
      .add_option("--row-limit", o.row_limit_s,
                  "With --transports, seconds after which one of them is ended, and counted as failed")
      ->capture_default_str()
      ->check(real_number(false))
      ->needs(command.get_option("--transports"));
}

void check_rows(MessageOptions const& o) {
  auto const rows = rows_named(o.transports);
  if (started_by_mpi())
    throw Error(ErrorCode::usage,
                "--transports under mpirun (each is started by this command). Drop mpirun, or --transports.");
  bool const has_gpus = std::any_of(rows.begin(), rows.end(), is_of_gpus);
  if (!has_gpus && (o.gpus > 0 || o.oversubscribe || o.sums > 0))
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "--gpus, --oversubscribe or --sums with --transports {} is refused (none is of GPUs). Add "
            "peer, or drop them.",
            o.transports));
}

int time_rows(Timed what, MessageOptions const& o, CLI::App& command) {
  if (!o.measure.json.empty() && o.measure.json != "-") check_whole_file(o.measure.json);
  Json report = bench_head(name(what), o.provenance);
  report["rows"] = Json::array();
  int counts[3] = {}, failure = 0, absence = 0;
  std::ptrdiff_t without = 0;  // of rows that were measured: what their transport has not
  auto const say = [&](std::string const& line) {
    if (!o.measure.prints_table()) return;
    print("{}\n", line);
    std::fflush(stdout);
  };
  say(fmt::format("{:10} {:14} {}", "transport", "face", head_of(what)));
  for (TransportRow const& row : rows_named(o.transports)) {
    RowEnd const end = measured(what, row, o, command);
    ++counts[static_cast<int>(end.kind)];
    if (end.kind == RowEnd::Kind::failed) failure = std::max(failure, end.code);
    if (end.kind == RowEnd::Kind::absent) absence = end.code;
    report["rows"].push_back(json_of(row, end));
    for (std::string const& line : lines_of(what, row, end)) say(line);
    if (end.kind != RowEnd::Kind::measured) continue;
    auto const figures = rows_of(what, end.report);
    without +=
        std::count_if(figures.begin(), figures.end(), [](Json const& one) { return one.contains("error"); });
  }
  say(fmt::format("{} measured, {} absent, {} failed{}", counts[0], counts[1], counts[2],
                  without > 0 ? fmt::format("; {} figures of what a transport has not", without) : ""));
  for (auto const kind : {RowEnd::Kind::measured, RowEnd::Kind::absent, RowEnd::Kind::failed})
    report[name(kind)] = counts[static_cast<int>(kind)];
  report["absent_figures"] = without;
  if (!o.measure.json.empty()) write_text(o.measure.json, json_text(report));
  return failure > 0 ? failure : counts[0] == 0 ? absence : 0;
}

}  // namespace hostless
