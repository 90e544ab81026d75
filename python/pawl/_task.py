"""Calls in progress."""

import ctypes

from . import _abi
from ._errors import error, last_error
from ._library import lib


def describe(pointer):
    text = ctypes.create_string_buffer(1024)
    lib.pawl_task_describe(pointer, text, len(text))
    return text.value.decode("utf-8", "replace")


class Running:
    """The library's task, with the arrays it reads and fills. If it is collected, the gate keeps the arrays
    until the task has finished."""

    __slots__ = ("pointer", "arrays", "was_told")

    def __init__(self, pointer, arrays):
        self.pointer, self.arrays, self.was_told = pointer, arrays, False

    def outcome(self):
        """Returns None, or the exception if the task failed. The task must have finished."""
        self.was_told, self.arrays = True, None
        status = lib.pawl_task_wait(self.pointer, 0)
        return last_error(status) if status else None

    def is_swept(self, gate):
        if not lib.pawl_task_is_done(self.pointer):
            return False
        if not self.was_told:
            failure = self.outcome()
            if failure is not None:
                gate.note_failure(failure)
        lib.pawl_task_release(self.pointer)
        return True


class Task:
    """A push, pull or clock in progress. It reads and fills its arrays in place: do not use them until the
    task has finished. The arrays are kept alive until then, even without a reference to the task."""

    def __init__(self, session, pointer, arrays=(), result=None):
        self._session = session  # keeps the session alive while a call waits
        self._gate = session._gate
        self._running = Running(pointer, arrays)
        self._result = result
        self.id = lib.pawl_task_id(pointer)

    def done(self):
        """Whether the task has finished, successfully or not."""
        return bool(lib.pawl_task_is_done(self._running.pointer))

    def wait(self, timeout=None):
        """Waits for the task, at most `timeout` seconds (None: no limit), and returns the pulled array, if
        any. Raises Error if the task failed. Raises TimedOut if the timeout passed; the task then continues,
        and wait can be called again."""
        if not self._gate.wait_for_task(self._running.pointer, timeout):
            raise self._gate.late("%s: not finished after %g s; it continues" % (self._text(), timeout))
        failure = self._running.outcome()
        if failure is not None:
            raise failure
        return self._result

    def failures(self):
        """Returns (begin, end, Error) for each range of keys to which a failed task was not applied."""
        found, begin_end, status = [], _abi.Range(), ctypes.c_int()
        pointer = self._running.pointer
        for index in range(lib.pawl_task_failure_count(pointer)):
            if lib.pawl_task_failure(pointer, index, ctypes.byref(begin_end), ctypes.byref(status)) != _abi.OK:
                break  # only the first few are kept
            found.append((begin_end.begin, begin_end.end, error(status.value)))
        return found

    def _text(self):
        if not self.done():
            try:
                with self._gate.inside():
                    return describe(self._running.pointer)
            except Exception:
                return "task %d" % self.id
        return describe(self._running.pointer)

    def __repr__(self):
        return "<pawl.Task %d: %s>" % (self.id, self._text())

    def __del__(self):
        running = self.__dict__.get("_running")
        if running is None or self._gate.is_forked():
            return
        if self._gate.is_closed():
            lib.pawl_task_release(running.pointer)
        else:
            self._gate.dropped.append(running)
