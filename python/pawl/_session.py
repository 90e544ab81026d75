"""Sessions: a process' membership in a cluster."""

import ctypes
import json
import weakref
from collections import namedtuple

from . import _abi, _arrays
from ._errors import Error, check, invalid
from ._gate import AT_EXIT, Gate, nanoseconds
from ._group import Group
from ._library import lib
from ._options import choice, number
from ._peers import Peers
from ._vector import Vector, _text

Figures = namedtuple("Figures", [name for name, _ in _abi.SessionFigures._fields_])
Figures.__doc__ = "Bytes and messages that a session has sent and received since it was opened, on all its links."

_FUNCTIONS = {"add": "PAWL_ADD", "assign": "PAWL_ASSIGN"}
_PLACEMENTS = {"auto": "PAWL_PLACE_AUTO", "ordered": "PAWL_PLACE_ORDERED", "mixed": "PAWL_PLACE_MIXED"}
_LAYOUTS = {"auto": "PAWL_LAYOUT_AUTO", "dense": "PAWL_LAYOUT_DENSE", "sparse": "PAWL_LAYOUT_SPARSE"}


def _long_text(what, value, most):
    data = _text(value, what) or b""
    if len(data) > most:
        raise invalid("%s has %d characters, but may have at most %d", what, len(data), most)
    return data


