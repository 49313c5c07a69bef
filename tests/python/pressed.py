"""Ctrl-C for a call that is at work: processor time of this process says so, which no busy machine uses up for it."""

import os
import signal
import threading
import time

import pytest

SOON = 3.0 * (os.cpu_count() or 1)  # seconds of processor time in which a call that heard it ends: all its threads go on till then


def interrupted(work, used):
    """Processor time from a ctrl-C, which comes when `work` has used that much, to its KeyboardInterrupt."""
    pressed, over = [], threading.Event()

    def press():
        begin = time.process_time()
        while time.process_time() - begin < used:
            if over.wait(0.002):
                return
        pressed.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    presses = threading.Thread(target=press)
    try:
        with pytest.raises(KeyboardInterrupt):
            presses.start()
            work()
            if pressed:
                time.sleep(0.2)
            pytest.fail("the work ended before it was interrupted")
        return time.process_time() - pressed[0]
    finally:
        over.set()  # where the work has failed
        presses.join()
