"""pawl: a parameter server for distributed machine learning, with NumPy arrays.

    import numpy as np, pawl

    with pawl.Session() as session:                  # the cluster at PAWL_ADDRESS, or a temporary one on this machine
        w = session.ensure("demo/w", size=1000)
        w.push([1.0, 2.0], keys=[3, 5])
        print(w.pull(keys=[3, 5]), w.pull().sum())

docs/python.md is the tutorial; the headers in include/pawl are the reference.
"""

from ._collective import Collective, CollectiveState
from ._errors import ArgumentError, ClusterError, ClusterWarning, Error, LinkError, NodeError, OperationError, TimedOut
from ._group import Group
from ._library import lib as _lib
from ._library import path as library_path
from ._peers import Member, Peers, PeersState
from ._reduce import Reduce, ReduceReport, ReduceState
from ._session import Figures, Session
from ._task import Task
from ._vector import Keys, Vector

__version__ = _lib.pawl_version().decode()
__all__ = [
    "ArgumentError",
    "ClusterError",
    "ClusterWarning",
    "Collective",
    "CollectiveState",
    "Error",
    "Figures",
    "Group",
    "Keys",
    "LinkError",
    "Member",
    "NodeError",
    "OperationError",
    "Peers",
    "PeersState",
    "Reduce",
    "ReduceReport",
    "ReduceState",
    "Session",
    "Task",
    "TimedOut",
    "Vector",
    "library_path",
]
