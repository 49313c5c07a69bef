"""Expressions of stencils: what Python's parser makes of them, as a list of operations."""

from __future__ import annotations

import ast
import difflib
import math
import unicodedata
from typing import Any, NamedTuple, NoReturn, Optional

from .errors import UsageError, a_type, counted

#: Functions by number of arguments whose results are the same to the bit wherever they are computed.
EXACT = {"abs": 1, "sqrt": 1, "floor": 1, "ceil": 1, "trunc": 1}
#: Those of a library of mathematics, whose last bits are that library's; NumPy's name where it has another.
ROUNDED = {"exp": 1, "expm1": 1, "log": 1, "log1p": 1, "log2": 1, "log10": 1, "sin": 1, "cos": 1, "tan": 1, "sinh": 1, "cosh": 1,
           "tanh": 1, "asin": 1, "acos": 1, "atan": 1, "asinh": 1, "acosh": 1, "atanh": 1, "cbrt": 1, "atan2": 2, "hypot": 2,
           "pow": 2}
FUNCTIONS = (*EXACT, *ROUNDED, "min", "max", "where")
CONSTANTS = {"pi": math.pi}
#: The highest power that is written out as products.
HIGHEST_POWER = 64
#: As StencilKernel has them.
MOST_AXES, MOST_FIELDS, MOST_COEFFICIENTS, FARTHEST = 3, 8, 64, 64

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
#: Signs of Python that no cell is computed with, and what to write.
OTHER_SIGNS = {ast.Mod: ("%", "Write u - k*floor(u/k)"), ast.FloorDiv: ("//", "Write floor(u/k)"), ast.MatMult: ("@", "Write *"),
               ast.LShift: ("<<", "Multiply by a power of two"), ast.RShift: (">>", "Divide by a power of two")}
LOGIC = {ast.BitAnd: "&", ast.BitOr: "|", ast.And: "&", ast.Or: "|"}


def _digits(number: int) -> str:
    """A whole number in a message: Python refuses to write those of more than some thousand digits."""
    return str(number) if abs(number) < 10**30 else f"{'more' if number > 0 else 'less'} than {'-' if number < 0 else ''}10^30"


class Step(NamedTuple):
    """One operation. Its operands are numbers of earlier ones."""

    what: str  #: "number", "parameter", "read", "negate", "not", "where", an operator, or a function
    operands: tuple = ()
    value: Any = None  #: of a number; which parameter; (array, offsets) of a read


class Program:
    """All fields' new values as one list of operations, in an order in which they can be computed.

    Equal operations on equal operands are one: that changes no bit.

    fields, coefficients, parameters  names, in their order
    """

    def __init__(self, fields: tuple, coefficients: tuple, parameters: tuple):
        self.fields, self.coefficients, self.parameters = fields, coefficients, parameters
        self.arrays = fields + coefficients
        self.steps: list = []
        self.results: list = []  #: of each field the number of the operation that is its new value
        self.axes: Optional[int] = None  #: as offsets say
        self._known: dict = {}

    def add(self, what: str, *operands: int, value: Any = None) -> int:
        step = Step(what, operands, value)
        key = (what, operands, repr(value))  # -0.0 and 0.0 are two numbers
        if key not in self._known:
            self._known[key] = len(self.steps)
            self.steps.append(step)
        return self._known[key]

    def reads(self) -> list:
        """(array, offsets) of all reads; no offsets: the cell itself."""
        return [step.value for step in self.steps if step.what == "read"]

    def radius(self, axes: int) -> tuple:
        """How far it looks to either side along each axis of the arrays."""
        return tuple(max([abs(offsets[a]) for _, offsets in self.reads() if offsets] + [0]) for a in range(axes))

    @property
    def star(self) -> bool:
        """Whether it looks along the axes only."""
        return all(sum(offset != 0 for offset in offsets) <= 1 for _, offsets in self.reads())

    def uses(self, name: str) -> bool:
        if name in self.arrays:
            return any(array == self.arrays.index(name) for array, _ in self.reads())
        return any(step.what == "parameter" and step.value == self.parameters.index(name) for step in self.steps)


