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
        if not _is_count(tick):
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
        call = self._call("push", vector, "push to", keys, range, after)
        given = call.reads(values, vector.pushed_width)
        return call.start(lib.pawl_group_push, (given,), None, wait, timeout, group=self._handle)

    def pull(self, vector, keys=None, *, range=None, staleness=0, out=None, after=(), wait=True, timeout=None):
        """Pulls like `Vector.pull`, but the rows may be older: with relays in the cluster, they may be rows that
        another member has pulled. They have every push that any member made before it finished the tick that lies
        `staleness` ticks back, if this member has waited for that tick; otherwise they are read anew."""
        call = self._call("pull", vector, "pull from", keys, range, after)
        if not _is_count(staleness):
            raise invalid("pull from %s: staleness %r is not a number of ticks", vector.name, staleness)
        filled = call.fills(out)
        return call.start(lib.pawl_group_pull, (filled,), filled, wait, timeout, self._handle, (staleness,))

    def _call(self, verb, vector, what, keys, bounds, after):
        if not isinstance(vector, Vector) or vector._gate is not self._gate:
            raise invalid("%s of %s: %r is not a vector of this session", verb, self.name, vector)
        return _Call(vector, what, keys, bounds, after)

    def __repr__(self):
        return "<pawl.Group %s>" % self.name


def _is_count(number):
    """A whole number that the library can take."""
    return isinstance(number, int) and 0 <= number < 2**64
