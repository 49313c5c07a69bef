// Which files of a plugin's name may be loaded: they are looked for below the folder of this program.
#include "base/plugin_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace hostless {
namespace {

namespace fs = std::filesystem;

constexpr char const* name = "libhostless_test_plugin.so";
constexpr uid_t somebody = 12345;

class PluginFile : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("HOSTLESS_PLUGIN_DIR");
    fs::remove_all(prefix);
    put(folder);
  }
  void TearDown() override {
    unsetenv("HOSTLESS_PLUGIN_DIR");
    fs::remove_all(prefix);
  }
  static fs::path put(fs::path const& where) {
    fs::create_directories(where);
    std::ofstream(where / name) << "code";
    return where / name;
  }
  void expect_refused(std::string const& why) {
    PluginFiles const found = find_plugin_files(name);
    EXPECT_TRUE(found.paths.empty()) << found.paths[0];
    EXPECT_NE(found.refused.find(why), std::string::npos) << found.refused;
  }
  void expect_found(fs::path const& where) {
    PluginFiles const found = find_plugin_files(name);
    ASSERT_FALSE(found.paths.empty()) << found.refused;
    EXPECT_EQ(found.paths[0], where / name);
  }

  fs::path const here = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path const prefix = here / "lib", folder = prefix / "hostless";
};

TEST_F(PluginFile, OfThePrefixIsFound) { expect_found(folder); }

TEST_F(PluginFile, ThatAnybodyMayWriteIsLeft) {
  chmod((folder / name).c_str(), 0666);
  expect_refused("anybody may write it");
}

TEST_F(PluginFile, InAFolderThatAnybodyMayWriteIsLeft) {
  chmod(folder.c_str(), 0777);
  expect_refused("anybody may write its folder " + folder.string());
  chmod(folder.c_str(),
        01777);  // another name may be added there: not this one, but this one may be the other
  expect_refused("anybody may write its folder");
  chmod(folder.c_str(), 0755);
  chmod(prefix.c_str(), 0777);
  expect_refused("anybody may write its folder " + prefix.string());
  chmod(prefix.c_str(), 01777);  // as /tmp: who owns what lies in it keeps it
  expect_found(folder);
}

TEST_F(PluginFile, OfSomebodyElseIsLeft) {
  if (chown((folder / name).c_str(), somebody, somebody) != 0)
    GTEST_SKIP() << "this user cannot give files away";
  expect_refused("it belongs to user 12345");
  ASSERT_EQ(chown((folder / name).c_str(), geteuid(), getegid()), 0);
  ASSERT_EQ(chown(prefix.c_str(), somebody, somebody), 0);
  expect_refused("its folder " + prefix.string() + " belongs to user 12345");
}

// What a link names is what is loaded.
TEST_F(PluginFile, IsJudgedWhereALinkLeads) {
  fs::path const other = prefix / "open";
  put(other);
  chmod(other.c_str(), 0777);
  fs::remove(folder / name);
  fs::create_symlink(other / name, folder / name);
  expect_refused("anybody may write its folder " + other.string());
  chmod(other.c_str(), 0755);
  expect_found(other);
}

TEST_F(PluginFile, InTheNamedFolderComesFirst) {
  fs::path const named = prefix / "named";
  put(named);
  chmod(named.c_str(), 0777);
  setenv("HOSTLESS_PLUGIN_DIR", named.c_str(), 1);
  PluginFiles const found = find_plugin_files(name);
  EXPECT_EQ(found.paths, (std::vector<fs::path>{named / name, folder / name}));
}

// Every folder is asked once, whatever its names.
TEST_F(PluginFile, IsNamedOnce) {
  setenv("HOSTLESS_PLUGIN_DIR", (folder / ".." / "hostless").c_str(), 1);
  EXPECT_EQ(find_plugin_files(name).paths, (std::vector<fs::path>{folder / name}));
}

}  // namespace
}  // namespace hostless
