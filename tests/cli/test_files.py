"""Files that are read and written: what cannot be read is bad input, what is written is whole or not there."""

import json
import os
import signal
import struct
import subprocess
import threading
import unittest

from hostless_command import COMMAND, SLOWEST, Command, chain, market, market_vector, npy, surroundings

PROBLEM = ("solve", "--generate", "poisson2d", "--size", "12")


def readers(name):
    """Words with which the command reads the file `name`, whatever it holds."""
    return (("solve", name), ("info", name), ("plan", name), ("bench", "halo", name), ("plan", "--load", name),
            ("solve", "A.mtx", name), ("solve", "A.mtx", "b.npy", name), (*PROBLEM, name),
            (*PROBLEM, "--partition", f"file:{name}", "--ranks", 2), (*PROBLEM, "--resume", name))


class Files(Command):
    def setUp(self):
        super().setUp()
        self.write("A.mtx", market(chain(4), 4))
        (self.folder / "b.npy").write_bytes(npy([1.0, 2.0, 3.0, 4.0]))


class EndOfOptions(Files):
    def test_what_is_behind_it_are_files(self):
        self.write("-A.mtx", market(chain(4), 4))
        (self.folder / "--help").write_bytes(npy([1.0, 2.0, 3.0, 4.0]))
        expected = json.loads(self.run_it("solve", "A.mtx", "b.npy", "--json", "-").stdout)["residual_history"]
        for words in (("--", "A.mtx", "b.npy"), ("--", "-A.mtx", "--help"), ("A.mtx", "--", "b.npy"), ("-A.mtx", "--", "b.npy")):
            if words[0] == "-A.mtx":
                self.run_it("solve", "--json", "-", *words, code=2)
                continue
            for ranks in ((), ("--transport", "processes", "--ranks", 2)):
                solved = json.loads(self.run_it("solve", "--json", "-", *ranks, *words).stdout)
                self.assertEqual(solved["status"], "converged")
                if not ranks:
                    self.assertEqual(solved["residual_history"], expected)
        self.assertIn("4 rows", self.run_it("info", "--", "-A.mtx").stdout)
        self.run_it("generate", "poisson1d", "--size", 4, "-o", "B.mtx", "--")
        self.assertIn("./--json", self.run_it("info", "--", "--json", code=3).stderr)


