"""Collectives: operations in which all members of a peer group take part, without servers."""

import ctypes
import threading
from collections import namedtuple

import numpy as np

from . import _abi
from ._errors import check, error, invalid, last_error
from ._gate import Handle, Patience, nanoseconds
from ._library import lib
from ._options import choice, number
from ._vector import Owned, _text

CollectiveState = namedtuple("CollectiveState", [name for name, _ in _abi.CollectiveState._fields_])
CollectiveState.__doc__ = """What this member knows at present, as in struct pawl_collective_state. `failed` is the name of a
status, or None."""

_OPERATORS = {"sum": "PAWL_COLLECTIVE_SUM", "min": "PAWL_COLLECTIVE_MIN", "max": "PAWL_COLLECTIVE_MAX"}
_TYPES = {np.dtype("float32"): _abi.CONSTANTS["PAWL_F32"], np.dtype("float64"): _abi.CONSTANTS["PAWL_F64"]}


def _array_of(what, given, must_be_writable=False):
    """The array itself, or one over the memory of a buffer: values are read and written in place, and never copied."""
    if not isinstance(given, np.ndarray):
        try:
            given = np.asarray(memoryview(given))
        except TypeError:
            raise invalid("%s: expected a NumPy array or a buffer, got %s", what, type(given).__name__) from None
    if given.dtype not in _TYPES:
        raise error(_abi.UNSUPPORTED, "%s: the array is %s; expected float32 or float64" % (what, given.dtype))
    if not (given.flags.c_contiguous and given.flags.aligned):
        raise invalid("%s: arrays must be C-contiguous and aligned", what)
    if must_be_writable and not given.flags.writeable:
        raise invalid("%s: the array for the result must be writable", what)
    return given


def _fitting(what, out, dtype, count):
    """The array for the result, which the caller gave."""
    out = _array_of(what, out, True)
    if out.dtype != dtype or out.size != count:
        raise invalid("%s: out has %d values of %s; expected %d of %s", what, out.size, out.dtype, count, dtype)
    return out


def _check_apart(what, array, out, place=0):
    """`array` is exactly the part of `out` from `place` on, or they share no memory."""
    if array.nbytes == 0 or out.nbytes == 0 or array.ctypes.data == out.ctypes.data + place:
        return
    if array.ctypes.data < out.ctypes.data + out.nbytes and out.ctypes.data < array.ctypes.data + array.nbytes:
        raise invalid("%s: the array and out overlap", what)


