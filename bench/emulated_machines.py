"""Several machines on one: network namespaces with a host name and an address each, joined by a bridge, with links of a rate and a latency.

    with Machines(3, rate="100mbit", delay_us=50) as machines:
        done = machines.run([program, "--quiet"], ranks=2)    # 6 ranks of Open MPI (or mpi="mpich"), two a machine
        machines.bytes()                                      # what each link has received and sent

Needs root, `ip` and `tc`, and the MPI that is asked for. What a rank sends to another one of its machine goes by shared memory, all else over the link: each is limited in both directions. Everything is
taken down when the block ends: after errors, and after SIGINT, SIGTERM and SIGHUP too. Only a killed program leaves namespaces behind (`ip netns del`).
"""

import argparse
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from program import picture, program  # beside this file

NETWORK = "10.78.0"
ENDING = (signal.SIGTERM, signal.SIGHUP)  # Python raises KeyboardInterrupt for SIGINT itself
WAITING = (*ENDING, signal.SIGINT)  # till everything is taken down; of `ip` too, which inherits it
numbers = itertools.count(1)


def parser_of(description):
    """Options of what runs a hostless between such machines."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hostless", type=program)
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--machines", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=3, help="of each machine")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit-s", type=float, default=600, help="of each run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=picture)
    return parser


def bits_of(rate):
    """Bits a second of what `tc` calls "100mbit"."""
    return float(rate[:-4]) * {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[rate[-4:]]


def call(*words, check=True):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    if check and done.returncode != 0:
        raise OSError(f"{' '.join(words)}: {(done.stdout + done.stderr).strip()}")
    return done


def missing():
    """Why machines cannot be made here; empty: they can, and one was."""
    for program in ("ip", "tc", "unshare"):
        if shutil.which(program) is None:
            return f"there is no `{program}` here"
    if os.geteuid() != 0 or call("unshare", "--net", "--uts", "--mount", "true", check=False).returncode != 0:
        return "no namespaces here (root may make them, where the system allows it)"
    try:
        with Machines(1, "1gbit", 1) as machine:
            machine.bytes()
    except (OSError, StopIteration, subprocess.TimeoutExpired) as problem:
        return f"no machine could be made here: {problem}"
    return ""


def ended(number, _frame):
    raise SystemExit(128 + number)


class Machines:
    """`count` namespaces of one address each, and a bridge in one more.

    rate      of each link, each way, as `tc` has it ("100mbit"); "none": as fast as this machine is
    delay_us  from one machine to another; more where this machine is busy, because a program hands frames on (slow_bridge.py: not every kernel has `netem`)
    Errors    OSError  the system does not allow it, or has not the scheduler of packets: what it said
    """

    def __init__(self, count: int, rate: str = "none", delay_us: float = 0):
        self.rate, self.delay_us = rate, delay_us
        self.name = f"hostless{os.getpid()}n{next(numbers)}"
        self.spaces = [f"{self.name}-{k}" for k in range(1, count + 1)]
        self.bridge = f"{self.name}-b"
        self.slow_bridge = None

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="hostless-machines-"))
        self.handlers = {}
        if threading.current_thread() is threading.main_thread():
            self.handlers = {number: signal.signal(number, ended) for number in ENDING}
        try:
            self.make()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def make(self):
        call("ip", "netns", "add", self.bridge)
        if self.delay_us == 0:
            call("ip", "-n", self.bridge, "link", "add", "br0", "type", "bridge")
            call("ip", "-n", self.bridge, "link", "set", "br0", "up")
        for k, space in enumerate(self.spaces, 1):
            call("ip", "netns", "add", space)
            call("ip", "-n", space, "link", "set", "lo", "up")
            call("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{k}", "netns", self.bridge)
            call("ip", "-n", space, "addr", "add", f"{NETWORK}.{k}/24", "dev", "eth0")
            call("ip", "-n", space, "link", "set", "eth0", "up")
            call("ip", "-n", self.bridge, "link", "set", f"p{k}", *(("master", "br0") if self.delay_us == 0 else ()), "up")
            self.limit(space, "eth0")
            self.limit(self.bridge, f"p{k}")
        if self.delay_us > 0:
            self.delay()
        agent = self.folder / "agent"  # in the place of ssh: options, the host, and what it shall run
        agent.write_text(
            '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nk=${1##*.}\nshift\n'
            f'exec ip netns exec {self.name}-$k unshare --uts sh -c "hostname h$k; $*"\n'
        )
        agent.chmod(0o755)
        self.agent = str(agent)

    def delay(self):
        ports = [f"p{k}" for k in range(1, len(self.spaces) + 1)]
        words = ["ip", "netns", "exec", self.bridge, sys.executable, str(Path(__file__).with_name("slow_bridge.py")), str(self.delay_us), *ports]
        self.slow_bridge = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        if self.slow_bridge.stdout.readline().strip() != "ready":
            raise OSError("the bridge of links with a latency has ended (see above)")

    def limit(self, space, device):
        if self.rate != "none":
            call("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate, "burst", "16kb", "latency", "200ms")

    def end(self):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, WAITING)
        try:
            self.take_down()
        finally:
            for number, handler in self.handlers.items():
                signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def take_down(self):
        if self.slow_bridge:
            self.slow_bridge.kill()
            self.slow_bridge.wait()
            self.slow_bridge.stdout.close()
        self.kill_all(*self.spaces, self.bridge)
        for space in (*self.spaces, self.bridge):
            call("ip", "netns", "del", space, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def kill_all(*spaces):
        for space in spaces:
            for _ in range(100):  # one may start another while it is looked for
                processes = call("ip", "netns", "pids", space, check=False).stdout.split()
                for process in processes:
                    try:
                        os.kill(int(process), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                if not processes:
                    break

    def hosts(self, ranks):
        return ",".join(f"{NETWORK}.{k}:{ranks}" for k in range(1, len(self.spaces) + 1))

    def launcher(self, mpi, ranks, environment):
        """The words in front of a program, and the environment that they want."""
        everybody = str(ranks * len(self.spaces))
        if mpi == "mpich":
            words = ["mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", self.agent, "-hosts", self.hosts(ranks), "-iface", "eth0", "-n", everybody]
            wanted = {"FI_PROVIDER": "tcp", "FI_TCP_IFACE": "eth0", "UCX_NET_DEVICES": "eth0", "UCX_TLS": "tcp,self"} | environment
            return words + [word for name, value in wanted.items() for word in ("-genv", name, value)], {}
        words = ["mpirun.openmpi", "-H", self.hosts(ranks), "-n", everybody, "--map-by", "slot", "--bind-to", "none", "--oversubscribe", "--mca", "plm_rsh_agent", self.agent]
        words += ["--mca", "orte_keep_fqdn_hostnames", "1", "--mca", "btl", "tcp,self,vader", "--mca", "mpi_yield_when_idle", "1"]
        for part in ("btl", "oob"):
            words += ["--mca", f"{part}_tcp_if_include", f"{NETWORK}.0/24"]
        words += [word for name, value in environment.items() for word in ("-x", f"{name}={value}")]
        return words, {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def run(self, command, ranks, mpi="openmpi", environment=None, timeout=300):
        """An MPI program over all machines.

        ranks        of each machine: 0 to ranks-1 on the first, and so on
        environment  variables of the ranks
        Returns what it ended with; its processes are gone. Errors  subprocess.TimeoutExpired
        """
        words, wanted = self.launcher(mpi, ranks, environment or {})
        first = ["ip", "netns", "exec", self.spaces[0], "unshare", "--uts", "sh", "-c", 'hostname h1; exec "$@"', "sh"]
        process = subprocess.Popen(
            [*first, *words, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **wanted)
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
            self.kill_all(*self.spaces)  # ranks go on where their launcher was killed
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def bytes(self):
        """[machines] (received, sent) by its link so far, with the headers of packets."""
        counts = []
        for space in self.spaces:
            lines = call("ip", "netns", "exec", space, "cat", "/proc/net/dev").stdout.splitlines()
            words = next(line.split(":")[1].split() for line in lines if line.strip().startswith("eth0:"))
            counts.append((int(words[0]), int(words[8])))
        return counts
