"""The gate of a session: counts the calls inside the library, and decides when a handle may be freed.

In Python, any thread may close any object at any time, and objects are collected when no reference is left.
The library requires that a handle is not used after it was freed, and that arrays live until the tasks that
use them have finished. The gate reconciles the two:

  - Every call enters and leaves the gate with the handles it uses. A handle that is closed meanwhile is freed by the
    last call that leaves.
  - A session that closes lets no call in and waits until all calls have left. A call that waits for a task enters only
    for a slice of time at once, so that closing and Ctrl-C take effect.
  - Objects that Python collects are queued and freed by the next call. The queue has no lock, because collection can
    happen anywhere. A task that has not finished stays in the queue with its arrays.

A forked process has none of the session's threads. The gate refuses its calls and frees nothing.
"""

import os
import threading
import time
import warnings
from collections import deque

from . import _abi
from ._errors import ClusterWarning, error, invalid, last_error
from ._library import lib

SLICE = 0.1  # seconds that a waiting thread stays inside
AT_EXIT = 5.0  # seconds that a session which was not closed waits for its calls at exit
_LOOKS = 8  # collected objects that a call checks

_OPEN, _CLOSING, _CLOSED = range(3)


def nanoseconds(timeout):
    """Converts seconds, or None for no limit, to the library's nanoseconds."""
    if timeout is None:
        return _abi.FOREVER
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = -1.0
    if not seconds >= 0:
        raise invalid("invalid timeout %r; expected seconds, or None", timeout)
    return _abi.FOREVER if seconds > 9e9 else int(seconds * 1e9)


class Patience:
    """A timeout that is spent in slices."""

    def __init__(self, timeout, most=SLICE):
        nanoseconds(timeout)
        self.timeout = timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._most = most

    def slice(self):
        left = self._most if self._deadline is None else self._deadline - time.monotonic()
        return max(0.0, min(left, self._most))

    def grow(self):
        """Lengthens the slices, for waits that cost a message each time."""
        self._most = min(2 * self._most, 2.0)

    def is_over(self):
        return self._deadline is not None and time.monotonic() >= self._deadline

    def text(self):
        return "not finished after %g s" % self.timeout


class Handle:
    """A pointer of the library, freed by `free` or with its session."""

    __slots__ = ("pointer", "free", "what", "users", "is_closed")

    def __init__(self, pointer, free, what):
        self.pointer, self.free, self.what = pointer, free, what
        self.users, self.is_closed = 0, False

    def is_swept(self, gate):
        gate.close_handle(self)
        return True


class Inside:
    """Context manager: enters the gate with handles, and leaves it."""

    __slots__ = ("_gate", "_handles")

    def __init__(self, gate, handles):
        self._gate, self._handles = gate, handles

    def __enter__(self):
        self._gate.enter(self._handles)
        return self._gate.pointer

    def __exit__(self, *_):
        self._gate.leave(self._handles)