class Collective(Owned):
    """Operations of all members of a peer group. All members call the same operations in the same order, with arrays
    of the same type and number of values; Mismatch names members that differ. `close`, or the end of a with block,
    delivers what others still need.

    After TimedOut, or Ctrl-C, an operation is not over: repeat the call with the same arguments, or call `renew`. When
    a member is lost, a NodeError is raised at all others, and again by every call until they call `renew`. """

    def __init__(self, peers, name, timeout=30.0):
        self._what = "collective %s of %s" % (name, peers.name)
        pointer, gate, group = ctypes.c_void_p(), peers._gate, peers._handle
        with gate.inside(group):
            opened = lib.pawl_collective_open(group.pointer, _text(name, "collective"), nanoseconds(timeout), ctypes.byref(pointer))
            check(opened)
            gate.retain(group)

        def free(opened):
            lib.pawl_collective_close(opened)
            gate.release(group)

        super().__init__(peers._session, Handle(pointer.value, free, self._what))
        peers._parts.add(self)
        self.name, self._peers, self._calling = name, peers, threading.Lock()
        self._left = None  # the call that has timed out: what was asked, and the array for its result

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, function, arguments, patience):
        """Calls until the operation is over. Each call inside the gate lasts for a slice of the time at most."""
        while True:
            with self._gate.inside(self._handle):
                status = function(self._handle.pointer, *arguments, nanoseconds(patience.slice()))
                failure = last_error(status) if status else None
            if failure is None:
                return
            if status != _abi.TIMED_OUT or patience.is_over():
                raise failure

    def _run(self, function, asked, prepare, timeout):
        """Calls `function` with the arguments of `prepare`, which returns them and the array for the result. A call that
        has timed out goes on with its own arrays if the same is asked again."""
        patience = Patience(timeout)
        if not self._calling.acquire(blocking=False):
            raise invalid("%s: another thread is in a call", self._what)
        try:
            left, given = self._left, (function, *asked)
            is_same = left is not None and all(a is b or isinstance(a, (int, str)) and a == b for a, b in zip(left[0], given))
            call = left if is_same else (given, *prepare())
            self._left = left or call  # also if Ctrl-C ends the call
            try:
                self._call(function, call[1], patience)
            except Exception as problem:
                status = getattr(problem, "status", None)
                is_left = status == _abi.TIMED_OUT or status == _abi.INVALID and left is not None and not is_same
                self._left = self._left if is_left else None
                raise
            self._left = None
        finally:
            self._calling.release()
        return call[2]

    def _members(self):
        """Members that take part, or will as far as is known."""
        state = self.state()
        return max(state.size if state.number else state.members, 1)

    def _run_sized(self, function, asked, prepare, timeout):
        """As _run, for a result whose size depends on the members: they are known for certain once they have begun."""
        while True:
            members = self._members()
            try:
                return self._run(function, asked, lambda: prepare(members), timeout)
            except Exception as problem:
                if getattr(problem, "status", None) != _abi.INVALID or self._members() == members:
                    raise

    def barrier(self, timeout=None):
        """Returns after all members have called it."""
        self._run(lib.pawl_collective_barrier, (), lambda: ((), None), timeout)

    def broadcast(self, array, root=0, timeout=None):
        """Copies the array of the member with rank `root` into those of all others, and returns the array."""
        what = "broadcast of %s" % self._what
        values, root = _array_of(what, array, True), number("root", root, 32)
        arguments = values.ctypes.data, values.size, _TYPES[values.dtype], root
        return self._run(lib.pawl_collective_broadcast, (array, root), lambda: (arguments, values), timeout)

    def all_gather(self, array, out=None, timeout=None):
        """The arrays of all members by rank: an array with one dimension more, or `out`. `array` may be this member's place
        in `out`."""
        what = "all-gather of %s" % self._what
        values = _array_of(what, array)

        def prepare(members):
            if out is None:
                result = np.empty((members, *values.shape), values.dtype)
            else:
                result = _fitting(what, out, values.dtype, members * values.size)
                _check_apart(what, values, result, self.state().rank * values.nbytes)
            return (values.ctypes.data, values.size, _TYPES[values.dtype], result.ctypes.data, result.size), result

        result = self._run_sized(lib.pawl_collective_all_gather, (array, out), prepare, timeout)
        return result if out is not None else result[: self.state().size]

    def all_reduce(self, array, op="sum", out=None, timeout=None):
        """The sum, minimum or maximum ("sum", "min", "max") of the arrays of all members, with the same bits everywhere: a new
        array, or `out`, which may be `array`."""
        what = "all-reduce of %s" % self._what
        values, operator = _array_of(what, array), choice("op", op, _OPERATORS)

        def prepare():
            result = np.empty_like(values) if out is None else _fitting(what, out, values.dtype, values.size)
            _check_apart(what, values, result)
            return (values.ctypes.data, result.ctypes.data, values.size, _TYPES[values.dtype], operator), result

        return self._run(lib.pawl_collective_all_reduce, (array, out, op), prepare, timeout)

    def reduce_scatter(self, array, op="sum", timeout=None):
        """This member's block of the sum, minimum or maximum of all arrays, as a new array of one dimension. The blocks of
        all members by rank, one after the other, are the whole."""
        what = "reduce-scatter of %s" % self._what
        values, operator = _array_of(what, array), choice("op", op, _OPERATORS)

        def prepare(members):
            result = np.empty(-(-values.size // members), values.dtype)
            arguments = values.ctypes.data, values.size, _TYPES[values.dtype], operator, result.ctypes.data, result.size
            return arguments, result

        result = self._run_sized(lib.pawl_collective_reduce_scatter, (array, op), prepare, timeout)
        state, first, count = self.state(), ctypes.c_size_t(), ctypes.c_size_t()
        lib.pawl_collective_block(values.size, state.size, state.rank, ctypes.byref(first), ctypes.byref(count))
        return result[: count.value]

    def renew(self, timeout=None):
        """Gives up what is under way or has failed, and waits until all members of the group have called it too. They begin
        anew, with new ranks."""
        patience = Patience(timeout)
        if not self._calling.acquire(blocking=False):
            raise invalid("%s: another thread is in a call", self._what)
        try:
            self._left = None
            self._call(lib.pawl_collective_renew, (), patience)
        finally:
            self._calling.release()

    def state(self):
        """Rank and number of members, completed operations, and what has failed."""
        state = _abi.CollectiveState()
        with self._gate.inside(self._handle):
            lib.pawl_collective_state(self._handle.pointer, ctypes.byref(state))
        values = {name: getattr(state, name) for name in CollectiveState._fields}
        name = lib.pawl_status_name(state.failed).decode() if state.failed else None
        return CollectiveState(**{**values, "failed": name})

    def __repr__(self):
        return "<pawl.Collective %s of %s>" % (self.name, self._peers.name)
