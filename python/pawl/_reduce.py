"""Reduce: the members of a peer group average their arrays with one another, without servers."""

import ctypes
import os
import threading
from collections import namedtuple

import numpy as np

from . import _abi
from ._errors import check, error, invalid, last_error
from ._gate import Handle, Patience, nanoseconds
from ._library import lib
from ._options import choice, number
from ._vector import Owned, _text

ReduceReport = namedtuple(
    "ReduceReport",
    "iteration number rank size expected used current is_regenerated is_adopted bytes_sent waited_ack waited agreed",
)
ReduceReport.__doc__ = "One step, as in struct pawl_reduce_report; the last three are seconds."

ReduceState = namedtuple("ReduceState", [name for name, _ in _abi.ReduceState._fields_])
ReduceState.__doc__ = "What this member knows at present, as in struct pawl_reduce_state."

_MODES = {"notify-ack": "PAWL_REDUCE_NOTIFY_ACK", "bsp": "PAWL_REDUCE_BSP", "async": "PAWL_REDUCE_ASYNC"}
_WHATS = {"mix": "PAWL_REDUCE_MIX", "mean": "PAWL_REDUCE_MEAN"}
_NARROWS = {"full": "PAWL_REDUCE_FULL", "f16": "PAWL_REDUCE_F16", "bf16": "PAWL_REDUCE_BF16", "int8": "PAWL_REDUCE_INT8"}
_TYPES = {np.dtype("float32"): _abi.CONSTANTS["PAWL_F32"], np.dtype("float64"): _abi.CONSTANTS["PAWL_F64"]}


def _arrays_of(what, given):
    """The arrays themselves: the library reads and writes them in place, so they are never copied."""
    arrays = [given] if isinstance(given, np.ndarray) else list(given)
    for array in arrays:
        if not isinstance(array, np.ndarray):
            raise invalid("%s: expected NumPy arrays, got %s", what, type(array).__name__)
        if array.dtype not in _TYPES:
            raise error(_abi.UNSUPPORTED, "%s: an array is %s; expected float32 or float64" % (what, array.dtype))
        if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
            raise invalid("%s: arrays must be C-contiguous, aligned and writable, because they are changed in place", what)
    return arrays


def _check_apart(what, arrays):
    """No value may be in two arrays: it would be averaged twice."""
    end = 0
    for begin, size in sorted((array.ctypes.data, array.nbytes) for array in arrays if array.nbytes > 0):
        if begin < end:
            raise invalid("%s: two of the arrays share memory", what)
        end = begin + size


def _tensors(arrays):
    return (_abi.Tensor * len(arrays))(*((array.ctypes.data, array.size, _TYPES[array.dtype]) for array in arrays))


class Reduce(Owned):
    """Arrays that every member of a peer group has a copy of, and averages with its neighbours in each step. `close`, or
    the end of a with block, delivers the result of the last step; the others then go on without this member.

    The arrays belong to the caller between two steps. During a step no thread may use them. """

    def __init__(
        self,
        peers,
        name,
        arrays,
        *,
        mode="notify-ack",
        what="mix",
        graph=None,
        seed=1,
        degree=0,
        narrow="full",
        significant=0.0,
        carried=(),
        checkpoint=None,
        checkpoint_period=0,
        first=0,
        timeout=30.0,
    ):
        self._what = "reduce %s of %s" % (name, peers.name)
        tensors, kept = _arrays_of(self._what, arrays), _arrays_of(self._what, carried)
        _check_apart(self._what, tensors + kept)
        options, pointer = _abi.ReduceOptions(), ctypes.c_void_p()
        lib.pawl_reduce_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        options.mode, options.what = choice("mode", mode, _MODES), choice("what", what, _WHATS)
        options.narrow, options.graph = choice("narrow", narrow, _NARROWS), _text(graph, "graph")
        options.seed, options.degree = number("seed", seed, 64), number("degree", degree, 32)
        try:
            options.significant = significant
        except TypeError:
            raise invalid("invalid significant=%r; expected a number", significant) from None
        if bool(checkpoint) != bool(checkpoint_period):
            raise invalid("%s: checkpoint= and checkpoint_period= belong together", self._what)
        options.checkpoint = None if checkpoint is None else os.fsencode(checkpoint)
        options.checkpoint_period, options.first = number("checkpoint_period", checkpoint_period, 64), number("first", first, 64)
        given, carried_tensors = _tensors(tensors), _tensors(kept)
        options.carried, options.carried_count = ctypes.cast(carried_tensors, ctypes.c_void_p), len(kept)
        gate, group = peers._gate, peers._handle
        with gate.inside(group):
            arguments = given, len(tensors), ctypes.byref(options), nanoseconds(timeout), ctypes.byref(pointer)
            check(lib.pawl_reduce_open(group.pointer, _text(name, "reduce"), *arguments))
            gate.retain(group)

        def free(opened, _borrowed=(tensors, kept)):  # the library uses the arrays until then
            lib.pawl_reduce_close(opened)
            gate.release(group)

        super().__init__(peers._session, Handle(pointer.value, free, self._what))
        peers._parts.add(self)
        self.name, self._peers, self._stepping = name, peers, threading.Lock()

    def step(self, timeout=None):
        """Sends the arrays to this member's neighbours, waits as the mode says, replaces each value by the average, and
        returns a ReduceReport. After TimedOut, or Ctrl-C, the step is not over and the arrays are as they were: call
        it again, without changing them, to go on. If a checkpoint could not be written, the step is complete all the
        same."""
        report, patience = _abi.ReduceReport(), Patience(timeout)
        if not self._stepping.acquire(blocking=False):
            raise invalid("step of %s: another thread is in a step", self._what)
        try:
            while True:
                with self._gate.inside(self._handle):
                    wait = nanoseconds(patience.slice())
                    status = lib.pawl_reduce_step(self._handle.pointer, wait, ctypes.byref(report))
                    failure = last_error(status) if status else None
                if failure is None:
                    break
                if status != _abi.TIMED_OUT or patience.is_over():
                    raise failure
        finally:
            self._stepping.release()
        values = [getattr(report, name) for name, _ in report._fields_]
        return ReduceReport(*values[:-3], *(nanos * 1e-9 for nanos in values[-3:]))

    def state(self):
        """Iteration, graph, rank and neighbours of this member."""
        state = _abi.ReduceState()
        with self._gate.inside(self._handle):
            lib.pawl_reduce_state(self._handle.pointer, ctypes.byref(state))
        values = {name: getattr(state, name) for name in ReduceState._fields}
        return ReduceState(**{**values, "graph": state.graph.decode()})

    def save(self, path):
        """Saves the arrays and the iteration to a file, of this member alone. Call it between steps."""
        with self._gate.inside(self._handle):
            check(lib.pawl_reduce_save(self._handle.pointer, os.fsencode(path)))

    def load(self, path):
        """Loads a checkpoint into the arrays, before the first step. Returns its iteration."""
        iteration = ctypes.c_uint64()
        with self._gate.inside(self._handle):
            check(lib.pawl_reduce_load(self._handle.pointer, os.fsencode(path), ctypes.byref(iteration)))
        return iteration.value

    def __repr__(self):
        return "<pawl.Reduce %s of %s>" % (self.name, self._peers.name)
