"""Text files that are written whole or not at all. Of the standard library alone: the programs of bench/ take it too."""

import contextlib
import os
import stat
import tempfile


def write_whole(path, text: str) -> None:
    """Replaces a file by `text` in UTF-8: beside it under a name of its own, stored, then renamed. Its permissions and a
    link that leads to it stay; what is no regular file (a pipe, a device) is written to as it is.

    OSError: it cannot be written; the older file is as it was.
    """
    target = os.path.realpath(path)
    try:
        older = os.stat(target).st_mode
    except FileNotFoundError:
        older = None
    if older is not None and not stat.S_ISREG(older):
        with open(target, "w", encoding="utf-8") as file:  # a folder is refused here
            file.write(text)
        return
    number, name = tempfile.mkstemp(suffix=".partial", prefix=os.path.basename(target) + ".", dir=os.path.dirname(target))
    try:
        with open(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(number, stat.S_IMODE(older) if older is not None else 0o666 & ~_umask())
            os.fsync(number)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
