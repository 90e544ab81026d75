"""Groups: processes that advance in common ticks."""

import ctypes

from . import _abi
from ._errors import check, invalid, last_error
from ._gate import Handle, Patience, nanoseconds
from ._library import lib
from ._task import Task
from ._vector import Owned, Vector, _Call, _text


class Group(Owned):
    """A membership in a group. `close`, or the end of a with block, leaves the group: the other members no
    longer wait for this one."""

    def __init__(self, session, name, size, timeout):
        pointer = ctypes.c_void_p()
        with session._gate.inside() as opened:
            check(lib.pawl_group_join(opened, _text(name, "group"), size, nanoseconds(timeout), ctypes.byref(pointer)))
        super().__init__(session, Handle(pointer.value, lib.pawl_group_leave, "group %s" % name))
        self.name = name

    def _ask(self, function):
        with self._gate.inside(self._handle):
            return function(self._handle.pointer)

    @property
    def tick(self):
        """The last tick that this member has finished."""
        return self._ask(lib.pawl_group_tick)

    @property
    def size(self):
        """The number of members."""
        return self._ask(lib.pawl_group_size)

    @property
    def rank(self):
        """The number of this member, counted from 0: for dividing work."""
        return self._ask(lib.pawl_group_rank)

    def clock(self, *, after=(), wait=True, timeout=None):
        """Finishes a tick of this member, once every push that it called before is applied."""
        tasks = [after] if isinstance(after, Task) else list(after)
        for task in tasks:
            if not isinstance(task, Task) or task._gate is not self._gate:
                raise invalid("clock of %s: after= must be tasks of this session", self.name)
        array = (ctypes.c_void_p * len(tasks))(*(task._running.pointer for task in tasks))
        pointer = ctypes.c_void_p()
        nanoseconds(timeout)
        with self._gate.inside(self._handle):
            check(lib.pawl_group_clock_after(self._handle.pointer, array, len(tasks), ctypes.byref(pointer)))
            task = Task(self._session, pointer.value, tasks)
        return task.wait(timeout) if wait else task

    def wait(self, tick, timeout=None):
        """Waits until every member has reached a tick. This is pawl_group_await; `await` is a keyword of
        Python."""
        if not isinstance(tick, int) or not 0 <= tick < 2**64:
            raise invalid("wait for %s: %r is not a tick", self.name, tick)
        patience = Patience(timeout, 0.25)
        while True:
            with self._gate.inside(self._handle):
                status = lib.pawl_group_await(self._handle.pointer, tick, nanoseconds(patience.slice()))
                failure = last_error(status) if status else None
                if status == _abi.TIMED_OUT and timeout is None:
                    self._gate.warn_if_waiting()
            if failure is None:
                return
            if status != _abi.TIMED_OUT:
                raise failure
            if patience.is_over():
                raise self._gate.late("wait for tick %d of %s: %s" % (tick, self.name, patience.text()))
            patience.grow()

    def barrier(self, timeout=None):
        """Finishes a tick, and waits until all members have. After TimedOut, call wait(group.tick) to wait
        again."""
        nanoseconds(timeout)
        self.clock(wait=False)
        self.wait(self.tick, timeout)

    def push(self, vector, values, keys=None, *, range=None, after=(), wait=True, timeout=None):
        """Pushes values that are summed over all members of this tick. The servers apply the sum once. Every
        member must push once in each tick, all with the same range or all without one. The keys may differ,
        and may be none. The push finishes when the sum is applied."""
        if not isinstance(vector, Vector) or vector._gate is not self._gate:
            raise invalid("push of %s: %r is not a vector of this session", self.name, vector)
        call = _Call(vector, "push to", keys, range, after)
        given = call.reads(values, vector.pushed_width)
        return call.start(lib.pawl_group_push, (given,), None, wait, timeout, group=self._handle)

    def __repr__(self):
        return "<pawl.Group %s>" % self.name
