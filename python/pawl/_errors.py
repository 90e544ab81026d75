"""What is raised: one exception for each of the groups of <pawl/status.h>, all of them an Error."""

from . import _abi
from ._library import lib


class Error(Exception):
    """A call of pawl failed.

    status       the number, as in <pawl/status.h>
    name         its name there, such as "UNSORTED"
    group        the largest thing that broke: "argument", "operation", "link", "node" or "cluster"
    text         what the status means, such as "keys are not in strictly ascending order"
    particulars  what happened, such as "push to a/b: key 7 at position 2 is not above the one before"; may be ""
    """

    def __init__(self, status, particulars=""):
        self.status = status
        self.particulars = particulars
        self.name = lib.pawl_status_name(status).decode()
        self.group = lib.pawl_status_group(status).decode()
        self.text = lib.pawl_status_text(status).decode()
        super().__init__("%s [%s]" % (particulars or self.text, self.name))

    def __reduce__(self):
        return error, (self.status, self.particulars)


class ArgumentError(Error, ValueError):
    """The call itself is wrong, and nothing happened."""


class OperationError(Error):
    """This one call failed; others go on."""


class TimedOut(OperationError, TimeoutError):
    """The time ran out. That ends the waiting, and never a push that has begun."""


class LinkError(Error, ConnectionError):
    """The connection to a peer."""


class NodeError(Error):
    """This process, this session or a machine."""


class ClusterError(Error):
    """Everybody is affected."""


class ClusterWarning(RuntimeWarning):
    """A call waits without a time-out for servers that are down and have the only copy of some keys."""


_CLASSES = {
    "argument": ArgumentError,
    "operation": OperationError,
    "link": LinkError,
    "node": NodeError,
    "cluster": ClusterError,
}


def error(status, particulars=""):
    """The exception for a status; made, and not raised."""
    if status == _abi.TIMED_OUT:
        return TimedOut(status, particulars)
    return _CLASSES.get(lib.pawl_status_group(status).decode(), Error)(status, particulars)


def last_error(status):
    """The same with the particulars of this thread's last call, which it must follow directly."""
    return error(status, lib.pawl_error_text().decode("utf-8", "replace"))


def check(status):
    if status != _abi.OK:
        raise last_error(status)


def invalid(text, *arguments):
    return error(_abi.INVALID, text % arguments if arguments else text)
