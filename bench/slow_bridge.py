"""The bridge of emulated machines whose links have a latency: hands every frame on so much later. For kernels without `netem`.

    slow_bridge.py DELAY_US DEVICE...     the k-th device leads to the machine whose address ends in .k; prints a line when it is ready; runs until it is ended
"""

import heapq
import itertools
import select
import socket
import sys
import time

SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 263, 15, 23, 33
EVERY_PROTOCOL = 3
HEADER = 10  # of the kernel, in front of each frame: what is left of checksums and of long frames to be cut
ETHERNET = slice(HEADER + 12, HEADER + 14)
IP_TARGET, ARP_TARGET = HEADER + 14 + 19, HEADER + 14 + 27  # the last number of the address


def opened(device):
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    link.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    link.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    link.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 25)
    link.bind((device, EVERY_PROTOCOL))
    return link


def target_of(frame):
    """Which machine a frame is for, from 1; 0: none of them."""
    if frame[ETHERNET] == b"\x08\x00" and len(frame) > IP_TARGET:
        return frame[IP_TARGET]
    if frame[ETHERNET] == b"\x08\x06" and len(frame) > ARP_TARGET:
        return frame[ARP_TARGET]
    return 0


def patience(left):
    """Seconds to poll for where a frame leaves in `left` seconds. epoll rounds up to whole milliseconds: it sleeps for those that surely pass before; the rest is looked again and again."""
    return max(0.0, (int(left * 1e3) - 1.5) * 1e-3)


def main() -> int:
    delay = float(sys.argv[1]) * 1e-6
    links = [opened(device) for device in sys.argv[2:]]
    poll = select.epoll()
    by_number = {}
    for link in links:
        poll.register(link, select.EPOLLIN)
        by_number[link.fileno()] = link
    waiting, order = [], itertools.count()
    print("ready", flush=True)
    while True:
        for number, _ in poll.poll(patience(waiting[0][0] - time.monotonic()) if waiting else -1):
            frame = by_number[number].recv(1 << 17)
            target = target_of(frame)
            if 1 <= target <= len(links):
                heapq.heappush(waiting, (time.monotonic() + delay, next(order), target, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(waiting)
            try:
                links[target - 1].send(frame)
            except OSError:  # a link whose queue is full loses frames
                pass


if __name__ == "__main__":
    sys.exit(main())
