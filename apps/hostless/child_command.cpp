#include "child_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/child.hpp"
#include "hostless/base/error.hpp"
#include "signals.hpp"

namespace hostless {
namespace {

// A file without a name, which goes with it.
class Captured {
 public:
  explicit Captured(bool wanted) : file_(wanted ? std::tmpfile() : nullptr) {
    if (wanted && file_ == nullptr)
      throw Error(ErrorCode::environment,
                  "no temporary file can be made (what a command prints is kept there). Make room in /tmp.");
  }
  Captured(Captured const&) = delete;
  Captured& operator=(Captured const&) = delete;
  ~Captured() {
    if (file_ != nullptr) std::fclose(file_);
  }
  int descriptor(int other) const { return file_ == nullptr ? other : fileno(file_); }
  std::string text() const {
    if (file_ == nullptr) return {};
    std::string all;
    char some[4096];
    std::rewind(file_);
    while (std::size_t const got = std::fread(some, 1, sizeof some, file_)) all.append(some, got);
    return all;
  }

 private:
  std::FILE* file_;
};

// Between fork and exec of a process with one thread of its own at work.
[[noreturn]] void become(ChildCommand const& command, Captured const& output, Captured const& errors) {
  int const nowhere = open("/dev/null", O_RDWR);  // bounded: a device
  dup2(nowhere, STDIN_FILENO);
  dup2(output.descriptor(nowhere), STDOUT_FILENO);
  dup2(errors.descriptor(nowhere), STDERR_FILENO);
  for (auto const& [name, value] : command.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (std::string const& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

// Asked first, because launchers have ranks and folders to tidy up.
void end_in_order(pid_t child) {
  constexpr double grace_s = 2;
  kill(-child, SIGTERM);
  static_cast<void>(wait_for_child(child, Deadline::after(grace_s)));
  end_child(child, true);  // and what is left of its group
}

}  // namespace

std::string this_program() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none).string();
}

ChildEnd run_quietly(ChildCommand const& command) {
  Captured const output(command.is_heard), errors(command.is_heard);
  EndsLater const until_it_is_known;  // who ends this command ends the child too, from its first moment on
  pid_t const parent = getpid(), child = fork();
  if (child < 0) return {0, "no process can be started", {}, {}};
  if (child == 0) {
    setpgid(0, 0);
    // Who is killed, or hung up, tells nobody: launchers hear it so, and end their ranks.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    until_it_is_known.as_any_program();
    become(command, output, errors);
  }
  setpgid(child, child);  // as the child does: whoever comes first
  take_along(child);
  until_it_is_known.over();
  auto const status = wait_for_child(child, Deadline::after(command.longest_s), command.nap_s);
  if (!status) end_in_order(child);
  take_along(0);
  ChildEnd end{0, {}, output.text(), errors.text()};
  if (!status) {
    end.problem = fmt::format("it did not end within {} s", command.longest_s);
  } else if (WIFSIGNALED(*status)) {
    end.problem = fmt::format("it ended with signal {}", WTERMSIG(*status));
  } else {
    end.code = WEXITSTATUS(*status);
  }
  return end;
}

}  // namespace hostless
