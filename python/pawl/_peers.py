"""Peer groups: processes that share parameters without servers."""

import ctypes
import weakref
from collections import namedtuple

from . import _abi
from ._collective import Collective
from ._errors import check, invalid, last_error
from ._gate import Handle, Patience, nanoseconds
from ._library import lib
from ._reduce import Reduce
from ._vector import Owned, _text

PeersState = namedtuple("PeersState", "number size rank founders complete")
PeersState.__doc__ = "A peer group at one moment. `rank` is None while this session is not a member."

Member = namedtuple("Member", "rank node host rack number")
Member.__doc__ = "A member of a peer group. It has this rank at that number of the group."


class Peers(Owned):
    """A membership in a peer group. `close`, or the end of a with block, leaves the group."""

    def __init__(self, session, name, size, timeout):
        pointer = ctypes.c_void_p()
        with session._gate.inside() as opened:
            check(lib.pawl_peers_join(opened, _text(name, "peers"), size, nanoseconds(timeout), ctypes.byref(pointer)))
        super().__init__(session, Handle(pointer.value, lib.pawl_peers_leave, "peers %s" % name))
        self.name = name
        self._parts = weakref.WeakSet()  # reduces and collectives

    def close(self):
        """Closes the reduces and collectives of this membership, and leaves the group."""
        for part in list(self._parts):
            part.close()
        super().close()

    def reduce(self, name, arrays, **options):
        """Opens a reduce, which averages arrays with the other members of the group. All members use the same name,
        shapes and options. Waits until the group is complete, but not until the others have opened the reduce.

          arrays            float32 and float64 arrays, C-contiguous and writable; used and changed in place
          mode              "notify-ack" (default), "bsp" or "async"
          what              what the arrays are: "mix" (default), a model, or "mean", a gradient
          graph             a topology of `pawl graph list`, or a file; None: the default
          seed, degree      of random graphs
          narrow            how values travel: "full" (default), "f16", "bf16" or "int8"
          significant       send only values that have changed by more than this (notify-ack)
          carried           arrays that are not averaged, but belong to the state of a member
          checkpoint        file for every `checkpoint_period`-th iteration, of this member alone
          first             iterations that are already done
          timeout           time limit for opening, in seconds (default: 30)
        """
        return Reduce(self, name, arrays, **options)

    def collective(self, name, timeout=30.0):
        """Opens a collective: barrier, broadcast, all_gather, all_reduce and reduce_scatter of the members. All members use
        the same name. Waits until the group is complete, but not until the others have opened the collective; the first
        operation waits for that."""
        return Collective(self, name, timeout)

    def _state(self):
        state = _abi.PeersState()
        lib.pawl_peers_state(self._handle.pointer, ctypes.byref(state))
        rank = None if state.rank == _abi.CONSTANTS["PAWL_PEERS_NONE"] else state.rank
        return PeersState(state.number, state.size, rank, state.founders, state.complete)

    def state(self):
        """Number, size, rank, founders and complete, all of the same moment."""
        with self._gate.inside(self._handle):
            return self._state()

    @property
    def number(self):
        """Rises whenever a member joins, leaves or is declared dead. All members that know a number know the
        same members."""
        return self.state().number

    @property
    def size(self):
        """The number of members."""
        return self.state().size

    @property
    def rank(self):
        """The rank of this member, counted from 0; None while this session is not a member."""
        return self.state().rank

    def members(self):
        """All members by rank, of the same moment."""
        while True:
            with self._gate.inside(self._handle):
                state, found, member = self._state(), [], _abi.PeerMember()
                for rank in range(state.size):
                    if lib.pawl_peers_member(self._handle.pointer, rank, ctypes.byref(member)):
                        break
                    found.append(Member(rank, member.node.id, member.host.decode(), member.rack.decode(), member.number))
            if len(found) == state.size and all(one.number == state.number for one in found):
                return found  # otherwise the group has changed meanwhile

    def wait(self, after=0, timeout=None):
        """Waits until the group is complete or, if `after` is not 0, until its number exceeds `after`. This is
        pawl_peers_await; `await` is a keyword of Python."""
        if not isinstance(after, int) or not 0 <= after < 2**64:
            raise invalid("wait for %s: %r is not a number of the group", self.name, after)
        patience = Patience(timeout, 0.25)
        while True:
            with self._gate.inside(self._handle):
                status = lib.pawl_peers_await(self._handle.pointer, after, nanoseconds(patience.slice()))
                failure = last_error(status) if status else None
            if failure is None:
                return
            if status != _abi.TIMED_OUT or patience.is_over():
                raise failure
            patience.grow()

    def __repr__(self):
        return "<pawl.Peers %s>" % self.name
