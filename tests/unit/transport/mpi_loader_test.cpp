#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "hostless/base/deadline.hpp"
#include "hostless/transport/mpi.hpp"

namespace hostless {
namespace {

namespace fs = std::filesystem;

struct Variable {
  std::string name, value;
};

// Sets variables of the environment for one test; an empty value removes.
class Environment {
 public:
  explicit Environment(std::vector<Variable> const& wanted) {
    for (auto const& [name, value] : wanted) {
      char const* const before = std::getenv(name.c_str());
      before_.push_back({name, before == nullptr ? "" : before});
      set(name, value);
    }
  }
  ~Environment() {
    for (auto const& [name, value] : before_) set(name, value);
  }

 private:
  static void set(std::string const& name, std::string const& value) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::vector<Variable> before_;
};

std::vector<Variable> with(std::string const& name, std::string const& value) {
  std::vector<Variable> all;
  for (char const* n :
       {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMI_FD", "PMIX_RANK", "HOSTLESS_MPI"}) {
    all.push_back({n, n == name ? value : ""});
  }
  return all;
}

TEST(MpiLoader, KnowsWhoStartedTheProcess) {
  struct {
    char const* variable;
    std::optional<MpiVendor> vendor;
    bool started;
  } const rows[] = {{"", std::nullopt, false},
                    {"OMPI_COMM_WORLD_SIZE", MpiVendor::openmpi, true},
                    {"PMI_RANK", MpiVendor::mpich, true},
                    {"PMI_SIZE", MpiVendor::mpich, true},
                    {"PMIX_RANK", MpiVendor::openmpi, true}};
  for (auto const& row : rows) {
    Environment const environment(with(row.variable, "2"));
    EXPECT_EQ(started_by_mpi(), row.started) << row.variable;
    EXPECT_EQ(mpi_vendor_of_this_process(), row.vendor) << row.variable;
  }
}

TEST(MpiLoader, CanBeTold) {
  {
    Environment const environment(with("HOSTLESS_MPI", "mpich"));
    EXPECT_EQ(mpi_vendor_of_this_process(), MpiVendor::mpich);
    EXPECT_FALSE(started_by_mpi());
  }
  {
    Environment const environment(with("HOSTLESS_MPI", "openmpi"));
    EXPECT_EQ(mpi_vendor_of_this_process(), MpiVendor::openmpi);
  }
  Environment const environment(with("HOSTLESS_MPI", "lam"));
  try {
    mpi_vendor_of_this_process();
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage);
    EXPECT_NE(std::string(e.what()).find("lam"), std::string::npos);
  }
}

class Folder {
 public:
  Folder() { EXPECT_NE(mkdtemp(path_.data()), nullptr); }
  ~Folder() { fs::remove_all(path_); }
  operator fs::path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "hostless-test-XXXXXX";
};

/// A file of the name of MPICH's plugin, which is no library.
fs::path plugin_in(fs::path const& folder, mode_t mode) {
  fs::path const file = folder / "libhostless_mpi_mpich.so";
  std::ofstream(file) << "no library";
  chmod(file.c_str(), mode);
  return file;
}

MpiPlugin found(MpiVendor vendor) {
  auto const all = mpi_plugins();
  return *std::find_if(all.begin(), all.end(), [&](MpiPlugin const& p) { return p.vendor == vendor; });
}

// The files that this build has made; empty where it found no such MPI.
#ifndef HOSTLESS_BUILT_OPENMPI
#define HOSTLESS_BUILT_OPENMPI ""
#endif
#ifndef HOSTLESS_BUILT_MPICH
#define HOSTLESS_BUILT_MPICH ""
#endif

struct Expected {
  MpiVendor vendor;
  fs::path built;
  char const *says, *package;
};
Expected const expected[] = {{MpiVendor::openmpi, HOSTLESS_BUILT_OPENMPI, "Open MPI v", "libopenmpi-dev"},
                             {MpiVendor::mpich, HOSTLESS_BUILT_MPICH, "MPICH Version", "libmpich-dev"}};

TEST(MpiLoader, EachPluginOfThisBuildLoadsItsOwnLibrary) {
  ASSERT_EQ(mpi_plugins().size(), std::size(expected));
  for (Expected const& one : expected) {
    MpiPlugin const plugin = found(one.vendor);
    if (one.built.empty()) {
      EXPECT_EQ(plugin.path, "");
      EXPECT_EQ(plugin.library, "");
      EXPECT_NE(plugin.problem.find(" was not found next to the program"), std::string::npos)
          << plugin.problem;
      EXPECT_NE(plugin.problem.find(std::string("with ") + one.package + " installed"), std::string::npos)
          << plugin.problem;
    } else {
      EXPECT_EQ(plugin.problem, "");
      EXPECT_TRUE(fs::exists(one.built) && fs::equivalent(plugin.path, one.built)) << plugin.path;
      EXPECT_EQ(plugin.library.rfind(one.says, 0), 0u) << plugin.library;
    }
  }
}

TEST(MpiLoader, APluginThatCannotBeLoadedIsNoPluginThatLoads) {
  Folder const made;
  fs::path const folder = made;
  plugin_in(folder, 0644);
  Environment const environment({Variable{"HOSTLESS_PLUGIN_DIR", folder.string()}});
  MpiPlugin const plugin = found(MpiVendor::mpich);
  EXPECT_EQ(plugin.library, "");
  EXPECT_NE(plugin.problem.find(" cannot be loaded: "), std::string::npos) << plugin.problem;
}

TEST(MpiLoader, AFileThatIsNoPluginIsReportedWithItsPackage) {
  Folder const made;
  fs::path const folder = made;
  fs::path const file = plugin_in(folder, 0644);
  Environment const environment({Variable{"HOSTLESS_PLUGIN_DIR", folder.string()}});
  MpiPlugin const plugin = found(MpiVendor::mpich);
  EXPECT_EQ(plugin.path, file.string());
  EXPECT_NE(plugin.problem.find("libmpich12"), std::string::npos) << plugin.problem;
  try {
    open_mpi_transport(MpiVendor::mpich);
    ADD_FAILURE() << "no error";
  } catch (Error const& e) {
    EXPECT_EQ(e.code(), ErrorCode::environment) << e.what();
  }
}

// An older installation may lie on the way.
TEST(MpiLoader, APluginOfAnotherVersionIsPassedOver) {
  Folder const made;
  fs::path const folder = made;
  fs::copy_file(HOSTLESS_OTHER_VERSION, folder / "libhostless_mpi_mpich.so");
  bool const is_built = found(MpiVendor::mpich).problem.empty();
  Environment const environment({Variable{"HOSTLESS_PLUGIN_DIR", folder.string()}});
  MpiPlugin const plugin = found(MpiVendor::mpich);
  if (is_built) {
    EXPECT_EQ(plugin.problem, "");
    EXPECT_NE(plugin.path, folder / "libhostless_mpi_mpich.so");
  } else {
    EXPECT_NE(plugin.problem.find("another version"), std::string::npos) << plugin.problem;
  }
}

TEST(MpiLoader, APluginThatNeverLoadsIsReportedAtTheDeadline) {
  Environment const environment({Variable{"HOSTLESS_PLUGIN_DIR", HOSTLESS_PLUGIN_THAT_HANGS},
                                 Variable{"HOSTLESS_DEADLINE_SCALE", "0.02"}});
  auto const begin = Clock::now();
  MpiPlugin const plugin = found(MpiVendor::mpich);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(50));
  EXPECT_NE(plugin.path.find("plugin_that_hangs"), std::string::npos) << plugin.path;
  EXPECT_NE(plugin.problem.find("was not loaded within the deadline"), std::string::npos) << plugin.problem;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

TEST(MpiLoader, AFileThatAnybodyCanWriteIsNotLoaded) {
  Folder const made;
  fs::path const folder = made;
  fs::path const file = plugin_in(folder, 0666);
  Environment const environment({Variable{"HOSTLESS_PLUGIN_DIR", folder.string()}});
  EXPECT_NE(found(MpiVendor::mpich).path, file.string());
}

TEST(MpiLoader, WhatSomebodyElseHasPutIntoANamedFolderIsLoaded) {
  Folder const made;
  fs::path const folder = made;
  fs::path const file = plugin_in(folder, 0644);
  if (chown(file.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "this user cannot give files away";
  Environment const environment({Variable{"HOSTLESS_PLUGIN_DIR", folder.string()}});
  EXPECT_EQ(found(MpiVendor::mpich).path, file.string());
}

TEST(MpiLoader, WritesTheCommandLine) {
  Folder const made;
  fs::path const folder = made;
  for (char const* program : {"mpirun.openmpi", "mpiexec.mpich"}) {
    std::ofstream(folder / program) << "#!/bin/sh\n";
    chmod((folder / program).c_str(), 0755);
  }
  Environment const environment({Variable{"PATH", "/nowhere:" + folder.string()}});
  auto const open = mpirun_command(MpiVendor::openmpi, 3, {"prog", "a b"});
  EXPECT_EQ(open.front(), (folder / "mpirun.openmpi").string());
  EXPECT_NE(std::find(open.begin(), open.end(), "--oversubscribe"), open.end());
  EXPECT_EQ(std::find(open.begin(), open.end(), "--allow-run-as-root") != open.end(), geteuid() == 0);
  EXPECT_EQ(std::vector<std::string>(open.end() - 4, open.end()),
            (std::vector<std::string>{"-n", "3", "prog", "a b"}));
  EXPECT_EQ(mpirun_command(MpiVendor::mpich, 2, {"prog"}),
            (std::vector<std::string>{(folder / "mpiexec.mpich").string(), "-n", "2", "prog"}));
}

// One's own Open MPI in front of Debian's, and MPICH's mpirun in front of both.
TEST(MpiLoader, TheFirstFolderOfThePathStartsItsOwnRanks) {
  Folder const made;
  fs::path const folder = made;
  for (char const* program :
       {"mpich/mpirun", "own/mpirun", "own/ompi_info", "debian/mpirun.openmpi", "debian/mpirun"}) {
    fs::create_directories((folder / program).parent_path());
    std::ofstream(folder / program) << "#!/bin/sh\n";
    chmod((folder / program).c_str(), 0755);
  }
  auto const started = [&](std::vector<std::string> const& folders) {
    std::string path;
    for (std::string const& one : folders) path += (path.empty() ? "" : ":") + (folder / one).string();
    Environment const environment({Variable{"PATH", path}});
    return fs::relative(mpirun_command(MpiVendor::openmpi, 1, {"prog"}).front(), folder).string();
  };
  EXPECT_EQ(started({"mpich", "own", "debian"}), "own/mpirun");
  EXPECT_EQ(started({"mpich", "debian", "own"}), "debian/mpirun.openmpi");
  EXPECT_EQ(started({"mpich"}), "mpich/mpirun") << "nothing else is there";
}

TEST(MpiLoader, NamesThePackageOfAMissingLauncher) {
  Environment const environment({Variable{"PATH", "/nowhere"}});
  for (auto const& [vendor, package] :
       {std::pair(MpiVendor::openmpi, "openmpi-bin"), std::pair(MpiVendor::mpich, "mpich")}) {
    try {
      mpirun_command(vendor, 2, {"prog"});
      ADD_FAILURE() << "no error";
    } catch (Error const& e) {
      EXPECT_EQ(e.code(), ErrorCode::environment);
      EXPECT_NE(std::string(e.what()).find(package), std::string::npos) << e.what();
    }
  }
}

TEST(MpiLoader, RefusesAnEmptyCommand) {
  EXPECT_THROW(mpirun_command(MpiVendor::mpich, 0, {"prog"}), Error);
  EXPECT_THROW(mpirun_command(MpiVendor::mpich, 1, {}), Error);
}

// Exit handlers are what would call MPI_Finalize; buffered text must not be lost with them.
TEST(LeaveProcess, FlushesAndSkipsTheExitHandlers) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t const pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    std::atexit([] { _exit(99); });
    std::printf("said");
    leave_process(4);
  }
  close(ends[1]);
  char text[16] = "";
  EXPECT_EQ(read(ends[0], text, sizeof text), 4);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 4);
  EXPECT_STREQ(text, "said");
}

}  // namespace
}  // namespace hostless
