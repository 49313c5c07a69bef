"""Stencils of one's own: an expression that says what a cell becomes, stepped on all cores."""

from __future__ import annotations

import inspect
import keyword
import math
import numbers
from typing import Any, Callable, Optional, Union

import numpy as np

from . import _core, _stencil_gpu, _stencil_numpy
from ._checks import check_environment
from ._device import is_there
from ._exchange.bound import agreed, check_carrier, place_of, ranks_of
from ._rows import is_array, real, small, word
from ._stencil_arrays import Cells, boundary_of, cells_of, check_reach, coefficient_of, named_fields
from ._stencil_compile import compiled, compiler, instructions
from ._stencil_expression import (CONSTANTS, FUNCTIONS, MOST_COEFFICIENTS, MOST_FIELDS, Program, Text, by_read_names, field_of, near,
                                  program_of)
from ._stencil_result import StencilChange, StencilResult, change_of
from ._stencil_source import constant, source_of
from ._stencil_task import MOST_STEPS, How, between, check_looks, grid_of, limits, of_array, of_grid, set_ranks
from .errors import MachineError, PeerLostError, UsageError, a_type, counted, warn


ANOTHER = "Make another Stencil with other numbers: nothing is compiled again."


class Parameters(dict):
    """Values by name, as a stencil was made with them."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"a parameter of a hostless.Stencil cannot be changed (it is what it was made of). {ANOTHER}")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = clear = setdefault = _refuse  # type: ignore[assignment]


class Stencil:
    """A stencil: what each cell becomes, of its neighbours' old values.

        heat = hostless.Stencil("u + k*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1] - 4*u)", k=0.2)
        result = heat.run(u, 1000)

    expressions  a text for one field, whose name is the one that is not given here; or a dict of texts by field, all
                 updated at once from the old values, like {"u": "...", "v": "..."}
    **given      values of the other names: numbers are parameters; arrays of the fields' shape are coefficients, read with
                 offsets too and never written (each run reads what is in them then, in the fields' type)

    In an expression `u` is the old value of the cell, `u[-1,0]` that of the neighbour one cell before along the first axis of
    the array: an offset for each axis, in NumPy's order. Beside names and numbers there are + - * / and powers by whole numbers
    (u**3 is (u*u)*u), comparisons with `and`, `or`, `not` in `where(condition, a, b)`, min and max of two or more as Python's,
    abs, sqrt, floor, ceil, trunc, and exp, expm1, log, log1p, log2, log10, sin, cos, tan, asin, acos, atan, atan2, sinh, cosh,
    tanh, asinh, acosh, atanh, cbrt, hypot, pow; and pi.

    Operations are done as Python would, each rounded to the type of the arrays, float32 or float64; numbers and parameters are
    rounded to it first. So the cells have the same bits on any number of ranks, with any depth or blocking, by any compiler, and
    by NumPy. The functions from exp on are those of the C library (or NumPy's, where nothing is compiled), which may differ in
    their last bits.

    Errors: UsageError (names, offsets and signs that make no sense, with the expression and a caret; a keyword that is not in
    it), TypeError (a keyword that is neither number nor array). Cost: the first run with a type compiles, about 0.3 s, once for
    this user and processor.
    """

    __slots__ = ("_coefficients", "_expressions", "_fields", "_known", "_name", "_parameters", "_program", "__weakref__")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in Stencil.__slots__:
            raise AttributeError(f"{name}={value!r} of a hostless.Stencil (it is what it was made of). {ANOTHER}")
        super().__setattr__(name, value)

    def __init__(self, expressions: Union[str, dict], /, **given: Any):
        given = by_read_names(given)
        if isinstance(expressions, dict):
            if not 1 <= len(expressions) <= MOST_FIELDS:
                raise UsageError(f"{len(expressions)} fields (1 to {MOST_FIELDS} are stepped together). Give an expression for each.")
            expressions = by_read_names(expressions)
            fields = tuple(expressions)
            for name in fields:
                _check_name(name)
            texts = [Text(text, name) for name, text in expressions.items()]
        else:
            texts = [Text(expressions, None)]
            fields = (field_of(texts[0], given),)
        self._parameters, self._coefficients = {}, {}
        # By name: the engine knows them by number, and ranks that name them in another order mean the same.
        for name, value in sorted(given.items()):
            _check_name(name)
            if name in fields:
                raise UsageError(f"{name}={value!r}, which is a field (its array is passed to run). Leave it out.")
            if isinstance(value, numbers.Real) or not is_there(value) and is_array(value) and _is_scalar(value):
                self._parameters[name] = _parameter(value, name)
            elif is_array(value) or is_there(value):
                self._coefficients[name] = coefficient_of(value, name)
            else:
                raise TypeError(f"{name} is {a_type(value)} (numbers are parameters, arrays coefficients). Pass one of them.")
        if len(self._coefficients) > MOST_COEFFICIENTS:
            raise UsageError(f"{len(self._coefficients)} coefficients (at most {MOST_COEFFICIENTS}). Combine some.")
        self._fields = fields
        self._name: Optional[str] = None
        program = program_of(texts, fields, tuple(self._coefficients), tuple(self._parameters))
        for name in given:
            if not program.uses(name):
                raise UsageError(f"{name} is nowhere in the expression{'s' * (len(texts) > 1)} (it would change nothing). Leave it "
                                 "out, or correct a name.")
        self._program: Optional[Program] = program
        self._expressions = {name: text.text for name, text in zip(fields, texts)}

    @classmethod
    def named(cls, name: str, /, **parameters: float) -> "Stencil":
        """One of the stencils of `hostless.stencil_names()`, compiled with the package. Parameters that are not given have its
        defaults.

        Errors: UsageError (no such name or parameter), TypeError (a parameter that is no number).
        """
        known = {one["name"]: one for one in _core.named_stencils()}
        if word(name, "name") not in known:
            raise UsageError(f"stencil {name!r}{near(name, known)} (there is none of that name). Use one of {', '.join(known)}.")
        made = cls.__new__(cls)
        made._known = known[name]
        for one in parameters:
            if one not in made._known["parameters"]:
                has = ", ".join(made._known["parameters"])
                raise UsageError(f"{one}={parameters[one]!r}{near(one, made._known['parameters'])} ({name} has "
                                 f"{'the parameters ' + has if has else 'no parameters'}). Correct the name.")
        made._parameters = {one: _parameter(value, one) for one, value in parameters.items()}
        made._coefficients, made._program, made._name = {}, None, name
        made._fields, made._expressions = tuple(made._known["fields"]), {}
        return made

    @property
    def fields(self) -> tuple:
        """Names of the fields, in the order in which a tuple of arrays has them."""
        return self._fields

    @property
    def parameters(self) -> dict:
        """Values of the parameters that were given, by name. They stay: for others make another Stencil, which compiles nothing again.
        Defaults of named stencils are in `hostless.stencil_names()`."""
        return Parameters(self._parameters)

    def source(self, dtype: Any = np.float64, axes: Optional[int] = None) -> str:
        """The C++ that is compiled for arrays of that type. axes: needed where no offsets say it.

        Errors: UsageError (a named stencil, which was compiled with the package).
        """
        if self._program is None:
            raise UsageError(f"{self._name} has no source here (it was compiled with the package). Write its expression.")
        count = self._program.axes if axes is None else small(axes, "axes")
        if count is None or self._program.axes not in (None, count) or not 1 <= count <= 3:
            raise UsageError(f"axes={axes} (the expression's offsets have {self._program.axes}, arrays 1 to 3). Say how many.")
        return source_of(self._program, count, np.dtype(dtype), _core.CELL_BLOCK_OFFSETS)

    def run(self, u: Any, steps: int, *, boundary: Union[str, tuple] = "dirichlet", ranks: Optional[int] = None,
            ranks_along: Optional[tuple] = None, depth: Optional[int] = None, block_steps: Optional[int] = None, every: int = 0,
            tolerance: float = 0.0, callback: Optional[Callable[[StencilChange], Any]] = None,
            time_limit: Optional[float] = None, comm: Any = None, shape: Optional[tuple] = None, transport: Optional[str] = None,
            **others: Any) -> StencilResult:
        """Takes `steps` steps IN PLACE: u holds the new cells afterwards.

        u            the field: an array of NumPy, a tensor of torch in the processor's memory, or anything with DLPack or a buffer;
                     or an array of CuPy or torch in a GPU's memory, where it is then stepped (NVRTC compiles it there; no options of
                     ranks); float32 or float64, of 1 to 3 axes and any strides. Of several fields a dict by name, or a tuple in the order of
                     `fields`
        boundary     what lies beyond the ends, one word or one for each axis: "dirichlet" (as many outermost cells as the stencil
                     looks far keep their values), "neumann" (mirrored: cell -1 reads as cell 0, -2 as 1), "periodic" (wraps around)
        ranks        threads that share the cells; None: as many as there are usable cores, fewer for small arrays
        ranks_along  of them along each axis; None: so that the least is exchanged
        depth        steps between two exchanges of halos; None: chosen
        block_steps  steps in one pass over memory, at most depth; None: chosen. None of these four changes a bit
        every        steps between two looks at what a step changed; 0: none. A look costs about two steps
        tolerance    ends as steady when a look sees that every field's norm of the change is at most this; needs every
        callback     called after each look with a StencilChange, in this thread; u holds the cells of that step while it runs (what
                     it writes there is lost). True from it ends the run. Needs every
        time_limit   seconds after which the run ends as aborted, with the last complete step
        comm         a communicator of mpi4py, or what `run_threads` hands to its function: u (and each coefficient) is then this
                     rank's `box` of a grid, and all ranks step it together. Collective; callback and time_limit are each rank's own,
                     all else is alike on all. With mpi4py the communicator is duplicated for the run
        shape        of the whole grid; with comm, and needed there
        transport    with mpi4py "mpi" (None means it) or "composite": processes of one node exchange through memory that they share

        Returns a StencilResult. The GIL is free. Ctrl-C ends within a few tenths of a second (or one pass over memory), leaves the
        last complete step in u and raises KeyboardInterrupt; what the callback raises comes out likewise. With comm either is an
        AbortedError on the other ranks.

        Errors: UsageError (shapes that differ, read-only, memory of two places, words and numbers that make no sense; with comm on
        all ranks together), TypeError (no arrays, other types), MachineError (the compiler, NVRTC or the GPU fails), PeerLostError (a
        rank left or stayed silent; its cells are unknown). Memory: two copies of each field and one of each coefficient, with
        halos. Cost: setting up takes some tenths of a millisecond, and with large arrays about as long as ten steps, so ask for many at
        once. Without a C++ compiler ($CXX, c++, g++, clang++) NumPy takes the steps on one rank, with a warning; named stencils need
        none.
        """
        how = How(boundary, ranks_along, depth, block_steps, every, tolerance, callback, time_limit, others)
        if comm is not None:
            return self._among(comm, transport, shape, ranks, u, steps, how)
        self._refuse(others)
        for name, value in (("shape", shape), ("transport", transport)):
            if value is not None:
                raise UsageError(f"{name}={value!r} without comm (the arrays are the whole grid, and ranks are threads). Leave it out, or pass comm.")
        check_environment()
        named = named_fields(u, self._fields)
        if is_there(named[0][1]):
            return self._on_gpu(named, steps, boundary, (ranks, ranks_along, depth, block_steps), every, tolerance, callback, time_limit)
        cells = cells_of(named, list(self._coefficients.items()))
        axes = len(cells.shape)
        self._check_axes(axes)
        task, edges = self._task(cells, cells.shape, ranks, steps, how)
        words, show = self._words(axes, cells.dtype), self._shown(callback)
        if not self._compile(words, axes, cells.dtype):
            return self._by_numpy(words, cells, edges, task, show)
        return self._result(_core.run_stencil(words, task, show), axes)

    def box(self, shape: tuple, comm: Any, *, boundary: Union[str, tuple] = "dirichlet", ranks_along: Optional[tuple] = None) -> tuple:
        """Which cells of a grid are this rank's, a slice for each axis: `run` with this comm takes arrays of whole[box].

        shape        of the whole grid
        comm         as of `run`; its rank and size alone are asked for, so this is local
        boundary, ranks_along
                     as they are passed to `run`

        Boxes of neighbouring ranks meet along the last axis first; together they are the grid. Errors: UsageError (as `run`).
        """
        check_environment()
        task, _ = self._grid(_shape_of(shape), boundary, ranks_along)
        return self._box(task, len(shape), *place_of(comm))

    def _box(self, task: Any, axes: int, rank: int, size: int) -> tuple:
        radius = self._known["radius"][axes] if self._program is None else of_grid(self._program.radius(axes), 0)
        return tuple(slice(*ends) for ends in zip(*(of_array(end, axes) for end in _core.stencil_box(task, radius, axes, rank, size))))

    def _grid(self, shape: tuple, boundary: Any, ranks_along: Any) -> tuple:
        self._check_axes(len(shape))
        edges = boundary_of(boundary, len(shape))
        if self._program is not None:
            check_reach(self._program.radius(len(shape)), shape, self._fields[0])
        return grid_of(shape, edges, ranks_along), edges

    def _task(self, cells: Cells, shape: tuple, ranks: Any, steps: Any, how: How, are_threads: bool = True) -> tuple:
        """What the engine is asked for, and a word of boundary for each axis."""
        task, edges = self._grid(shape, how.boundary, how.ranks_along)
        set_ranks(task, cells, ranks, how, are_threads)
        task.steps = between(steps, "steps", 0, MOST_STEPS)
        task.every = between(how.every, "every", 0, MOST_STEPS)
        task.tolerance, task.time_limit_s = limits(how.tolerance, how.time_limit)
        check_looks(task, how.callback)
        return task, edges

    def _shown(self, callback: Any) -> Optional[Callable]:
        return None if callback is None else lambda change: callback(change_of(change, len(self._fields)))

    def _compile(self, words: Any, axes: int, dtype: Any) -> bool:
        """False: there is no compiler, and the stencil needs one."""
        if self._program is None:
            return True
        command = compiler()
        if command is None:
            return False
        words.update = compiled(self.source(dtype, axes), tuple(command), instructions(), repr(self)).address
        return True

    def _among(self, comm: Any, transport: Any, shape: Any, count: Any, u: Any, steps: Any, how: How) -> StencilResult:
        among = ranks_of(comm, transport)
        try:
            words, task, cells = agreed(among, lambda: self._prepared(among, comm, transport, shape, count, u, steps, how))
            return self._result(_core.run_stencil_among(among, words, task, self._shown(how.callback)), len(cells.shape))
        finally:
            if among is not comm:
                among.close()

    def _prepared(self, among: Any, comm: Any, transport: Any, shape: Any, count: Any, u: Any, steps: Any, how: How) -> tuple:
        """As `agreed` asks for: words, task, the arrays whose addresses it has, what must be alike."""
        self._refuse(how.others)
        check_carrier(comm, transport)
        if count is not None:
            raise UsageError(f"ranks={count!r} with comm (its ranks are those that step). Leave it out.")
        if shape is None:
            raise UsageError("comm without shape (u is this rank's box of a grid). Pass the shape of the whole grid.")
        whole = _shape_of(shape)
        named = named_fields(u, self._fields)
        if is_there(named[0][1]):
            raise UsageError("comm with arrays of a GPU (ranks of a communicator step arrays of the processor). Copy them with .get(), or "
                             ".cpu() of torch; one GPU steps a whole grid that lies in its memory without comm.")
        cells = cells_of(named, list(self._coefficients.items()))
        axes = len(whole)
        task, edges = self._task(cells, whole, None, steps, how, False)
        mine = self._box(task, axes, among.rank, among.size)
        wanted = tuple(one.stop - one.start for one in mine)
        if cells.shape != wanted:
            raise UsageError(f"{named[0][0]} has the shape {cells.shape}, and the box of rank {among.rank} is {wanted}, "
                             f"[{', '.join(f'{one.start}:{one.stop}' for one in mine)}] of {whole} (each rank steps its own). Pass whole[stencil.box(shape, comm)].")
        words = self._words(axes, cells.dtype)
        if not self._compile(words, axes, cells.dtype):
            raise MachineError("comm without a C++ compiler is refused (NumPy steps on one rank). Install g++ or clang++, or set CXX.")
        # As they were understood: 0 and 0.0, or a list and a tuple, are alike.
        edges = tuple(map(str, edges))
        edge = edges[0] if len(set(edges)) == 1 else edges
        along = None if how.ranks_along is None else of_array(task.ranks_along, axes)
        return words, task, cells, (f"{self!r}, {cells.dtype}, steps={task.steps}, shape={whole}, boundary={edge!r}, ranks_along={along}, "
                                    f"depth={task.depth or None}, block_steps={task.block_steps or None}, every={task.every}, "
                                    f"tolerance={abs(task.tolerance)}, "
                                    f"parameters={dict(zip(self._numbers(axes), words.parameters))}, coefficients={list(self._coefficients)}")

    def _refuse(self, others: dict) -> None:
        """TypeError, as Python has it: an argument of `run` that there is not, with what to do."""
        mine = {*self._parameters, *self._coefficients, *(self._known["parameters"] if self._program is None else ())}
        known = [name for name in inspect.signature(Stencil.run).parameters if name not in ("self", "others")]
        for name in others:
            raise TypeError(f"run() got an unexpected keyword argument {name!r}{near(name, known)}." + (" " + ANOTHER if name in mine else ""))

    def _check_axes(self, axes: int) -> None:
        if self._program is None:
            known = self._known["axes"]
            if axes not in known:
                raise UsageError(f"arrays of {counted(axes, 'axis', 'axes')} for {self._name} (it has {' or '.join(map(str, known))}). Reshape them.")
        elif self._program.axes not in (None, axes):
            raise UsageError(f"arrays of {counted(axes, 'axis', 'axes')} (offsets in the expression have {self._program.axes}). Give an offset for each "
                             "axis, or reshape the arrays.")

    def _words(self, axes: int, dtype: Any) -> Any:
        words = _core.StencilWords()
        words.axes, words.value_bytes = axes, dtype.itemsize
        if self._program is None:
            words.name = self._name
            words.parameters = list(self._numbers(axes).values())
            return words
        words.name = repr(self)
        words.radius = of_grid(self._program.radius(axes), 0)
        words.star, words.fields, words.coefficients = self._program.star, len(self._fields), len(self._coefficients)
        words.parameters = [constant(value, dtype) for value in self._numbers(axes).values()]
        return words

    def _numbers(self, axes: int) -> dict:
        """Every parameter by its name, in the engine's order."""
        if self._program is not None:
            return self._parameters
        return {**dict(zip(self._known["parameters"], self._known["defaults"][axes])), **self._parameters}

    def _result(self, report: Any, axes: int) -> StencilResult:
        if report.status == "peer_lost":
            raise PeerLostError(report.message or "a rank was lost (its cells are unknown). Start again.")
        return StencilResult(self._fields, status=report.status, steps=report.steps, history=report.history, message=report.message,
                             seconds=report.run_s, exchange_seconds=report.exchange_s, ranks=report.ranks,
                             ranks_along=of_array(report.ranks_along, axes), depth=report.depth, block_steps=report.block_steps,
                             by="named" if self._program is None else "compiled")

    def _on_gpu(self, named: list, steps: Any, boundary: Any, of_ranks: tuple, every: Any, tolerance: Any, callback: Any,
                time_limit: Any) -> StencilResult:
        if self._program is None:
            raise UsageError(f"{self._name} on arrays of a GPU (its kernels are those of `hostless stencil --gpus 1`). Write its expression, or "
                             "copy the arrays.")
        if any(one is not None for one in of_ranks):
            raise UsageError("ranks, ranks_along, depth or block_steps on arrays of a GPU (a kernel takes one step of all cells). Leave them out.")
        package, arrays = _stencil_gpu.arrays_of(named, list(self._coefficients.items()))
        shape = tuple(arrays[0].shape)
        self._check_axes(len(shape))
        edges = boundary_of(boundary, len(shape))
        check_reach(self._program.radius(len(shape)), shape, self._fields[0])
        task = _core.StencilTask()
        task.steps, task.every = between(steps, "steps", 0, MOST_STEPS), between(every, "every", 0, MOST_STEPS)
        task.tolerance, task.time_limit_s = limits(tolerance, time_limit)
        check_looks(task, callback)
        show = None if callback is None else lambda change: callback(change_of(change, len(self._fields)))
        parameters = tuple(constant(value, package.dtype(arrays[0])) for value in self._parameters.values())
        stepper = _stencil_gpu.stepper_of(self._program, package, arrays, edges, parameters, repr(self))

        def give_back(fields: list) -> None:
            for array, field in zip(arrays, fields):
                package.write(array, field)

        found = _stencil_numpy.run(stepper, give_back, task.steps, task.every, task.tolerance, show, task.time_limit_s or None)
        return StencilResult(self._fields, ranks_along=(1,) * len(shape), by="nvrtc", **found)

    def _by_numpy(self, words: Any, cells: Cells, edges: tuple, task: Any, show: Optional[Callable]) -> StencilResult:
        if task.ranks > 1 or max(task.ranks_along) > 1 or task.depth > 1 or task.block_steps > 1:
            raise MachineError("ranks, depth or block_steps without a C++ compiler are refused (NumPy takes one step at a time, on one rank). "
                               "Install g++ or clang++, set CXX, or leave them out.")
        warn("no C++ compiler was found ($CXX, c++, g++, clang++): NumPy takes the steps, many times slower.")
        assert self._program is not None

        def give_back(fields: list) -> None:
            for array, field in zip(cells.arrays, fields):
                array[...] = field

        stepper = _stencil_numpy.Stepper(self._program, cells.arrays, edges, tuple(words.parameters))
        found = _stencil_numpy.run(stepper, give_back, task.steps, task.every, task.tolerance, show, task.time_limit_s or None)
        return StencilResult(self._fields, ranks_along=(1,) * len(cells.shape), by="numpy", **found)

    def __repr__(self) -> str:
        if self._name is not None:
            return f"hostless.Stencil.named({self._name!r})"
        texts = list(self._expressions.values())[0] if len(self._fields) == 1 else self._expressions
        return f"hostless.Stencil({texts!r})"


def stencil_names() -> dict:
    """The stencils that `hostless.Stencil.named` knows: what each is, by its name, with its numbers of axes, fields, and parameters
    with their defaults (by the number of axes where those differ)."""
    found = {}
    for one in _core.named_stencils():
        parameters = ", ".join(f"{name} [{' or '.join(dict.fromkeys(f'{of_axes[k]:g}' for of_axes in one['defaults'].values()))}]"
                               for k, name in enumerate(one["parameters"]))
        found[one["name"]] = (f"{one['meaning']}; axes {' or '.join(map(str, one['axes']))}; fields {', '.join(one['fields'])}"
                              + (f"; parameters {parameters}" if parameters else ""))
    return found


def _shape_of(shape: Any) -> tuple:
    """Of a whole grid."""
    if not isinstance(shape, (tuple, list)) or not 1 <= len(shape) <= 3:
        raise UsageError(f"shape={shape!r} (cells of the whole grid along each of 1 to 3 axes). Pass a tuple of numbers.")
    return tuple(between(one, "shape", 1, MOST_STEPS) for one in shape)


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and np.ndim(value) == 0


def _parameter(value: Any, name: str) -> float:
    number = real(value, name)
    if not math.isfinite(number):
        said = f"{name} is beyond float64" if isinstance(value, int) else f"{name}={number}"
        raise UsageError(f"{said} (every cell is computed with it: a finite number of float64 is needed). Correct it.")
    return number


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name in FUNCTIONS or name in CONSTANTS:
        raise UsageError(f"{name!r} as the name of a field or parameter (expressions could not say it: a word of letters that is no "
                         "function is meant). Use another one.")
