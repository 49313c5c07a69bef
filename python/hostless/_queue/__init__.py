"""Messages and collectives that a queue starts and waits for."""

from .communicator import Communicator
from .halo import QueueHalo
from .queue import Queue, end_all
from .request import Match, Request, Status, begin_match, match

__all__ = ["Communicator", "Match", "Queue", "QueueHalo", "Request", "Status", "begin_match", "end_all", "match"]