class Unreadable(Files):
    def refused_everywhere(self, name, says):
        for words in readers(name):
            with self.subTest(words=words):
                done = subprocess.run([COMMAND, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, env=surroundings(), timeout=SLOWEST)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertTrue(done.stderr.startswith(f"hostless: {name}: "), done.stderr)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_files_that_are_not_there(self):
        self.refused_everywhere("absent", "(No such file or directory). Check the name.")

    def test_names_below_a_file(self):
        self.refused_everywhere("A.mtx/below", "(Not a directory). Check the name.")

    def test_folders(self):
        (self.folder / "folder").mkdir()
        self.refused_everywhere("folder", "is a folder")

    def test_links_that_lead_in_a_circle(self):
        os.symlink("circle", self.folder / "circle")
        self.refused_everywhere("circle", "Check the name.")

    def test_devices(self):
        self.refused_everywhere("/dev/null", "is not a regular file but a device")

    def test_pipes_that_nobody_writes_to(self):
        os.mkfifo(self.folder / "pipe")
        self.refused_everywhere("pipe", "is not a regular file but a pipe")

    def test_pipes_under_several_ranks(self):
        os.mkfifo(self.folder / "pipe")
        for transport in ("threads", "processes"):
            with self.subTest(transport=transport):
                self.assertIn("a pipe", self.refused(3, "solve", "pipe", "--ranks", 2, "--transport", transport))

    def test_what_a_shell_passes_as_a_file(self):
        done = subprocess.run(["bash", "-c", f'exec "{COMMAND}" solve <(cat A.mtx)'], cwd=self.folder, text=True,
                              capture_output=True, env=surroundings(), timeout=SLOWEST)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Write what comes from it to a file", done.stderr)
        with open(self.folder / "A.mtx", encoding="ascii") as file:  # standard input that is a file is one
            done = subprocess.run([COMMAND, "solve", "/dev/stdin"], stdin=file, capture_output=True, env=surroundings(),
                                  timeout=SLOWEST, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_no_file_stays_usage(self):
        self.refused(2, "solve")
        self.refused(2, *PROBLEM, "--partition", "file:")


class Written(Files):
    """Results, plans, vectors and checkpoints."""

    def writers(self):
        """(words, name): what writes the file `name`."""
        return (((*PROBLEM, "--json", "result.json"), "result.json"), ((*PROBLEM, "--output", "x.npy"), "x.npy"),
                (("plan", *PROBLEM[1:], "--ranks", 2, "--save", "plan.json"), "plan.json"),
                (("info", "A.mtx", "--json", "info.json"), "info.json"),
                ((*PROBLEM, "--checkpoint", "kept", "--checkpoint-every", 5), "kept"),
                (("generate", "poisson2d", "--size", 5, "-o", "G.mtx"), "G.mtx"))

    def test_nobody_is_written_through_a_planted_link(self):
        for words, name in self.writers():
            with self.subTest(name=name):
                self.write("victim", "untouched")
                os.symlink("victim", self.folder / (name + ".partial"))
                self.run_it(*words)
                self.assertEqual(self.content("victim"), b"untouched")
                self.assertTrue((self.folder / name).is_file())
                os.unlink(self.folder / (name + ".partial"))
                self.assertEqual([f for f in os.listdir(self.folder) if f.endswith(".partial")], [])

    def test_a_full_disk_leaves_the_older_file_and_nothing_else(self):
        for words, name in self.writers():
            with self.subTest(name=name):
                self.write(name, "older")
                before = sorted(os.listdir(self.folder))
                done = self.run_it(*words, code=None, launcher=("sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""))
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertIn(name, done.stderr)
                self.assertEqual(self.content(name), b"older")
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_a_link_stays_one_and_what_it_leads_to_is_replaced(self):
        (self.folder / "there").mkdir()
        for words, name in self.writers():
            with self.subTest(name=name):
                os.symlink(f"there/{name}", self.folder / name)
                for _ in range(2):  # leads to nothing, and to a file
                    self.run_it(*words)
                    self.assertTrue((self.folder / name).is_symlink())
                    self.assertGreater((self.folder / "there" / name).stat().st_size, 0)
        self.assertEqual(len(os.listdir(self.folder / "there")), len(self.writers()))

    def test_permissions_are_never_wider_than_those_of_the_older_file(self):
        for words, name in self.writers():
            with self.subTest(name=name):
                self.write(name, "secret")
                os.chmod(self.folder / name, 0o600)
                self.run_it(*words)
                self.assertEqual((self.folder / name).stat().st_mode & 0o777, 0o600)

    def test_devices_and_pipes_are_written_directly(self):
        self.run_it(*PROBLEM, "--json", "/dev/null")
        done = self.run_it(*PROBLEM, "--quiet", "--json", "/dev/stdout")
        self.assertEqual(json.loads(done.stdout)["status"], "converged")
        os.mkfifo(self.folder / "pipe")
        got = []
        reader = threading.Thread(target=lambda: got.append((self.folder / "pipe").read_text()))
        reader.start()
        self.run_it(*PROBLEM, "--json", "pipe")
        reader.join(SLOWEST)
        self.assertEqual(json.loads(got[0])["status"], "converged")

    def test_standard_output_that_is_a_file_stays_that_file(self):
        with open(self.folder / "log", "w", encoding="ascii") as log:
            log.write("before\n")
            log.flush()
            subprocess.run([COMMAND, *PROBLEM, "--no-bandwidth", "--json", "/dev/stdout"], cwd=self.folder, stdout=log,
                           check=True, env=surroundings(), timeout=SLOWEST)
            log.write("after\n")
        text = (self.folder / "log").read_text()
        self.assertTrue(text.startswith("before\nconverged after"), text[:80])
        self.assertTrue(text.endswith("}\nafter\n"), text[-80:])

    def test_a_pipe_that_nobody_reads_ends_the_command(self):
        os.mkfifo(self.folder / "pipe")
        self.assertIn("pipe: cannot open it", self.refused(4, *PROBLEM, "--quiet", "--no-bandwidth", "--json", "pipe"))


class Checkpoints(Files):
    def test_a_state_that_no_solve_has_is_refused(self):
        """Its checksums are right: whoever made it meant it."""
        self.run_it(*PROBLEM, "--checkpoint", "c", "--checkpoint-every", 5)
        whole = self.content("c")
        words = list(struct.unpack(f"<{len(whole) // 8}Q", whole))
        head = words[2]
        iteration = 22 + 12  # behind identity and 12 other numbers of the state
        self.assertEqual(words[21], words[iteration] + 1)  # a history of one more
        for value in (2**64 - 1, 2**63, 10**9, words[iteration] + 1):
            with self.subTest(iteration=value):
                bad = words.copy()
                bad[iteration] = value
                bad[3] = 0
                bad[3] = checksum(bad[:head])
                (self.folder / "bad").write_bytes(struct.pack(f"<{len(bad)}Q", *bad))
                says = self.refused(3, *PROBLEM, "--resume", "bad")
                self.assertTrue(says.startswith("bad: "), says)
                self.assertIn("iteration", says)
        bad[iteration] = words[iteration]
        bad[3] = 0
        bad[3] = checksum(bad[:head])
        (self.folder / "good").write_bytes(struct.pack(f"<{len(bad)}Q", *bad))
        self.run_it(*PROBLEM, "--resume", "good")  # the sum is computed as the program does


def checksum(words):
    value = 1469598103934665603
    for word in words:
        value = ((value ^ word) * 1099511628211) & (2**64 - 1)
        value ^= value >> 32
    return value


if __name__ == "__main__":
    unittest.main()
