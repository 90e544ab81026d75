"""Exceptions: one for each group of <pawl/status.h>, all derived from Error."""

from . import _abi
from ._library import lib


class Error(Exception):
    """A call of pawl failed.

    status       the number, as in <pawl/status.h>
    name         its name there, such as "UNSORTED"
    group        what failed: "argument", "operation", "link", "node" or "cluster"
    text         meaning of the status, such as "keys are not in strictly ascending order"
    particulars  details of this failure, such as "push to a/b: key 7 at position 2 is not above the one before"; may be ""
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
    """The arguments of the call are wrong; it had no effect."""


class OperationError(Error):
    """This call failed; other calls are not affected."""


class TimedOut(OperationError, TimeoutError):
    """The timeout passed. The wait ends, but a push that was started is not cancelled."""


class LinkError(Error, ConnectionError):
    """The connection to a peer failed."""


class NodeError(Error):
    """This process, this session or a machine failed."""


class ClusterError(Error):
    """The cluster failed; all its clients are affected."""


class ClusterWarning(RuntimeWarning):
    """A call without a timeout waits for servers that are down and have the only copy of some keys."""


_CLASSES = {
    "argument": ArgumentError,
    "operation": OperationError,
    "link": LinkError,
    "node": NodeError,
    "cluster": ClusterError,
}


def error(status, particulars=""):
    """Returns the exception for a status."""
    if status == _abi.TIMED_OUT:
        return TimedOut(status, particulars)
    return _CLASSES.get(lib.pawl_status_group(status).decode(), Error)(status, particulars)


def last_error(status):
    """Returns the exception for a status, with the details of this thread's last call. Must follow that call
    directly."""
    return error(status, lib.pawl_error_text().decode("utf-8", "replace"))


def check(status):
    if status != _abi.OK:
        raise last_error(status)


def invalid(text, *arguments):
    return error(_abi.INVALID, text % arguments if arguments else text)
