"""Options by the one table of the library, which docs/options.md lists: what they are called, may be, and are without being
given."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import textwrap
from typing import Any, Callable, Iterable

from . import _core
from ._rows import real, whole, word
from .errors import UsageError, a_type

#: By the names that Python has for them, in the order of the table.
TABLE = {one.name: one for one in _core.options()}
#: Given as a number, a word or a list: `gpus_of` makes one number of it.
APART = ("gpus",)


def of_matrix() -> list:
    return [one for one in TABLE.values() if one.of_matrix]


def of_solve() -> list:
    return [one for one in TABLE.values() if one.of_solve]


def value_of(name: str, value: Any) -> Any:
    """Of the type that the option has; whether it is in range, the library says.

    TypeError: another type.
    """
    option = TABLE[name]
    if option.kind == "word":
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return word(str(value) if is_whole and str(value) in re.findall(r"[\w-]+", option.allowed) else value, name)
    if option.kind == "whole":
        number = whole(value, name)
        if name == "maxiter":  # more than can be made are as many as can be counted, as scipy takes them
            number = min(number, 2**63 - 1)
        if not -2**63 <= number < 2**63:
            raise UsageError(f"{name}={number} ({option.allowed} is needed). Correct it.")
        return number
    if option.kind == "flag":
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise TypeError(f"{name}={value!r} is {a_type(value)} (True or False is meant). Pass one.")
        return bool(value)
    if option.kind == "file":
        try:
            path = os.fsencode(value)
        except TypeError:
            raise TypeError(f"{name}={value!r} is {a_type(value)} (the name of a file is meant). Pass one.") from None
        if not path or b"\0" in path:
            raise UsageError(f"{name}={value!r} (no file has that name). Pass the name of a file.")
        return path
    return real(value, name)


def set_options(choices: Any, given: dict) -> None:
    """None: the default, where a signature has it.

    TypeError, UsageError: a value that the option cannot have.
    """
    for name, value in given.items():
        if value is not None or standard_of(TABLE[name]) is not None:
            choices.set(name, value_of(name, value))


def refuse_others(function: str, given: Iterable, options: Iterable) -> None:
    """TypeError, as Python has it: an option that is none of these."""
    known = [one.name for one in options]
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        where = (" It is one of the matrix: say it when the matrix is made." if name in TABLE and TABLE[name].of_matrix else
                 " It is one of a solve: say it there." if name in TABLE else f" Did you mean {near[0]!r}?" if near else "")
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}.{where}")


def standard_of(option: Any) -> Any:
    """The default as a signature shows it; None where it follows from something else."""
    if option.follows and option.name != "rtol" or option.kind == "file":
        return None
    text = option.standard
    return {"word": str, "whole": int, "real": float, "flag": "True".__eq__}[option.kind](text)


def takes(options: Callable) -> Callable:
    """Shows the options of the table that a function takes as **options: in its signature, and with what they mean at the end
    of its doc string."""

    def show(function: Callable) -> Callable:
        signature = inspect.signature(function)
        named = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        there = {one.name for one in named}
        more = [one for one in options() if one.name not in there]
        function.__signature__ = signature.replace(parameters=[  # type: ignore[attr-defined]
            *named, *(inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=standard_of(one)) for one in more)])
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions, of docs/options.md:\n\n{listed(more)}\n"
        return function

    return show


def listed(options: Iterable) -> str:
    lines = []
    for one in options:
        allowed = one.allowed.removeprefix("one of ")
        text = one.meaning + (f": {allowed}" if one.kind in ("word", "whole", "real", "file") else "") + \
            (f" [{one.standard}]" if one.standard else "")
        lines.append(textwrap.fill(text, 116, initial_indent=f"{one.name:<20} ", subsequent_indent=" " * 21))
    return "\n".join(lines)