class Text:
    """One expression as it was given, in one line."""

    def __init__(self, given: Any, field: Optional[str]):
        self.field = field
        what = "an expression" if field is None else f"the expression of {field!r}"
        if not isinstance(given, str):
            raise TypeError(f"{what} is {a_type(given)} (a text is meant: what a cell becomes). Pass one, like "
                            "\"0.25*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1])\".")
        self.text = " ".join(given.split())
        if not self.text:
            raise UsageError(f"{what} is empty (it says what a cell becomes). Write one.")
        for sign, why in (("#", "a comment"), ("\0", "a NUL")):
            if sign in self.text:
                self.refuse(self.text.index(sign), f"{why} in an expression (it is one formula). Take it out")
        try:
            self.tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as problem:
            self.refuse((problem.offset or 1) - 1, f"an expression that Python cannot read: {problem.msg} (Python's own parser "
                        "reads it). Correct it")
        except UnicodeEncodeError as problem:
            raise UsageError(f"{what} has {self.text[problem.start]!a} at place {problem.start}, which is no character (half of a "
                             "surrogate pair). Take it out.") from None
        except (RecursionError, MemoryError, ValueError) as problem:
            raise UsageError(f"{what} cannot be read ({type(problem).__name__}: it is too deep or too long). Make fields or "
                             "parameters of its parts.") from None

    def refuse(self, where: Any, problem: str) -> NoReturn:
        """UsageError with the expression, and a caret below a node of its tree, or a column."""
        column = where if isinstance(where, int) else len(self.text.encode()[:where.col_offset].decode())
        of = "" if self.field is None else f", in the expression of {self.field!r}"
        raise UsageError(f"{problem}{of}:\n    {self.text}\n    {' ' * min(column, len(self.text))}^")


def by_read_names(given: dict) -> dict:
    """The same by the names that Python's parser has for those in expressions (NFKC: the micro sign is a mu). UsageError: two
    are one then."""
    read = {unicodedata.normalize("NFKC", name) if isinstance(name, str) else name: thing for name, thing in given.items()}
    if len(read) < len(given):
        raise UsageError(f"{len(given)} names of which Python's parser reads some as one: {', '.join(map(ascii, given))}. Use others.")
    return read


