"""Ctrl-C, the interpreter's end and forks while queues have work."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import hostless

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from test_endings import script  # noqa: E402

START = "import os, signal, sys, threading, time\nimport numpy as np, hostless\n"
ALONE = """
ranks = hostless.Communicator(None)
array = np.zeros(3)
receive, send = ranks.recv_init(array, 0, 1), ranks.send_init(np.ones(3), 0, 1)
lonely = ranks.recv_init(array, 0, 2)
queue = hostless.Queue()
"""


def test_ctrl_c_ends_waits():
    assert script(START + ALONE + """
def press():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
def pressed(wait):
    begin = time.monotonic()
    try:
        threading.Thread(target=press).start()
        wait()
    except KeyboardInterrupt:
        print(time.monotonic() - begin < 240)
pressed(lambda: hostless.match(lonely))
hostless.match([receive, send])
queue.enqueue_start(receive)
queue.enqueue_wait(receive)
pressed(queue.wait)
other = hostless.Queue()
other.enqueue_start(send)
other.enqueue_wait(send)
other.wait()
queue.wait()
print(array.tolist())
pressed(lambda: hostless.run_threads(2, lambda comm: hostless.match(hostless.Communicator(comm).recv_init(np.zeros(1), 1 - comm.rank))))
""") == "True\nTrue\n[1.0, 1.0, 1.0]\nTrue\n"


def test_work_is_done_when_the_interpreter_ends():
    assert script(START + ALONE + """
hostless.match([receive, send])
queue.enqueue_start([receive, send])
queue.enqueue_wait()
queue.enqueue_function(time.sleep, 0.3)
queue.enqueue_function(lambda: print(array.tolist()))
""") == "[1.0, 1.0, 1.0]\n"


def test_what_nobody_will_send_does_not_hold_up_the_end():
    ended = subprocess.run([sys.executable, "-c", START + "hostless._PATIENCE_S = 0.2\n" + ALONE + """
hostless.match([receive, send])
queue.enqueue_start(receive)
queue.enqueue_wait(receive)
queue.enqueue_function(print, "told")
"""], capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "told\n", "")


def test_a_thread_that_waits_does_not_hold_up_the_end():
    assert script(START + ALONE + """
hostless.match([receive, send])
queue.enqueue_start(receive)
queue.enqueue_wait(receive)
def wait(aborted=hostless.AbortedError):
    try:
        queue.wait()
    except aborted:  # where the interpreter is still there when it comes back
        pass
threading.Thread(target=wait, daemon=True).start()
time.sleep(0.3)
print("over")
""", seconds=300) == "over\n"  # of 600 seconds that a wait may take


def test_forks_leave_queues_to_the_parent():
    assert script(START + ALONE + """
hostless.match([receive, send])
queue.enqueue_start(receive)
queue.enqueue_wait(receive)
child = os.fork()
if child == 0:
    for act in (queue.wait, lambda: queue.enqueue_start(send), lambda: receive.is_matched, ranks.barrier_init):
        try:
            act()
            os._exit(1)
        except hostless.UsageError as problem:
            if "fork" not in str(problem):
                os._exit(2)
    del queue, receive, send, ranks
    with hostless.Communicator(None) as ranks, hostless.Queue() as queue:
        barrier = ranks.barrier_init()
        hostless.match(barrier)
        queue.enqueue_start(barrier)
        queue.enqueue_wait(barrier)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
queue2 = hostless.Queue()
queue2.enqueue_start(send)
queue2.enqueue_wait(send)
queue2.wait()
queue.wait()
print(array.tolist())
""") == "0\n[1.0, 1.0, 1.0]\n"


HALO = """
u = np.zeros((3, 3))
u[1, 1] = 5
ranks, queue = hostless.Communicator(None), hostless.Queue()
halo = hostless.QueueHalo(ranks, ranks=(1, 1), fields=u, periodic=True)
"""


def test_a_halo_is_filled_when_the_interpreter_ends():
    assert script(START + HALO + """
queue.enqueue_function(time.sleep, 0.3)
halo.enqueue_gather(queue)
queue.enqueue_function(lambda: print(u.tolist()))
del halo
""") == "[[5.0, 5.0, 5.0], [5.0, 5.0, 5.0], [5.0, 5.0, 5.0]]\n"


def test_forks_leave_halos_to_the_parent():
    assert script(START + HALO + """
child = os.fork()
if child == 0:
    for act in (lambda: halo.enqueue_gather(queue), halo.close):
        try:
            act()
            os._exit(1)
        except hostless.UsageError as problem:
            if "fork" not in str(problem):
                os._exit(2)
    del halo
    with hostless.Communicator(None) as ranks, hostless.Queue() as queue:
        hostless.QueueHalo(ranks, ranks=(1, 1), fields=u, periodic=True).enqueue_gather(queue)
    os._exit(0 if u[0, 0] == 5 else 3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), u[0, 0])
halo.enqueue_gather(queue)
queue.wait()
print(u[0, 0])
""") == "0 0.0\n5.0\n"


def test_words_of_the_library_are_pythons():
    refused = subprocess.run([sys.executable, "-c", START + "hostless.Queue(type='mpi')\nhostless.Communicator(None)"], capture_output=True,
                             text=True, timeout=300, env={**os.environ, "HOSTLESS_QUEUE_PROGRESS": "often"}, check=False)
    assert "hostless.errors.UsageError" in refused.stderr and "often" in refused.stderr and refused.returncode == 1
    with pytest.raises(hostless.QueueError) as told:
        hostless.Communicator(None).recv_init(np.zeros(1), -1)
    assert (told.value.why, hostless.QueueError("text").why) == ("wildcard", "")
