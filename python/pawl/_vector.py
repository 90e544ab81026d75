"""Vectors: push and pull."""

import ctypes

import numpy as np

from . import _abi, _arrays
from ._errors import check, error, invalid, last_error
from ._gate import Handle, nanoseconds
from ._library import lib
from ._task import Task


class Owned:
    """An object of a session that can be closed before the session."""

    def __init__(self, session, handle):
        self._session, self._gate, self._handle = session, session._gate, handle

    def close(self):
        """Closes the object. Tasks that use it continue; later calls are refused."""
        self._gate.close_handle(self._handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        handle = self.__dict__.get("_handle")
        if handle is not None and not handle.is_closed and not self._gate.is_closed():
            self._gate.dropped.append(handle)


class Keys(Owned):
    """A list of keys for repeated use: servers remember it, and later calls send only its signature."""

    def __init__(self, vector, keys):
        what = "keys for %s" % vector.name
        array = _arrays.keys(what, keys)
        pointer = ctypes.c_void_p()
        with vector._gate.inside(vector._handle):
            check(lib.pawl_keys_create(vector._handle.pointer, array.ctypes.data, array.size, ctypes.byref(pointer)))
        super().__init__(vector._session, Handle(pointer.value, lib.pawl_keys_destroy, what))
        self._count = array.size

    def __len__(self):
        return self._count


class Vector(Owned):
    """Rows of numbers, one per key, stored on the servers.

    Select the keys of a call with
      keys=    a sorted array of integers, or the result of `prepare`;
      range=   (begin, end), for all keys in between;
      both     for those of the keys that are in the range; arrays have a row for every key, but only the rows in the
               range are read or filled;
      neither  for the whole vector, if it was created with a size.

    Arrays have one value per key, or one row per key if the vector has a width. C-contiguous arrays of the
    vector's dtype are read and filled in place. With wait=False a call returns a Task at once. With
    after=[tasks] the call begins when these tasks have finished. """

    def __init__(self, session, pointer):
        info = _abi.VectorInfo()
        lib.pawl_vector_info(pointer, ctypes.byref(info))
        self.name = info.name.decode()
        super().__init__(session, Handle(pointer, lib.pawl_vector_close, "vector %s" % self.name))
        self.dtype = _arrays.DTYPES[info.options.type]
        self.size = info.options.size
        self.width = info.pulled_width
        self.pushed_width = info.pushed_width
        self.rule = info.options.rule.decode()
        self.filters = info.options.filters.decode()

    def __repr__(self):
        span = "all keys" if self.size == _abi.KEY_END else "%d keys" % self.size
        return "<pawl.Vector %s: %s, width %d, %s>" % (self.name, self.dtype, self.width, span)

    # --- calls --------------------------------------------------------------------------------------------------------

    def push(self, values, keys=None, *, range=None, weights=None, after=(), wait=True, timeout=None):
        """Pushes a row for each key. The servers apply it with the vector's function, by default add.
        `weights`, for the kkt filter, are the rows that are known to be stored."""
        call = _Call(self, "push to", keys, range, after)
        given = call.reads(values, self.pushed_width)
        if weights is None:
            return call.start(lib.pawl_vector_push, (given,), None, wait, timeout)
        known = call.reads(weights, self.width)
        return call.start(lib.pawl_vector_push_filtered, (given, known), None, wait, timeout)

    def pull(self, keys=None, *, range=None, out=None, after=(), wait=True, timeout=None):
        """Pulls the row of each key into `out` or a new array, and returns it."""
        call = _Call(self, "pull from", keys, range, after)
        filled = call.fills(out)
        return call.start(lib.pawl_vector_pull, (filled,), filled, wait, timeout)

    def pushpull(self, values, keys=None, *, range=None, out=None, after=(), wait=True, timeout=None):
        """Pushes and pulls in one message: returns the rows as stored right after the push."""
        call = _Call(self, "pushpull with", keys, range, after)
        given, filled = call.reads(values, self.pushed_width), call.fills(out)
        is_same = given.ctypes.data == filled.ctypes.data and self.pushed_width == self.width
        if not is_same and np.may_share_memory(given, filled):
            raise invalid("pushpull with %s: values and out overlap but are not the same array", self.name)
        return call.start(lib.pawl_vector_pushpull, (given, filled), filled, wait, timeout)

    def prepare(self, keys):
        """Prepares keys for repeated use: pass the result as keys= instead of the array."""
        return Keys(self, keys)

    # --- filters ------------------------------------------------------------------------------------------------------

    def filter(self, text):
        """Sets the filters that this session uses for the vector, instead of those it was created with;
        "none" for none."""
        with self._gate.inside(self._handle):
            check(lib.pawl_vector_filter(self._handle.pointer, _text(text, "filters"), None))

    def flush_filters(self, *, wait=True, timeout=None):
        """Pushes the values that filters have held back in this session."""
        pointer = ctypes.c_void_p()
        with self._gate.inside(self._handle):
            check(lib.pawl_vector_flush_filters(self._handle.pointer, ctypes.byref(pointer)))
            task = Task(self._session, pointer.value)
        return task.wait(timeout) if wait else task


def _text(words, what):
    """Bytes for the library, without a zero byte."""
    if words is None:
        return None
    if not isinstance(words, (str, bytes)) and not hasattr(words, "__fspath__"):
        raise invalid("%s: %r is not a string", what, words)
    if hasattr(words, "__fspath__"):
        words = words.__fspath__()
    data = words.encode() if isinstance(words, str) else words
    if b"\0" in data:
        raise invalid("%s: %r contains a zero byte", what, words)
    return data


class _Call:
    """A call to the library: its keys, and the arrays that must live until it has finished."""

    def __init__(self, vector, what, keys, bounds, after):
        self.vector, self.what = vector, "%s %s" % (what, vector.name)
        self.where = _abi.Where()
        self.where.range = _abi.ALL
        self.handles = [vector._handle]
        self.kept = []
        if keys is None and bounds is None:
            if vector.size == _abi.KEY_END:
                raise invalid("%s: no keys given; give keys= or range=, because the vector has no size", self.what)
            bounds = (0, vector.size)
        self.count = self._take_range(bounds) if bounds is not None else 0
        if keys is not None:
            self.count = self._take_keys(keys)
        self._take_after(after)

    def _take_range(self, bounds):
        begin, end = _arrays.bounds(self.what, bounds)
        if end > self.vector.size:
            text = "%s: [%d, %d) reaches beyond the span [0, %d)"
            raise error(_abi.OUT_OF_SPAN, text % (self.what, begin, end, self.vector.size))
        self.where.range = _abi.Range(begin, end)
        return end - begin

    def _take_keys(self, keys):
        if isinstance(keys, Keys):
            if keys._gate is not self.vector._gate:
                raise invalid("%s: the keys were prepared in another session", self.what)
            self.handles.append(keys._handle)
            self.where.list = keys._handle.pointer
            return len(keys)
        array = _arrays.keys(self.what, keys)
        self.kept.append(array)
        self.where.keys, self.where.count = array.ctypes.data, array.size
        return array.size

    def _take_after(self, tasks):
        tasks = [tasks] if isinstance(tasks, Task) else list(tasks)
        if not tasks:
            return
        for task in tasks:
            if not isinstance(task, Task) or task._gate is not self.vector._gate:
                raise invalid("%s: after= must be tasks of this session", self.what)
        array = (ctypes.c_void_p * len(tasks))(*(task._running.pointer for task in tasks))
        self.kept += [array, tasks]
        self.where.after, self.where.after_count = ctypes.addressof(array), len(tasks)

    def reads(self, values, width):
        return _arrays.values(self.what, values, self.vector.dtype, self.count, width)

    def fills(self, out):
        return _arrays.out(self.what, out, self.vector.dtype, self.count, self.vector.width)

    def start(self, function, arrays, result, wait, timeout, group=None, numbers=()):
        """Calls the function with the group, the vector, the keys, the numbers and the arrays."""
        nanoseconds(timeout)  # before anything happens
        pointer = ctypes.c_void_p()
        memory = [*numbers, *(array.ctypes.data for array in arrays)]
        handles = self.handles if group is None else self.handles + [group]
        leading = [] if group is None else [group.pointer]
        gate = self.vector._gate
        with gate.inside(*handles):
            gate.starting[self] = arrays
            status = function(*leading, self.vector._handle.pointer, self.where, *memory, ctypes.byref(pointer))
            failure = last_error(status) if status else None
            task = None if failure else Task(self.vector._session, pointer.value, (self.kept, arrays), result)
            del gate.starting[self]
        if failure:
            raise failure
        return task.wait(timeout) if wait else task
