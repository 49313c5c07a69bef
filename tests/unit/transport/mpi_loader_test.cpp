#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

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

TEST(MpiLoader, EachPluginLoadsItsOwnLibraryOrSaysWhyNot) {
  for (MpiPlugin const& plugin : mpi_plugins()) {
    char const* const says = plugin.vendor == MpiVendor::openmpi ? "Open MPI" : "MPICH";
    if (plugin.problem.empty()) {
      EXPECT_NE(plugin.library.find(says), std::string::npos) << plugin.library;
      EXPECT_TRUE(fs::exists(plugin.path));
    } else {
      EXPECT_NE(plugin.problem.find("lib"), std::string::npos) << plugin.problem;
    }
  }
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
