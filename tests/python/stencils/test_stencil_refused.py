"""What stencils refuse, and in which words."""

import warnings

import numpy as np
import pytest

import hostless

HEAT = "u + k*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1] - 4*u)"


def caret_of(problem):
    """(the sign above the caret, and what follows it) of an error's expression."""
    *_, text, below = str(problem).split("\n")
    assert below.strip() == "^" and text.startswith("    ")
    return text[below.index("^"):]


class TestExpressions:
    #: expression or dict, keywords, words of the error, what the caret points at
    WRONG = {
        "a misspelt parameter": ("u + kapa*u[1,0]", {"kappa": 1}, "'kapa' is no field.*did you mean 'kappa'", "kapa*"),
        "two fields": ("u[1] + v[1]", {}, "u and v were not given.*Stencil\\({", "v[1]"),
        "two without offsets": ("u + k", {}, "k and u were not given", "u + k"),
        "an unknown name": ({"u": "u[1] + w"}, {}, "'w' is no field.*of 'u'", "w"),
        "a misspelt field": ({"speed": "sped*2"}, {}, "did you mean 'speed'", "sped*2"),
        "a misspelt function": ("u[1] + sqrrt(u)", {}, "'sqrrt' is no function.*did you mean 'sqrt'", "sqrrt"),
        "NumPy's name": ("np.sqrt(u)", {}, "Write sqrt", "np.sqrt"),
        "NumPy's constant": ("u + np.pi", {}, "Write pi:", "np.pi"),
        "a name that NumPy alone has": ("np.fabs(u)", {}, "there is no fabs .did you mean 'abs'", "np.fabs"),
        "a part of the only name": ("u.real", {}, "[.]real in an expression .cells are real numbers", "u.real"),
        "a part beside a field": ("u[1] + u.imag", {}, "[.]imag in an expression .cells are real numbers", "u.imag"),
        "fewer offsets": ("u[1,0] + u[1]", {}, "1 offset where others have 2", "u[1]"),
        "more offsets": ({"u": "u[1]", "v": "v[1,0,0]"}, {}, "3 offsets where others have 1.*of 'v'", "v[1,0,0]"),
        "four offsets": ("u[1,0,0,0]", {}, "4 offsets", "u[1"),
        "no whole offset": ("u[0.5,0]", {}, "an offset that is no whole number", "0.5"),
        "an offset by name": ("u[k,0]", {"k": 1}, "an offset that is no whole number", "k,0"),
        "a slice": ("u[1:2,0]", {}, "an offset that is no whole number", "1:2"),
        "a true offset": ("u[True]", {}, "an offset that is no whole number", "True"),
        "a far offset": ("u[0,-65]", {}, "an offset of 65 cells", "-65"),
        "a parameter's neighbour": ("u + k[1]", {"k": 2.0}, "offsets of 'k', which is a number", "k[1]"),
        "a neighbour of a sum": ("(u + 1)[1]", {}, "offsets of something that is no name", "(u + 1)"),
        "a sign too many": ("u + * 2", {}, "Python cannot read", "* 2"),
        "a parenthesis": ("(u + 2", {}, "Python cannot read", "(u"),
        "a statement": ("u = 2", {}, "Python cannot read", "= 2"),
        "a comment": ("u[1] # the next", {}, "a comment", "# the"),
        "a text": ("u + 'a'", {}, "'a' is no real number", "'a'"),
        "a complex number": ("u*1j", {}, "1j is no real number", "1j"),
        "true": ("u*True", {}, "True is no real number", "True"),
        "a large number": ("u*1e999", {}, "beyond float64", "1e999"),
        "a large whole number": ("u*" + "9" * 400, {}, "beyond float64", "9999"),
        "a root": ("u[1]**0.5", {}, "a power that is no whole number", "0.5"),
        "an offset that Python writes no digits of": ("u[0x" + "f" * 5000 + "]", {}, "an offset of more than 10.30 cells", "0x" + "f" * 5000),
        "a power that Python writes no digits of": ("u**-0x" + "f" * 5000, {}, "a power of less than -10.30", "-0x" + "f" * 5000),
        "a high power": ("u**65", {}, "a power of 65", "65"),
        "another language's power": ("u^2", {}, "Write \\*\\*", "u^2"),
        "a remainder": ("u % 2", {}, "% in an expression .*Write u - k\\*floor", "u % 2"),
        "a whole quotient": ("u // 2", {}, "// in an expression .*Write floor", "u // 2"),
        "a product of matrices": ("1 + u @ u", {}, "@ in an expression .*Write \\*", "u @ u"),
        "a shift": ("u << 1", {}, "<< in an expression", "u << 1"),
        "a bit": ("u + (u & 1)", {}, "& of a number .*floor", "u & 1"),
        "bits turned round": ("~u", {}, "~ of a number", "~u"),
        "not of a number": ("not u", {}, "not of a number \\(it is for conditions\\)", "not u"),
        "conditions without parentheses": ("where(u > 0 & u < 1, 1, 0)", {}, "& of a number .*binds tighter .*\\(u > 0\\) & \\(v > 0\\)", "0 & u"),
        "a high power of powers": ("u**2**7", {}, "a power of 128", "2**7"),
        "a power of a field": ("u**2**u", {}, "a power that is no whole number", "2**u"),
        "a list": ("[u]", {}, "list is no part", "[u]"),
        "a lambda": ("(lambda: u)()", {}, "a call of something", "(lambda"),
        "a comparison as a number": ("2*(u > 0)", {}, "Write where\\(condition, 1, 0\\)", "u > 0"),
        "a number as a condition": ("where(u, 1, 0)", {}, "a number where a condition", "u, 1"),
        "identity": ("where(u is 2, 1, 0)", {}, "a comparison of another kind", "u is 2"),
        "two arguments of where": ("where(u > 0, 1)", {}, "where of 2 arguments \\(it has 3", "where"),
        "one of min": ("min(u)", {}, "min of 1 argument \\(it has two or more", "min"),
        "a keyword": ("sqrt(x=u)", {}, "by name or from a list", "sqrt"),
        "a function alone": ("u + sqrt", {}, "sqrt without arguments", "sqrt"),
        "letters of more bytes": ("ü + 1 + sqrrt(ü)", {}, "no function", "sqrrt"),
        "lines": ("u +\n  u[0.5]", {}, "no whole number", "0.5"),
    }

    def test_half_a_surrogate_pair(self):
        with pytest.raises(hostless.UsageError, match=r"has '\\ud800' at place 2, which is no character"):
            hostless.Stencil("u+\ud800")

    @pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python's, of `u is 2`
    @pytest.mark.parametrize("what", WRONG)
    def test_with_a_caret(self, what):
        expressions, given, words, at = self.WRONG[what]
        with pytest.raises(hostless.UsageError, match=words) as raised:
            hostless.Stencil(expressions, **given)
        assert caret_of(raised.value).startswith(at)

    #: of the same, without one
    OTHERS = {
        "empty": ("  ", {}, hostless.UsageError, "an expression is empty"),
        "no text": (3, {}, TypeError, "an expression is an int"),
        "no text of a field": ({"u": None}, {}, TypeError, "the expression of 'u' is a NoneType"),
        "no fields": ({}, {}, hostless.UsageError, "0 fields"),
        "many fields": ({f"u{k}": "1" for k in range(9)}, {}, hostless.UsageError, "9 fields"),
        "no field left": ("k*2", {"k": 2}, hostless.UsageError, "no name is left for the field"),
        "numbers alone": ("1 + pi", {}, hostless.UsageError, "no name is left for the field"),
        "a keyword that is nowhere": ("u + 1", {"k": 2}, hostless.UsageError, "k is nowhere in the expression"),
        "a field as a keyword": ({"u": "u + v", "v": "v"}, {"v": 2}, hostless.UsageError, "v=2, which is a field"),
        "a function as a field": ({"max": "1"}, {}, hostless.UsageError, "'max' as the name"),
        "a word of Python": ({"if": "1"}, {}, hostless.UsageError, "'if' as the name"),
        "two words": ({"a b": "1"}, {}, hostless.UsageError, "'a b' as the name"),
        "a number as a name": ({1: "1"}, {}, hostless.UsageError, "1 as the name"),
        "a text as a parameter": ("u*k", {"k": "2"}, TypeError, "k is a str"),
        "a complex parameter": ("u*k", {"k": 2j}, TypeError, "k is a complex"),
        "a complex coefficient": ("u*k", {"k": np.zeros(3, complex)}, TypeError, "k is complex"),
        "a masked coefficient": ("u*k", {"k": np.ma.masked_array([1.0, 2.0], [True, False])}, hostless.UsageError, "mask"),
        "deep": ("(" * 150 + "u" + ")" * 150 + "[1" * 2000, {}, hostless.UsageError, "."),
        "long": ("-" * 100000 + "u", {}, hostless.UsageError, "deep|long"),
    }

    @pytest.mark.parametrize("what", OTHERS)
    def test_in_words(self, what):
        expressions, given, kind, words = self.OTHERS[what]
        with pytest.raises(kind, match=words):
            hostless.Stencil(expressions, **given)

    def test_named(self):
        for call, words in ((lambda: hostless.Stencil.named("heet"), "'heet' \\(did you mean 'heat'\\?\\).*jacobi2d"),
                            (lambda: hostless.Stencil.named("heat", kk=1), "kk=1.*did you mean 'k'"),
                            (lambda: hostless.Stencil.named("life", k=1), "life has no parameters")):
            with pytest.raises(hostless.UsageError, match=words):
                call()
        with pytest.raises(TypeError, match="k='a'"):
            hostless.Stencil.named("heat", k="a")
        with pytest.raises(TypeError, match="run.. got an unexpected keyword argument 'k'.*Make another Stencil"):
            hostless.Stencil.named("heat").run(np.zeros((9, 9)), 1, k=0.1)
        with pytest.raises(hostless.UsageError, match="arrays of 1 axis for heat \\(it has 2 or 3\\)"):
            hostless.Stencil.named("heat").run(np.zeros(9), 1)

    def test_what_it_was_made_of_stays(self):
        heat = hostless.Stencil("u + k*(u[-1] + u[1] - 2*u)", k=0.2)
        for change in (lambda: setattr(heat, "k", 0.1), lambda: setattr(heat, "parameters", {})):
            with pytest.raises(AttributeError, match="Make another Stencil"):
                change()
        for change in (lambda: heat.parameters.update(k=0.1), lambda: heat.parameters.__setitem__("k", 0.1), lambda: heat.parameters.clear()):
            with pytest.raises(TypeError, match="Make another Stencil"):
                change()
        assert heat.parameters == {"k": 0.2}
        for how, words in ((dict(k=0.1), "'k'. Make another Stencil"), (dict(step=3), "'step' .did you mean 'steps'"), (dict(x=1), "'x'[.]$")):
            with pytest.raises(TypeError, match=words):
                heat.run(np.zeros(9), 1, **how)
        assert "feed [0.035]" in hostless.stencil_names()["gray_scott"]