class Gate:
    def __init__(self, pointer, name):
        self.pointer, self.name = pointer, name
        self.dropped = deque()
        self.starting = {}  # calls without a task yet: keeps their arrays if Ctrl-C interrupts them
        self._has_warned = False
        self._failure = None  # the first failure of a task that was collected before it was waited for
        self._changed = threading.Condition(threading.Lock())
        self._state, self._users = _OPEN, 0
        self._pid = os.getpid()

    # --- in and out ---------------------------------------------------------------------------------------------------

    def inside(self, *handles):
        return Inside(self, handles)

    def is_forked(self):
        return self._pid != os.getpid()

    def is_closed(self):
        return self._state == _CLOSED

    def check_process(self):
        if self.is_forked():
            raise invalid("a session cannot be used in a forked process; open one there")

    def check(self):
        self.check_process()
        if self._state != _OPEN:
            raise error(_abi.NODE_STOPPED, "%s is closed" % self.name)

    def enter(self, handles=()):
        self.check_process()  # before taking the lock, which may have been held during the fork
        with self._changed:
            self.check()
            for handle in handles:
                if handle.is_closed:
                    raise error(_abi.NODE_STOPPED, "%s is closed" % handle.what)
            for handle in handles:
                handle.users += 1
            self._users += 1
        try:
            if self.dropped:
                self._sweep(_LOOKS)
        except BaseException:  # Ctrl-C
            self.leave(handles)
            raise

    def leave(self, handles=()):
        with self._changed:
            idle = []
            for handle in handles:
                handle.users -= 1
                if handle.is_closed and handle.users == 0:
                    idle.append(handle)
            if not idle:
                self._go_out()
                return
        for handle in idle:
            handle.free(handle.pointer)
        with self._changed:
            self._go_out()

    def _go_out(self):
        self._users -= 1
        if self._users == 0:
            self._changed.notify_all()

    def retain(self, handle):
        """Keeps a handle, which is in use, until `release`: another object of the library refers to it."""
        with self._changed:
            handle.users += 1

    def release(self, handle):
        """Call it inside the gate."""
        with self._changed:
            handle.users -= 1
            is_idle = handle.is_closed and handle.users == 0
        if is_idle:
            handle.free(handle.pointer)

    def close_handle(self, handle):
        """Frees a handle, now or when the last call that uses it leaves."""
        if self.is_forked():
            return
        with self._changed:
            was_closed, handle.is_closed = handle.is_closed, True
            if was_closed or self._state != _OPEN or handle.users > 0:
                return
            self._users += 1
        try:
            handle.free(handle.pointer)
        finally:
            self.leave()

    # --- collected objects --------------------------------------------------------------------------------------------

    def _sweep(self, most):
        for _ in range(min(most, len(self.dropped))):
            try:
                thing = self.dropped.popleft()
            except IndexError:
                return
            if not thing.is_swept(self):
                self.dropped.append(thing)

    def note_failure(self, failure):
        if self._failure is None:
            self._failure = failure

    def _tell_failure(self):
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # --- waiting ------------------------------------------------------------------------------------------------------

    def trouble(self):
        """Returns the Error if some keys wait for servers that are down, else None. Call it inside the
        gate."""
        status = lib.pawl_session_check(self.pointer)
        return last_error(status) if status else None

    def late(self, text):
        """Returns the exception for a wait that timed out. Names the servers that the keys wait for, if
        any."""
        try:
            with self.inside():
                trouble = self.trouble()
        except Exception:
            trouble = None  # the session is closed
        return error(_abi.TIMED_OUT, "%s; %s" % (text, trouble.particulars) if trouble is not None else text)

    def warn_if_waiting(self):
        """Warns once if a call without a timeout waits for servers that are down. Call it inside the gate,
        after a slice."""
        trouble = self.trouble()
        is_told, self._has_warned = self._has_warned, trouble is not None
        if trouble is not None and not is_told:
            warnings.warn("%s waits: %s" % (self.name, trouble.particulars), ClusterWarning, stacklevel=5)

    def wait_for_task(self, task, timeout):
        """Returns False if the timeout passed. Closing a session finishes its tasks, which stay valid."""
        patience = Patience(timeout)
        while not lib.pawl_task_is_done(task):
            self.check_process()
            is_inside = False
            try:
                with self._changed:
                    if self._state == _OPEN:
                        self._users += 1
                        is_inside = True
                    elif self._state == _CLOSING:
                        self._changed.wait(patience.slice())
                if is_inside:
                    status = lib.pawl_task_wait(task, nanoseconds(patience.slice()))
                    if status == _abi.TIMED_OUT and timeout is None:
                        self.warn_if_waiting()
            finally:
                if is_inside:
                    self.leave()
            if patience.is_over():
                return bool(lib.pawl_task_is_done(task))
        return True

    def flush(self, timeout):
        patience = Patience(timeout)
        while True:
            with self.inside() as session:
                status = lib.pawl_session_flush(session, nanoseconds(patience.slice()))
                failure = last_error(status) if status else None
                if status == _abi.TIMED_OUT and timeout is None:
                    self.warn_if_waiting()
            if status != _abi.TIMED_OUT:
                break
            if patience.is_over():
                raise self.late("flush: some tasks are %s" % patience.text())
        self._sweep(len(self.dropped))
        self._tell_failure()
        if failure is not None:
            raise failure

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self, timeout):
        """Waits for calls and tasks in progress, then closes the session even if they failed."""
        patience = Patience(timeout)
        if self.is_forked():
            return
        with self._changed:
            if self._state != _OPEN:
                while self._state == _CLOSING and not patience.is_over():
                    self._changed.wait(patience.slice())
                return
            self._state = _CLOSING
            while self._users > 0 and not patience.is_over():
                self._changed.wait(patience.slice())
            if self._users > 0:  # another thread still uses the session inside the library
                self._state = _OPEN
                raise error(_abi.TIMED_OUT, "cannot close the %s: calls of other threads are in progress" % self.name)
        status = _abi.TIMED_OUT
        try:
            while status == _abi.TIMED_OUT and not patience.is_over():
                status = lib.pawl_session_flush(self.pointer, nanoseconds(patience.slice()))
        finally:  # also after Ctrl-C
            self._end(status)

    def _end(self, flushed):
        status = lib.pawl_session_close(self.pointer, 0 if flushed == _abi.TIMED_OUT else nanoseconds(AT_EXIT))
        failure = last_error(status) if status else None
        with self._changed:
            self._state, self.pointer = _CLOSED, None
            self._changed.notify_all()
        self._sweep(len(self.dropped))
        if failure is not None:
            raise failure
        self._tell_failure()

    def close_at_exit(self):
        """Closes a session that was never closed. Errors are ignored, because no caller is left."""
        try:
            self.close(AT_EXIT)
        except Exception:
            pass
