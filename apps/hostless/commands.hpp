#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hostless {

using Arguments = std::vector<std::string>;

/// Thrown where rank 0 has printed the problem already; carries the exit code.
struct Reported {
  int exit_code;
};

// Each adds its subcommand, and sets `work` to what it does when it is the one chosen. `work` returns the
// exit code.
void add_solve(CLI::App& app, Arguments const& arguments, std::function<int()>& work);
void add_stencil(CLI::App& app, Arguments const& arguments, std::function<int()>& work);
void add_bench(CLI::App& app, Arguments const& arguments, std::function<int()>& work);
void add_generate(CLI::App& app, std::function<int()>& work);
void add_plan(CLI::App& app, std::function<int()>& work);
void add_predict(CLI::App& app, std::function<int()>& work);
void add_info(CLI::App& app, std::function<int()>& work);
void add_doctor(CLI::App& app, std::function<int()>& work);
void add_options(CLI::App& app, std::function<int()>& work);
void add_machine(CLI::App& app, Arguments const& arguments, std::function<int()>& work);
void add_report(CLI::App& app, std::function<int()>& work);

}  // namespace hostless