def read_only():
    u = np.zeros((6, 6))
    u.flags.writeable = False
    return u


class OnGpu:
    """As CuPy's arrays say where they are."""
    __cuda_array_interface__ = {"shape": (6, 6), "typestr": "<f8", "data": (4096, False), "version": 3}


TWICE = np.zeros((6, 7))


class TestArrays:
    WRONG = {
        "whole numbers": (lambda: np.zeros((6, 6), int), TypeError, "u has the type int64.*astype"),
        "complex": (lambda: np.zeros((6, 6), complex), TypeError, "u is complex"),
        "half": (lambda: np.zeros((6, 6), np.float16), TypeError, "float16"),
        "long double": (lambda: np.zeros((6, 6), np.longdouble), TypeError, "u has the type"),
        "another byte order": (lambda: np.zeros((6, 6), ">f8"), TypeError, ">f8"),
        "objects": (lambda: np.zeros((6, 6), object), TypeError, "object"),
        "a list": (lambda: [[1.0, 2.0]], TypeError, "u is a list"),
        "a number": (lambda: 3.0, TypeError, "u is a float"),
        "none": (lambda: None, TypeError, "u is a NoneType"),
        "read-only": (read_only, hostless.UsageError, "u is read-only"),
        "bytes": (lambda: b"abc", TypeError, "uint8"),
        "masked": (lambda: np.ma.zeros((6, 6)), hostless.UsageError, "u has a mask"),
        "a GPU's": (OnGpu, hostless.UsageError, "u is an OnGpu in the memory of a GPU"),
        "one axis": (lambda: np.zeros(6), hostless.UsageError, "arrays of 1 axis \\(offsets in the expression have 2"),
        "no axes": (lambda: np.zeros(()), hostless.UsageError, "0 axes"),
        "four axes": (lambda: np.zeros((2, 2, 2, 2)), hostless.UsageError, "4 axes"),
        "no cells": (lambda: np.zeros((0, 6)), hostless.UsageError, "the shape \\(0, 6\\)"),
        "one cell many times": (lambda: np.lib.stride_tricks.as_strided(np.zeros(6), (6, 6), (0, 8)), hostless.UsageError, "share memory"),
        "windows": (lambda: np.lib.stride_tricks.as_strided(np.zeros(12), (6, 6), (8, 8)), hostless.UsageError, "share memory"),
        "rows that overlap": (lambda: np.lib.stride_tricks.as_strided(np.zeros(30), (6, 6), (32, 8)), hostless.UsageError, "share memory"),
        "halves of numbers": (lambda: np.lib.stride_tricks.as_strided(np.zeros(40), (6, 6), (48, 4)), hostless.UsageError, "share memory"),
        "a dict of others": (lambda: {"w": np.zeros((6, 6))}, hostless.UsageError, "an array for 'w'"),
        "an empty dict": (lambda: {}, hostless.UsageError, "no array for u"),
    }

    @pytest.mark.parametrize("what", WRONG)
    def test_of_one_field(self, what):
        make, kind, words = self.WRONG[what]
        with pytest.raises(kind, match=words):
            hostless.Stencil(HEAT, k=0.2).run(make(), 1)

    SEVERAL = {
        "one": (lambda: np.zeros((6, 6)), hostless.UsageError, "one array for 2 fields"),
        "three": (lambda: (np.zeros(6),) * 3, hostless.UsageError, "3 arrays for 2 fields"),
        "types": (lambda: (np.zeros(6), np.zeros(6, np.float32)), TypeError, "v is float32, u float64"),
        "shapes": (lambda: (np.zeros(6), np.zeros(7)), hostless.UsageError, "v has the shape \\(7,\\), u \\(6,\\)"),
        "missing": (lambda: {"u": np.zeros(6)}, hostless.UsageError, "no array for v"),
        "twice the same": (lambda: (TWICE[0], TWICE[0]), hostless.UsageError, "u and v share memory"),
        "overlapping": (lambda: (TWICE[:4], TWICE[2:]), hostless.UsageError, "u and v share memory"),
    }

    @pytest.mark.parametrize("what", SEVERAL)
    def test_of_several(self, what):
        make, kind, words = self.SEVERAL[what]
        with pytest.raises(kind, match=words):
            hostless.Stencil({"u": "v", "v": "u + v"}).run(make(), 1)

    def test_coefficients(self):
        with pytest.raises(hostless.UsageError, match="a has the shape \\(6, 5\\), u \\(6, 6\\)"):
            hostless.Stencil("u*a", a=np.zeros((6, 5))).run(np.zeros((6, 6)), 1)
        with pytest.raises(hostless.UsageError, match="a is in the memory of a GPU"):
            hostless.Stencil("u*a", a=OnGpu()).run(np.ones(5), 1)
        a, u = np.ones(5, int), np.ones(5)
        stencil = hostless.Stencil("u*a", a=a)
        a[:] = 3  # which the run reads
        stencil.run(u, 2)
        assert u.tolist() == [9.0] * 5 and a.tolist() == [3] * 5

    def test_offsets_beyond_the_array(self):
        with pytest.raises(hostless.UsageError, match="an offset of 7 cells along axis 1, of which u has 6"):
            hostless.Stencil("u[0,7]").run(np.zeros((6, 6)), 1)
        u = np.arange(6.0)
        hostless.Stencil("u[6]").run(u, 1, boundary="periodic")
        assert u.tolist() == list(range(6))

    def test_numbers_beyond_float32(self):
        for stencil in (hostless.Stencil("u*1e300"), hostless.Stencil("u*k", k=1e300)):
            with pytest.raises(hostless.UsageError, match="1e\\+300 is beyond float32"):
                stencil.run(np.zeros(6, np.float32), 1)
            stencil.run(np.zeros(6), 1)

    def test_coefficients_beyond_float32(self):
        k = np.ones(6)
        k[4] = 1e300
        stencil = hostless.Stencil("u*k", k=k)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(hostless.UsageError, match=r"k\[4\] = 1e\+300 is beyond float32"):
                stencil.run(np.ones(6, np.float32), 1)
        u = np.ones(6)
        assert stencil.run(u, 1).status == "steps_done" and u[4] == 1e300
        k[4] = np.inf  # nothing is lost of it
        assert stencil.run(np.ones(6, np.float32), 1).status == "not_finite"

    def test_coefficients_beyond_float64(self):
        huge = np.full(6, np.longdouble("1e4000"))
        with pytest.raises(hostless.UsageError, match=r"k\[0\] = 1e\+4000 is beyond float64 \(.*\)\. Use smaller"):
            hostless.Stencil("u*k", k=huge).run(np.ones(6), 1)

    def test_a_whole_number_beyond_float64_is_not_called_infinite(self):
        for made in (lambda: hostless.Stencil("u*k", k=10**400), lambda: hostless.Stencil.named("heat", k=-10**400)):
            with pytest.raises(hostless.UsageError, match="k is beyond float64 .*a finite number"):
                made()

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, np.float32(np.inf), np.array(np.nan)], ids=str)
    def test_parameters_are_finite(self, value):
        for made in (lambda: hostless.Stencil("u*k", k=value), lambda: hostless.Stencil.named("heat", k=value)):
            with pytest.raises(hostless.UsageError, match="k=-?(inf|nan) .*a finite number"):
                made()

    def test_coefficients_of_uneven_rows(self):
        with pytest.raises(hostless.UsageError, match="k is a list .*differ in length"):
            hostless.Stencil("u*k", k=[[1], [1, 2]])

    def test_other_protocols(self):
        class Lent:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **how):
                return self.array.__dlpack__(**how)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        u = np.ones(5)
        hostless.Stencil("u*2").run(memoryview(u), 1)
        hostless.Stencil("u*2").run(Lent(u), 1)
        hostless.Stencil("u*2").run([u], 1)
        assert u.tolist() == [8.0] * 5