def near(name: str, known: Any) -> str:
    """ Did you mean ...? or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean {found[0]!r}?)" if found else ""


def names_in(text: Text) -> dict:
    """Names that are no functions and no constants: the first place of each, and whether it has offsets anywhere."""
    found: dict = {}
    # Functions, and what is before a dot, which the reader refuses.
    called = {id(node.func if isinstance(node, ast.Call) else node.value) for node in ast.walk(text.tree)
              if isinstance(node, (ast.Call, ast.Attribute))}
    with_offsets = {id(node.value) for node in ast.walk(text.tree) if isinstance(node, ast.Subscript)}
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            first, has_offsets = found.get(node.id, (node, False))
            found[node.id] = (first, has_offsets or id(node) in with_offsets)
    return found


def field_of(text: Text, given: Any) -> str:
    """The one name that was not given as a keyword, which is the field.

    UsageError: there is none, or several.
    """
    names = {name: found for name, found in names_in(text).items() if name not in (*given, *FUNCTIONS, *CONSTANTS)}
    if not names:
        for node in ast.walk(text.tree):
            if isinstance(node, ast.Attribute):
                dotted(text, node)
        raise UsageError(f"no name is left for the field in {text.text!r} (every name in it was given as a keyword, or there is none). "
                         "Write the field's name, like u, without giving it here.")
    likely = [name for name, (_, has_offsets) in names.items() if has_offsets] if len(names) > 1 else list(names)
    if len(likely) == 1:
        field = likely[0]
        for name, (node, _) in names.items():
            if name != field:
                unknown(text, node, (field, *given), f"Pass {name}=, or pass {{{field!r}: ..., {name!r}: ...}} if both are stepped")
        return field
    node = names[sorted(names)[-1]][0]
    text.refuse(node, f"{' and '.join(sorted(names))} were not given (which is the field?). Pass the others as keywords, or name "
                "the field: hostless.Stencil({\"u\": ...})")


def dotted(text: Text, node: ast.Attribute) -> NoReturn:
    name = node.attr
    if name in CONSTANTS:
        text.refuse(node, f".{name} in an expression (constants are named alone). Write {name}")
    if name in FUNCTIONS:
        text.refuse(node, f".{name} in an expression (functions are named alone). Write {name}(...)")
    text.refuse(node, f".{name} in an expression (cells are real numbers, which have no parts, and functions are named alone: "
                f"there is no {name}{near(name, (*FUNCTIONS, *CONSTANTS))}). Write it without the dot")


def unknown(text: Text, node: ast.Name, known: Any, advice: str) -> NoReturn:
    text.refuse(node, f"{node.id!r} is no field, parameter or coefficient here{near(node.id, (*known, *FUNCTIONS))}. {advice}")


class Reader:
    """Makes operations of an expression's tree, exactly in its order."""

    def __init__(self, program: Program, text: Text):
        self.program, self.text, self.refuse = program, text, text.refuse

    def number(self, node: ast.AST) -> int:
        """The operation that is the value of a node; UsageError where it is true or false."""
        add = self.program.add
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Subscript):
            return self._read(node)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return add(OPERATORS[type(node.op)], self.number(node.left), self.number(node.right))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            return self._power(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return add("negate", self.number(node.operand))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
            return self.number(node.operand)
        if isinstance(node, ast.IfExp):
            return add("where", self.truth(node.test), self.number(node.body), self.number(node.orelse))
        if isinstance(node, ast.Call):
            return self._call(node)
        if self._is_logic(node) and not all(self._is_condition(one) for one in self._operands(node)):
            if isinstance(node.op, ast.Not):
                self.refuse(node, "not of a number (it is for conditions). Compare it, like where(not u > 0, 1, 0)")
            sign = "~" if isinstance(node, ast.UnaryOp) else LOGIC[type(node.op)]
            self.refuse(node, f"{sign} of a number (it is for conditions: cells are real numbers, which have no bits, and it binds tighter than a "
                        "comparison). Write (u > 0) & (v > 0), or u - 2*floor(u/2) for the last bit")
        if isinstance(node, (ast.Compare, ast.BoolOp)) or self._is_logic(node):
            self.refuse(node, "true or false where a number is needed (a cell is a number). Write where(condition, 1, 0)")
        self._no_part(node)

    def truth(self, node: ast.AST) -> int:
        """The operation that is a condition."""
        add = self.program.add
        if isinstance(node, ast.Compare):
            operands = [self.number(one) for one in (node.left, *node.comparators)]
            made = None
            for op, left, right in zip(node.ops, operands, operands[1:]):
                if type(op) not in COMPARISONS:
                    self.refuse(node, "a comparison of another kind (numbers are compared). Use <, <=, >, >=, == or !=")
                one = add(COMPARISONS[type(op)], left, right)
                made = one if made is None else add("&", made, one)
            assert made is not None
            return made
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(one) for one in node.values]
            made = parts[0]
            for one in parts[1:]:
                made = add(LOGIC[type(node.op)], made, one)
            return made
        if isinstance(node, ast.BinOp) and type(node.op) in LOGIC:
            return add(LOGIC[type(node.op)], self.truth(node.left), self.truth(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
            return add("not", self.truth(node.operand))
        self.refuse(node, "a number where a condition is needed (true or false chooses). Compare it, like u > 0")

    @staticmethod
    def _is_logic(node: ast.AST) -> bool:
        return (isinstance(node, ast.BinOp) and type(node.op) in LOGIC or
                isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)))

    @staticmethod
    def _operands(node: Any) -> list:
        return [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]

    def _is_condition(self, node: ast.AST) -> bool:
        return isinstance(node, (ast.Compare, ast.BoolOp)) or self._is_logic(node) and all(map(self._is_condition, self._operands(node)))

    def _no_part(self, node: ast.AST) -> NoReturn:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
            self.refuse(node, "^ in an expression (Python's power is **). Write **")
        if isinstance(node, ast.BinOp):
            sign, instead = OTHER_SIGNS[type(node.op)]
            self.refuse(node, f"{sign} in an expression (numbers are added, subtracted, multiplied and divided: + - * / **). {instead}")
        if isinstance(node, ast.Attribute):
            dotted(self.text, node)
        self.refuse(node, f"{type(node).__name__.lower()} is no part of a stencil (numbers, names, offsets, + - * / **, comparisons and "
                    "functions are). Write it with these")

    def _constant(self, node: ast.Constant) -> int:
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            self.refuse(node, f"{node.value!r} is no real number (a cell is one). Write a number")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            self.refuse(node, "a number beyond float64 (it would be infinite). Write a smaller one")
        return self.program.add("number", value=value)

    def _name(self, node: ast.Name) -> int:
        program, name = self.program, node.id
        if name in program.parameters:
            return program.add("parameter", value=program.parameters.index(name))
        if name in program.arrays:
            return program.add("read", value=(program.arrays.index(name), ()))
        if name in CONSTANTS:
            return program.add("number", value=CONSTANTS[name])
        if name in FUNCTIONS:
            self.refuse(node, f"{name} without arguments (it is a function). Write {name}(...)")
        self._unknown(node)

    def _unknown(self, node: ast.Name) -> NoReturn:
        program = self.program
        unknown(self.text, node, program.arrays + program.parameters, f"Pass {node.id}=, or correct the name")

    def _read(self, node: ast.Subscript) -> int:
        program = self.program
        if not isinstance(node.value, ast.Name):
            self.refuse(node, "offsets of something that is no name (fields and coefficients have neighbours). Write name[...]")
        name = node.value.id
        if name in program.parameters:
            self.refuse(node, f"offsets of {name!r}, which is a number (it is the same in every cell). Drop them, or pass an array")
        if name not in program.arrays:
            self._unknown(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        offsets = tuple(self._offset(one, name) for one in parts)
        if not 1 <= len(offsets) <= MOST_AXES:
            self.refuse(node, f"{len(offsets)} offsets (arrays of 1 to {MOST_AXES} axes are stepped). Give one for each axis")
        if program.axes is not None and len(offsets) != program.axes:
            self.refuse(node, f"{counted(len(offsets), 'offset')} where others have {program.axes} (one for each axis of "
                        f"the arrays). Give {program.axes}")
        program.axes = len(offsets)
        return program.add("read", value=(program.arrays.index(name), offsets if any(offsets) else ()))

    def _offset(self, node: ast.AST, name: str) -> int:
        value, sign = node, 1
        while isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.USub, ast.UAdd)):
            value, sign = value.operand, -sign if isinstance(value.op, ast.USub) else sign
        if not isinstance(value, ast.Constant) or isinstance(value.value, bool) or not isinstance(value.value, int):
            self.refuse(node, f"an offset that is no whole number (neighbours are so many cells away). Write {name}[-1] or the like")
        if value.value > FARTHEST:
            self.refuse(node, f"an offset of {_digits(value.value)} cells (at most {FARTHEST}). Use a nearer one")
        return sign * value.value

    def _power(self, node: ast.BinOp) -> int:
        power = self._whole(node.right)
        if power is None:
            self.refuse(node.right, "a power that is no whole number (it is written out as products). Use sqrt(x) or pow(x, y)")
        if abs(power) > HIGHEST_POWER:
            self.refuse(node.right, f"a power of {_digits(power)} (at most {HIGHEST_POWER} are written out as products). Use pow(x, y)")
        base = self.number(node.left)
        one = self.program.add("number", value=1.0)
        made = base if power else one
        for _ in range(abs(power) - 1):
            made = self.program.add("*", made, base)
        return self.program.add("/", one, made) if power < 0 else made

    def _whole(self, node: ast.AST) -> Optional[int]:
        """A whole number, also as a power of some: Python reads u**2**3 as u**(2**3). None: it is none."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            value = self._whole(node.operand)
            return value if value is None or isinstance(node.op, ast.UAdd) else -value
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            base, power = self._whole(node.left), self._whole(node.right)
            if base is None or power is None or not 0 <= power <= HIGHEST_POWER or abs(base) > HIGHEST_POWER:
                return None
            return base**power
        return None

    def _call(self, node: ast.Call) -> int:
        if isinstance(node.func, ast.Attribute):
            self._no_part(node.func)
        if not isinstance(node.func, ast.Name):
            self.refuse(node, "a call of something that is no name (functions have names). Write name(...)")
        name = node.func.id
        if name not in FUNCTIONS:
            self.refuse(node, f"{name!r} is no function here{near(name, FUNCTIONS)}. Use one of {', '.join(FUNCTIONS)}")
        if node.keywords or any(isinstance(one, ast.Starred) for one in node.args):
            self.refuse(node, f"{name} with arguments by name or from a list (they are taken by place). Write {name}(a, b)")
        count = {**EXACT, **ROUNDED, "where": 3}.get(name)
        if count is not None and len(node.args) != count or count is None and len(node.args) < 2:
            self.refuse(node, f"{name} of {counted(len(node.args), 'argument')} (it has {count if count is not None else 'two or more'}). Give as many")
        if name == "where":
            return self.program.add("where", self.truth(node.args[0]), *(self.number(one) for one in node.args[1:]))
        operands = [self.number(one) for one in node.args]
        if name in ("min", "max"):
            return self._least(name, operands)
        return self.program.add(name, *operands)

    def _least(self, name: str, operands: list) -> int:
        """As Python's min and max: the first one, unless a later one is less (more)."""
        made = operands[0]
        for one in operands[1:]:
            made = self.program.add("where", self.program.add("<" if name == "min" else ">", one, made), one, made)
        return made


def program_of(texts: list, fields: tuple, coefficients: tuple, parameters: tuple) -> Program:
    """The operations of all fields' expressions. UsageError: with the expression, and a caret where it is wrong."""
    program = Program(fields, coefficients, parameters)
    for text in texts:
        try:
            program.results.append(Reader(program, text).number(text.tree))
        except RecursionError:
            raise UsageError(f"an expression of {len(text.text)} letters is nested too deep (it cannot be read). Put parts of it in "
                             "parentheses, or make fields of them.") from None
    return program