class Session:
    """A session with the cluster at `address`, or at PAWL_ADDRESS. Without either, it starts a temporary
    cluster on this machine, which ends with the session.

      address             address of the manager: host:port, tcp://… or unix:/…; several standby managers with commas
      servers             temporary cluster: number of server processes
      replicas            temporary cluster: number of further copies of each key
      shards              temporary cluster: number of shards of each server
      server_memory       temporary cluster: memory limit of each server, in bytes
      key_file, key       key of the cluster, as a file or as text
      certificate, private_key, authority    PEM files, instead of a key
      require_encryption, read_only, tcp_only, stays_dead, job, listen, rack    as in <pawl/session.h>
      peers_only          the session uses peer groups and no servers; a temporary cluster then has none
      priority            how urgent the requests are at servers, from 1 to 9
      dscp                mark of packets for routers, from 1 to 63
      timeout             time limit for opening, in seconds

    Use it in a with block, or close it. Any thread may use it, but not a forked process.
    """

    def __init__(
        self,
        address=None,
        *,
        servers=0,
        replicas=0,
        shards=0,
        server_memory=0,
        key_file=None,
        key=None,
        certificate=None,
        private_key=None,
        authority=None,
        require_encryption=False,
        read_only=False,
        tcp_only=False,
        stays_dead=False,
        job=None,
        listen=None,
        rack=None,
        peers_only=False,
        priority=0,
        dscp=0,
        timeout=30.0,
    ):
        options, pointer = _abi.SessionOptions(), ctypes.c_void_p()
        lib.pawl_session_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        texts = dict(address=address, job=job, listen=listen, rack=rack, key_file=key_file, key=key)
        texts.update(certificate=certificate, private_key=private_key, authority=authority)
        for name, value in texts.items():
            setattr(options, name, _text(value, name))
        flags = dict(require_encryption=require_encryption, read_only=read_only)
        flags.update(tcp_only=tcp_only, stays_dead=stays_dead, peers_only=peers_only)
        for name, value in flags.items():
            setattr(options, name, bool(value))
        options.servers, options.shards = number("servers", servers, 32), number("shards", shards, 32)
        options.replicas, options.server_memory = number("replicas", replicas, 32), number("server_memory", server_memory, 64)
        options.priority, options.dscp = number("priority", priority, 32), number("dscp", dscp, 32)
        options.timeout_ns = max(1, nanoseconds(timeout))
        check(lib.pawl_session_open(ctypes.byref(options), ctypes.byref(pointer)))
        self._gate = Gate(pointer.value, "session")
        self._finalizer = weakref.finalize(self, self._gate.close_at_exit)
        self.address = lib.pawl_session_address(pointer).decode()

    # --- closing ------------------------------------------------------------------------------------------------------

    def flush(self, timeout=None):
        """Waits until all tasks have finished. Raises the first failure of a task that was not waited for."""
        self._gate.flush(timeout)

    def check(self):
        """Raises ClusterError if some keys wait for servers that are down and have the only copy. The error
        names the servers and the commands that end the wait. Calls on such keys wait too; calls without a
        timeout issue a ClusterWarning."""
        with self._gate.inside():
            failure = self._gate.trouble()
        if failure is not None:
            raise failure

    def close(self, timeout=30.0):
        """Waits for tasks, leaves the cluster and frees everything; tasks can still be queried. After the
        timeout it closes anyway and raises TimedOut: pushes may or may not have been applied."""
        self._gate.close(timeout)

    @property
    def closed(self):
        return self._gate.is_closed()

    def __enter__(self):
        self._gate.check()
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
            return
        try:
            self.close(AT_EXIT)
        except Error:
            pass  # the exception of the block is raised

    # --- vectors ------------------------------------------------------------------------------------------------------

    def create(self, name, dtype="float32", size=None, **options):
        """Creates and opens a vector, which must not exist. The options are those of `ensure`."""
        return self._make(lib.pawl_vector_create, name, dtype, size, **options)

    def ensure(self, name, dtype="float32", size=None, **options):
        """Opens the vector `space/name`, or creates it if it does not exist. Several workers may call it at
        once.

          dtype       float32, float64, int32, int64 or uint64
          size        keys are [0, size); None: any 64-bit key
          width       number of values per key (default: 1)
          function    server function that applies pushes: "add" or "assign"
          rule        another server function with its parameters, e.g. "adagrad rate=0.1" (docs/functions.md)
          filters     filters of pushes and pulls, e.g. "keys | compress" (docs/filters.md)
          placement   "auto", "ordered" or "mixed"
          layout      "auto", "dense" or "sparse"
          timeout     time limit in seconds (default: 30)
        """
        return self._make(lib.pawl_vector_ensure, name, dtype, size, **options)

    def open(self, name, *, timeout=30.0):
        """Opens an existing vector."""
        pointer = ctypes.c_void_p()
        with self._gate.inside() as session:
            check(lib.pawl_vector_open(session, _text(name, "name"), nanoseconds(timeout), ctypes.byref(pointer)))
            return Vector(self, pointer.value)

    def delete(self, name, *, timeout=30.0):
        """Deletes a vector and its data, for all users."""
        with self._gate.inside() as session:
            check(lib.pawl_vector_delete(session, _text(name, "name"), nanoseconds(timeout)))

    def vectors(self, space=None, *, timeout=30.0):
        """Returns the names of the vectors of a space, or of all vectors that this session may see."""
        infos, count = ctypes.c_void_p(), ctypes.c_size_t()
        with self._gate.inside() as session:
            found = (ctypes.byref(infos), ctypes.byref(count))
            check(lib.pawl_vector_list(session, _text(space, "space"), nanoseconds(timeout), *found))
            try:
                array = (_abi.VectorInfo * count.value).from_address(infos.value)
                return [info.name.decode() for info in array]
            finally:
                lib.pawl_vector_list_free(infos)

    def _make(
        self,
        make,
        name,
        dtype,
        size,
        *,
        width=1,
        function="add",
        rule="",
        filters="",
        placement="auto",
        layout="auto",
        timeout=30.0,
    ):
        options, pointer = _abi.VectorOptions(), ctypes.c_void_p()
        lib.pawl_vector_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        options.function = choice("function", function, _FUNCTIONS)
        options.type, options.width = _arrays.type_of(dtype), number("width", width, 32)
        if size is not None:
            options.size = number("size", size, 64)
        options.placement = choice("placement", placement, _PLACEMENTS)
        options.layout = choice("layout", layout, _LAYOUTS)
        options.rule = _long_text("rule", rule, _abi.CONSTANTS["PAWL_RULE_MAX"])
        options.filters = _long_text("filters", filters, _abi.CONSTANTS["PAWL_FILTERS_OPTION_MAX"])
        with self._gate.inside() as session:
            made = ctypes.byref(options), nanoseconds(timeout), ctypes.byref(pointer)
            check(make(session, _text(name, "name"), *made))
            return Vector(self, pointer.value)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def group(self, name, size=0, *, timeout=30.0):
        """Joins the group `space/name`, which starts with `size` members. 0 accepts the size of an existing
        group; a new group then starts with one member."""
        return Group(self, name, number("size", size, 32), timeout)

    def peers(self, name, size, *, timeout=30.0):
        """Joins the peer group `space/name`, which is founded by `size` members. Does not wait for the others:
        Peers.wait does."""
        return Peers(self, name, number("size", size, 32), timeout)

    @property
    def node(self):
        """The node id of this session."""
        with self._gate.inside() as session:
            return lib.pawl_session_node(session).id

    def figures(self):
        """Returns the bytes and messages sent and received."""
        figures = _abi.SessionFigures()
        with self._gate.inside() as session:
            lib.pawl_session_figures(session, ctypes.byref(figures))
        return Figures(*(getattr(figures, name) for name in Figures._fields))

    def status(self, *, timeout=30.0):
        """Returns the state of the cluster, as `pawl status --json` prints it."""
        text = ctypes.c_void_p()
        with self._gate.inside() as session:
            check(lib.pawl_session_status(session, nanoseconds(timeout), ctypes.byref(text)))
            try:
                return json.loads(ctypes.string_at(text.value).decode())
            finally:
                lib.pawl_text_free(text)

    def __repr__(self):
        return "<pawl.Session at %s%s>" % (self.address, ", closed" if self.closed else "")