class TestHow:
    WRONG = {
        "negative steps": ((-1,), {}, hostless.UsageError, "steps=-1"),
        "half steps": ((1.5,), {}, TypeError, "steps=1.5"),
        "many steps": ((2**60,), {}, hostless.UsageError, "steps="),
        "a boundary": ((1,), {"boundary": "periodical"}, hostless.UsageError, "did you mean 'periodic'"),
        "boundaries": ((1,), {"boundary": ("periodic",)}, hostless.UsageError, "arrays have 2 axes"),
        "no boundary": ((1,), {"boundary": None}, hostless.UsageError, "boundary=None"),
        "no ranks": ((1,), {"ranks": 0}, hostless.UsageError, "ranks=0"),
        "more ranks than cells": ((1,), {"ranks": 100}, hostless.UsageError, "100 ranks for a grid of 8 x 8 cells"),
        "ranks in words": ((1,), {"ranks": "two"}, TypeError, "ranks='two'"),
        "ranks along one axis": ((1,), {"ranks_along": (2,)}, hostless.UsageError, "2 axes"),
        "ranks along no axis": ((1,), {"ranks_along": (0, 2)}, hostless.UsageError, "from 1 on"),
        "ranks that do not fit": ((1,), {"ranks_along": (2, 2), "ranks": 3}, hostless.UsageError, "ranks=3 and ranks_along=\\(2, 2\\), which are 4"),
        "ranks along a short axis": ((1,), {"ranks_along": (1, 9)}, hostless.UsageError, "9 ranks along axis 1, which has 8"),
        "no depth": ((1,), {"depth": 0}, hostless.UsageError, "depth=0"),
        "a deep halo": ((1,), {"depth": 99, "boundary": "periodic"}, hostless.UsageError, "99 steps between two exchanges"),
        "blocks deeper than halos": ((1,), {"depth": 1, "block_steps": 3}, hostless.UsageError, "3 steps in one pass"),
        "looks": ((1,), {"every": -1}, hostless.UsageError, "every=-1"),
        "an endless tolerance": ((1,), {"tolerance": float("inf"), "every": 1}, hostless.UsageError, "tolerance=inf .*a finite number"),
        "a tolerance": ((1,), {"tolerance": -1, "every": 1}, hostless.UsageError, "tolerance=-1"),
        "a tolerance that is none": ((1,), {"tolerance": float("nan"), "every": 1}, hostless.UsageError, "tolerance=nan"),
        "a tolerance unseen": ((1,), {"tolerance": 1}, hostless.UsageError, "a tolerance without every"),
        "a callback unseen": ((1,), {"callback": print}, hostless.UsageError, "a callback without every"),
        "no callback": ((1,), {"callback": 3, "every": 1}, hostless.UsageError, "callback is an int"),
        "no time": ((1,), {"time_limit": 0}, hostless.UsageError, "time_limit=0"),
        "communicator": ((1,), {"communicator": None}, TypeError, "communicator"),
    }

    @pytest.mark.parametrize("what", WRONG)
    def test_a_run(self, what):
        arguments, how, kind, words = self.WRONG[what]
        u = np.ones((8, 8))
        for stencil in (hostless.Stencil.named("heat"), hostless.Stencil(HEAT, k=0.2)):
            with pytest.raises(kind, match=words):
                stencil.run(u, *arguments, **how)
        assert (u == 1).all()

    def test_what_is_advised_can_be_done(self):
        fields = np.ones((31, 8, 1)), np.ones((31, 8, 1))
        wave, how = hostless.Stencil.named("wave"), dict(boundary="periodic", ranks=1)
        with pytest.raises(hostless.UsageError, match=r"Use block steps of at most 1\.$"):
            wave.run(fields, 8, block_steps=3, **how)
        with pytest.raises(hostless.UsageError, match=r"Use a depth of at most 1\.$"):
            wave.run(fields, 8, block_steps=3, depth=3, **how)
        assert wave.run(fields, 8, block_steps=1, **how).steps == 8
