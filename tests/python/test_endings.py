"""Interpreters that end and processes that fork while hostless is at work."""

import subprocess
import sys

import pytest


def script(text, seconds=600):
    """What a program of its own prints; it must end by itself, with exit code 0 and nothing on standard error."""
    start = "import atexit, os, sys, threading, time, numpy as np, hostless\n"
    done = subprocess.run([sys.executable, "-c", text if "\nimport " in text else start + text], capture_output=True, text=True,
                          timeout=seconds, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("work", [
    "hostless.generate('poisson2d', 20)",
    "hostless.cg(A, b, rtol=1e-3, maxiter=3)",
    "hostless.plan(A)",
    "hostless.write(os.devnull + '/a.mtx', A)",
])
def test_whoever_goes_on_when_the_interpreter_ends_is_refused(work):
    script(f"""
A = b = None
if "A" in {work!r}:
    A, b = hostless.generate("poisson2d", 30), np.ones(900)
def again():
    while True:
        try:
            {work}
        except Exception:
            pass
for _ in range(2):
    threading.Thread(target=again, daemon=True).start()
time.sleep(0.3)
""")


def test_whoever_comes_back_too_late_is_left_where_it_is():
    # As if a minute had gone: threads come back from C++ when the interpreter has gone on to end.
    assert script("""
hostless._PATIENCE_S = 0.0
A, b = hostless.generate("poisson2d", 60), np.ones(3600)
def again(work):
    while True:
        work()
inside = threading.Event()
def thinks(x):
    inside.set()
    time.sleep(0.05)
for work in (lambda: hostless.generate("poisson2d", 20), lambda: hostless.cg(A, b, rtol=1e-12),
             lambda: hostless.cg(A, b, callback=thinks)):
    threading.Thread(target=again, args=(work,), daemon=True).start()
inside.wait(300)
class Late:  # goes with the interpreter, when nobody gets the GIL any more but for moments
    def __del__(self, sleep=time.sleep):
        sleep(0.3)
sys.late = Late()
print("end")
""") == "end\n"


def test_the_end_waits_for_a_thread_no_longer_than_said_and_obeys_signals():
    script("""
import signal, threading, time, numpy as np, hostless
class Interrupted(Exception):
    pass
def interrupted(*_):
    raise Interrupted
signal.signal(signal.SIGALRM, interrupted)
A, b = hostless.generate("poisson2d", 30), np.ones(900)
inside = threading.Event()
threading.Thread(target=lambda: hostless.cg(A, b, callback=lambda x: (inside.set(), time.sleep(1000))), daemon=True).start()
inside.wait(300)
begin = time.monotonic()
hostless._core.end_all(0.2)
assert 0.2 <= time.monotonic() - begin < 240
try:
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    hostless._core.end_all(1000)
    raise SystemExit("nobody heard the signal")
except Interrupted:
    pass
assert time.monotonic() - begin < 500
hostless._PATIENCE_S = 0.0
""")


def test_handlers_of_the_program_may_solve_when_the_interpreter_ends():
    assert script("""
import atexit
late = {}
def before():
    print("before", late["matrix"].solve(late["b"])[1], late["cg"](late["A"], late["b"])[1])
    large = late["generate"]("poisson7", 110)  # longer than threads take between looks at the end
    print("before", late["Matrix"](large).ranks)
atexit.register(before)
import threading, numpy as np, hostless
A, b = hostless.generate("poisson2d", 30), np.ones(900)
late.update(A=A, b=b, cg=hostless.cg, generate=hostless.generate, Matrix=hostless.Matrix)
late["matrix"] = matrix = hostless.Matrix(A, ranks=2)
def after():
    print("after", matrix.solve(b)[1], hostless.cg(A, b)[1])
atexit.register(after)
assert matrix.solve(b)[1] == 0
""") == "after 0 0\nbefore 0 0\nbefore 1\n"


def test_other_threads_are_refused_while_later_handlers_run():
    assert script("""
import atexit, threading
def refused():
    try:
        hostless.cg(A, b)
    except hostless.UsageError as problem:
        print(problem)
def before():
    thread = threading.Thread(target=refused)
    thread.start()
    thread.join()
atexit.register(before)
import numpy as np, hostless
A, b = hostless.generate("poisson2d", 30), np.ones(900)
""").startswith("the interpreter has ended (nothing begins any more).")


@pytest.mark.parametrize("first", ["pass", "hostless.cg(hostless.generate('poisson2d', 9), np.ones(81))"])
def test_a_child_ends_at_once_whatever_others_were_at(first):
    script(f"""
{first}
hostless.cg, hostless.generate("poisson2d", 3)  # loaded before: a child would wait for who loads
def again():
    try:
        while True:
            hostless.generate("poisson7", 40)
    except hostless.Error:
        pass
for _ in range(3):  # one of them is away whenever somebody looks
    threading.Thread(target=again, daemon=True).start()
time.sleep(0.3)
begin = time.monotonic()
child = os.fork()
if child == 0:
    assert hostless.cg(hostless.generate("poisson2d", 9), np.ones(81))[1] == 0  # it has an interpreter of its own
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert time.monotonic() - begin < 400
""")


def test_a_child_of_a_callback_counts_its_own_work_alone():
    script("""
A, b = hostless.generate("poisson2d", 30), np.ones(900)
def callback(x):
    if callback.child is None:
        callback.child = os.fork()
        if callback.child == 0:
            raise SystemExit(3)
callback.child = None
try:
    hostless.cg(A, b, callback=callback)
except SystemExit:
    # Away has come back in the child, where nobody counted it: the end still waits for what is away there.
    inside, begun = threading.Event(), []
    def thinks(x):
        inside.set()
        while not begun or time.monotonic() - begun[0] < 0.3:
            time.sleep(0.01)
    def work():  # it may come back, and be refused, before the process has ended
        try:
            hostless.cg(A, b, callback=thinks, maxiter=1)
        except Exception:
            pass
    import contextlib
    threading.Thread(target=work, daemon=True).start()
    inside.wait(300)
    begun.append(time.monotonic())
    hostless._core.end_all(600)
    os._exit(5 if 0.1 < time.monotonic() - begun[0] < 300 else 6)
assert os.waitstatus_to_exitcode(os.waitpid(callback.child, 0)[1]) == 5
""")


def test_a_child_that_is_forked_says_nothing_of_what_threads_of_its_parent_hold():
    script("""
A = hostless.generate("poisson2d", 60)
matrix = hostless.Matrix(A, ranks=2)
go = threading.Event()
def hold():
    held = matrix  # in a frame that does not come along
    go.wait()
thread = threading.Thread(target=hold)
thread.start()
child = os.fork()
if child == 0:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
go.set()
thread.join()
""")


def test_modules_are_there_without_being_imported():
    assert script("print(hostless.errors.UsageError.__name__, hostless.plots.plot_plan.__name__)") == "UsageError plot_plan\n"
