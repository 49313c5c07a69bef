// `hostless stencil`: a stencil with a name on a grid of one's own, dealt out in boxes to ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "base/counted.hpp"
#include "base/whole_file.hpp"
#include "commands.hpp"
#include "file_names.hpp"
#include "hostless/files/array_file.hpp"
#include "hostless/stencil/checkpoint.hpp"
#include "hostless/transport/libraries.hpp"
#include "numbers.hpp"
#include "options_of.hpp"
#include "ranks.hpp"
#include "setup_shown.hpp"
#include "signals.hpp"
#include "standard_output.hpp"
#include "stencil/array_axes.hpp"
#include "stencil/grid_options.hpp"
#include "stencil/initial_fields.hpp"
#include "stencil/stencil_report.hpp"
#include "stencil/steps.hpp"
#include "stencil/who_steps.hpp"
#include "stencil/worth_ranks.hpp"
#include "write_text.hpp"

namespace hostless {
namespace {

struct StencilWish {
  GridWords grid;
  DealtOptions dealt;
  RankOptions ranks;
  GpuWords gpu;
  std::vector<std::string> initial, output;
  std::string resume, json;
  StepsWanted steps;
  bool quiet = false;
  Provenance provenance;

  std::size_t fields() const { return grid.stencil().fields.size(); }
};

// The grid as words and files have settled it.
struct Settled {
  std::vector<std::int64_t> shape;
  std::size_t value_bytes = 8;
  int axes() const { return static_cast<int>(shape.size()); }
};

// Files that name a grid of their own. Collective.
Settled settle_grid(StencilWish const& o, Group& group) {
  Settled settled{o.grid.size, o.grid.type == "fp32" ? std::size_t{4} : std::size_t{8}};
  std::vector<ArrayForm> forms;
  for (std::string const& path : o.initial) forms.push_back(array_form(group, path));
  group.together([&] {
    for (std::size_t k = 0; k < forms.size(); ++k) {
      if (std::find(forms[k].shape.begin(), forms[k].shape.end(), 0) != forms[k].shape.end())
        throw Error(
            ErrorCode::bad_input,
            fmt::format("{}: is an array of shape ({}) (it has no cell to step). Give every axis at least 1.",
                        o.initial[k], fmt::join(forms[k].shape, ", ")));
      if (!o.grid.size.empty() && forms[k].shape != o.grid.size)
        throw Error(
            ErrorCode::bad_input,
            fmt::format("{}: has {} cells, --size says {} (they contradict each other). Drop --size, or "
                        "correct it.",
                        o.initial[k], shape_text(forms[k].shape), shape_text(o.grid.size)));
      if (forms[k] != forms[0])
        throw Error(
            ErrorCode::bad_input,
            fmt::format("{}: {} cells of {}, and {} has {} of {} (fields lie on one grid). Give "
                        "arrays of equal shape and type.",
                        o.initial[k], shape_text(forms[k].shape), counted(forms[k].value_bytes, "byte"),
                        o.initial[0], shape_text(forms[0].shape), forms[0].value_bytes));
    }
    if (!forms.empty()) settled = {forms[0].shape, static_cast<std::size_t>(forms[0].value_bytes)};
    try {
      static_cast<void>(o.grid.grid(settled.shape));
    } catch (Error const& e) {  // what --size says is known to be right
      if (forms.empty()) throw;
      throw Error(ErrorCode::bad_input, fmt::format("{}: {}", o.initial[0], e.what()));
    }
  });
  return settled;
}

// A checkpoint knows its grid, so nobody has to say it. Collective.
StencilWish with_grid(StencilWish wish, Group& group) {
  if (wish.resume.empty() || !wish.grid.size.empty()) return wish;
  StencilCheckpointGrid const of_file = read_stencil_checkpoint_grid(group, wish.resume);
  group.together([&] { wish.grid.take(of_file, wish.resume); });
  return wish;
}

// Where nobody has said how many, as many threads as pay on this grid. A file that cannot be read is refused where
// ranks read it.
void choose_ranks(StencilWish& o) {
  if (!o.gpu.devices().empty()) return;
  take_ranks_along(o.ranks, o.dealt);
  if (o.ranks.ranks > 0) return;
  try {
    run_with_threads_transport(1, [&](Transport& alone) {
      StencilWish const whole = with_grid(o, alone.group());
      Settled const settled = settle_grid(whole, alone.group());
      settle_ranks(o.ranks, whole.grid, o.dealt, settled.shape, settled.value_bytes, o.steps.steps);
    });
  } catch (Error const&) {
    o.ranks.ranks = 0;
  }
}

// Buffers of this rank's box, for one field after the other.
struct BoxOfField {
  BoxOfField(CellStepper const& run, Settled const& settled)
      : form{settled.shape, static_cast<int>(settled.value_bytes)},
        part(array_part_of(run.box(), settled.axes())),
        values(static_cast<std::size_t>(run.box().cells()) * settled.value_bytes),
        cells(cells_of_box(values.data(), run.box(), settled.value_bytes)) {}
  ArrayForm form;
  ArrayPart part;
  std::vector<std::byte> values;
  CellArray cells;
};

void give_initial(StencilWish const& o, Group& group, Settled const& settled, CellStepper& run) {
  BoxOfField box(run, settled);
  for (std::size_t f = 0; f < o.fields(); ++f) {
    if (o.initial.empty()) {
      fill_initial(o.grid.problem, static_cast<int>(f), settled.shape, box.part.low, box.part.high,
                   box.values, settled.value_bytes);
    } else {
      read_array(group, o.initial[f], box.form, box.part, box.values);
    }
    run.give(static_cast<int>(f), box.cells);
  }
}

// The errors instead of throwing them: the steps have been taken, neither their summary nor another field must be lost
// with a file. A lost rank's is the last.
std::vector<Error> write_fields(StencilWish const& o, Group& group, Settled const& settled,
                                CellStepper const& run, std::vector<std::string>& written) {
  std::vector<Error> unwritten;
  BoxOfField box(run, settled);
  for (std::size_t f = 0; f < o.output.size(); ++f) {
    try {
      run.take(static_cast<int>(f), box.cells);
      write_array(group, o.output[f], box.form, box.part, box.values);
      written.push_back(o.output[f]);
    } catch (Error const& e) {
      unwritten.push_back(e);
      if (e.code() == ErrorCode::peer_lost) break;
    }
  }
  return unwritten;
}

// Files that come into being under a temporary name need a folder that takes one.
void check_targets(StencilWish const& o) {
  std::vector<std::string> renamed = o.output;
  if (!o.steps.checkpoint.empty()) renamed.push_back(o.steps.checkpoint);
  for (std::string const& path : renamed) {
    std::error_code ignored;
    auto const now = std::filesystem::status(path, ignored).type();
    using Type = std::filesystem::file_type;
    if (now != Type::not_found && now != Type::regular && now != Type::none)
      throw Error(ErrorCode::environment,
                  path + ": cannot be written: not a regular file (renaming would replace it). Name a file.");
    check_whole_file(path);
  }
  if (!o.json.empty() && o.json != "-") check_whole_file(o.json);
}

std::string words_of_initial(StencilWish const& o) {
  if (!o.resume.empty()) return fmt::format("checkpoint {}", o.resume);
  if (!o.initial.empty()) return fmt::format("{}", fmt::join(o.initial, ", "));
  return initial_words(o.grid.problem);
}

// Such steps end as any other until a value is not finite, which may be never.
void warn_of_unstable(GridWords const& grid, int axes) {
  NamedStencil const& stencil = grid.stencil();
  std::vector<double> const values = grid.values(axes);
  for (StableRange const& range : stable_ranges(stencil, axes))
    if (double const value = values[range.parameter]; value < 0 || value > range.most)
      tell(
          "hostless: {}={:g} of {} on {} (steps are stable from 0 to {:.6g}: beyond, values grow in "
          "each of them). {}\n",
          stencil.parameters[range.parameter], value, stencil.name, counted(axes, "axis", "axes"), range.most,
          value < 0 ? "Take one that is not negative."
                    : "Take shorter steps in time, so that it is smaller.");
}

// But for who steps, which is not known yet.
StencilReport describe(StencilWish const& o, Settled const& settled, Transport& transport) {
  StencilReport report;
  report.provenance = o.provenance;
  report.provenance.libraries = transport_libraries();  // ranks have loaded it
  report.stencil = &o.grid.stencil();
  report.size = settled.shape;
  report.value_bytes = settled.value_bytes;
  report.parameters = o.grid.values(settled.axes());
  report.initial = words_of_initial(o);
  report.transport = transport.capabilities().transport;
  report.route = o.dealt.route;
  report.ranks = transport.group().size();
  report.checkpoint = o.steps.checkpoint;
  return report;
}

void tell_result(StencilWish const& o, Group& group, StencilReport const& report) {
  bool const first = group.rank() == 0, is_lost = report.taken.result.status == StencilStatus::peer_lost;
  if ((first || is_lost) && !o.quiet && o.json != "-") print("{}", summary(report));
  std::fflush(stdout);
  auto const write_json = [&] {
    if (first && !o.json.empty()) write_text(o.json, to_json(report));
  };
  if (is_lost) return write_json();
  write_together(group, o.json, write_json);
}

int stencil_on_rank(StencilWish const& given, Transport& transport) {
  Group& group = transport.group();
  StencilWish const o = with_grid(given, group);
  bool const first = group.rank() == 0;
  group.together([&] {
    if (first) check_targets(o);
  });
  SetupShown shown(first && !o.quiet);
  Settled const settled = settle_grid(o, group);
  StencilKernel const kernel = o.grid.kernel(settled.axes(), settled.value_bytes);
  if (first) warn_of_unstable(o.grid, settled.axes());
  StencilReport report = describe(o, settled, transport);
  auto const stepper =
      make_stepper(o.gpu, o.dealt, transport, o.grid.grid(settled.shape), kernel, settled.shape, report);
  CellStepper& run = *stepper;
  std::int64_t resumed_at = 0;
  if (o.resume.empty()) {
    give_initial(o, group, settled, run);
  } else {
    resumed_at = read_stencil_checkpoint(group, o.resume, run, kernel);
  }
  group.together([&] {
    if (resumed_at > o.steps.steps)
      throw Error(ErrorCode::usage,
                  fmt::format("--steps {}: the checkpoint {} is at step {} (--steps counts from "
                              "the initial fields). Give more.",
                              o.steps.steps, o.resume, resumed_at));
  });
  report.resumed_at = resumed_at;
  shown.end();
  StepsWanted wanted = o.steps;
  if (first && !o.quiet && o.json != "-")
    wanted.looked = [&](StencilChange const& change) {
      print("{}", line_of(*report.stencil, change));
      std::fflush(stdout);
    };
  let_solve_answer();
  report.taken = take_steps(group, run, kernel, wanted);
  StencilStatus& status = report.taken.result.status;
  std::vector<Error> unwritten;
  if (status != StencilStatus::peer_lost && !o.output.empty()) {
    unwritten = write_fields(o, group, settled, run, report.output);
    if (!unwritten.empty() && unwritten.back().code() == ErrorCode::peer_lost) {
      status = StencilStatus::peer_lost;
      report.taken.result.message = unwritten.back().what();
    }
  }
  if (report.taken.unsaved) unwritten.push_back(*report.taken.unsaved);
  write_or_keep(unwritten, [&] { tell_result(o, group, report); });
  tell_unwritten(unwritten);
  return exit_code(status);
}

// What the words of the command say together.
void settle(StencilWish& o, CLI::App& c) {
  o.grid.check();
  auto const refuse = [](std::string const& text) { throw Error(ErrorCode::usage, text); };
  for (char const* const name : {"--initial", "--output", "--json", "--checkpoint", "--resume"})
    if (CLI::Option const* const option = c.get_option(name); option->count() > 0)
      for (std::string const& path : option->results())
        if (path.empty())
          refuse(fmt::format("{} without a name is refused (nothing could be read or written). Name a file.",
                             name));
  NamedStencil const& stencil = o.grid.stencil();
  auto const check_count = [&](char const* option, std::vector<std::string> const& files) {
    if (!files.empty() && files.size() != o.fields())
      refuse(fmt::format("{} names {}, and {} has the fields {} (each is a file). Name {}.", option,
                         counted(files.size(), "file"), stencil.name, fmt::join(stencil.fields, ", "),
                         o.fields()));
  };
  check_count("--initial", o.initial);
  check_count("--output", o.output);
  for (std::string const& path : o.output)
    if (!path.ends_with(".npy"))
      refuse(fmt::format(
          "--output {}: has another ending than .npy (fields are written as NumPy's arrays). Name it "
          ".npy.",
          path));
  if (!o.initial.empty() && !o.resume.empty())
    refuse("--initial with --resume is refused (the checkpoint has its fields). Drop one of them.");
  if (!o.initial.empty() && !o.grid.type.empty())
    refuse("--type with --initial is refused (the type of its numbers is that of the cells). Drop it.");
  if (o.initial.empty() && o.resume.empty() && o.grid.size.empty())
    refuse("a grid of unknown size. Give --size, or arrays with --initial.");
  if (o.steps.tolerance > 0 && o.steps.every == 0)
    refuse(
        "--tolerance without --every is refused (nobody would look at what a step changed). Give --every.");
  std::vector<NamedFile> written, read;
  for (std::string const& path : o.output) written.push_back({"--output", path});
  written.push_back({"--json", o.json});
  check_names(written, {{"--resume", o.resume}});
  written.push_back({"--checkpoint", o.steps.checkpoint});  // which may go on in place
  for (std::string const& path : o.initial) read.push_back({"--initial", path});
  check_names(written, read);
  o.gpu.check(c, o.ranks);
  o.provenance = provenance_of(c);
}

void add_steps(CLI::App& c, StepsWanted& steps) {
  c.add_option("--steps", steps.steps,
               "Steps from the initial fields on, those before a --resume counted too")
      ->required()
      ->check(whole_number(std::int64_t{0}, std::int64_t{1} << 53));
  c.add_option("--every", steps.every,
               "Look at what a step changed at multiples of it: lines, and `history` in JSON")
      ->check(whole_number(std::int64_t{1}));
  c.add_option(
       "--tolerance", steps.tolerance,
       "End where the change of a step is at most this, the root of the sum of squares of every field")
      ->check(real_number(false));
  c.add_option("--time-limit", steps.time_limit_s,
               "Seconds after which the steps end, with the fields they have")
      ->check(real_number(false));
  auto* const file = c.add_option("--checkpoint", steps.checkpoint,
                                  "Save the fields there in the end and when it is interrupted");
  c.add_option("--checkpoint-every", steps.checkpoint_every, "And at multiples of so many steps")
      ->check(whole_number(std::int64_t{1}))
      ->needs(file);
}

}  // namespace

void add_stencil(CLI::App& app, Arguments const& arguments, std::function<int()>& work) {
  auto o = std::make_shared<StencilWish>();
  CLI::App* c =
      app.add_subcommand("stencil", "Step a stencil on a grid: Jacobi, heat, wave, life, Gray-Scott");
  o->grid.add(*c);
  o->grid.add_boundary(*c);
  c->add_option("--initial", o->initial,
                "The first fields, .npy of fp32 or fp64: one file for each, in order")
      ->expected(1, 8);
  add_steps(*c, o->steps);
  c->add_option("--resume", o->resume,
                "Go on from a checkpoint, with the bits of a run without a pause; without --size its grid is "
                "taken from there");
  o->ranks.add(*c, "the grid", "as many threads as pay");
  o->dealt.add(*c);
  o->gpu.add(*c);
  c->add_option("--output", o->output, "Write the fields, .npy: one file for each, in order")->expected(1, 8);
  c->add_option("--json", o->json, "Write the result as JSON; - for standard output");
  c->add_flag("--quiet", o->quiet, "No lines of progress and no summary");
  c->footer(
      "Exit codes: 0 all steps or steady, 1 not finite, 2 usage, 3 bad input, 4 environment, peer lost or "
      "aborted.");
  c->callback([o, c, &arguments, &work] {
    work = [o, c, &arguments] {
      settle(*o, *c);
      choose_ranks(*o);
      return run_ranks(o->ranks, arguments,
                       [&](Transport& transport) { return stencil_on_rank(*o, transport); });
    };
  });
}

}  // namespace hostless
