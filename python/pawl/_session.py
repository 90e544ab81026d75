"""Sessions: a process' membership in a cluster."""

import ctypes
import json
import operator
import weakref
from collections import namedtuple

from . import _abi, _arrays
from ._errors import Error, check, invalid
from ._gate import AT_EXIT, Gate, nanoseconds
from ._group import Group
from ._library import lib
from ._vector import Vector, _text

Figures = namedtuple("Figures", [name for name, _ in _abi.SessionFigures._fields_])
Figures.__doc__ = "What a session has sent and received since it was opened, on all its links."

_FUNCTIONS = {"add": "PAWL_ADD", "assign": "PAWL_ASSIGN"}
_PLACEMENTS = {"auto": "PAWL_PLACE_AUTO", "ordered": "PAWL_PLACE_ORDERED", "mixed": "PAWL_PLACE_MIXED"}
_LAYOUTS = {"auto": "PAWL_LAYOUT_AUTO", "dense": "PAWL_LAYOUT_DENSE", "sparse": "PAWL_LAYOUT_SPARSE"}


def _number(what, value, bits):
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 2**bits:
        raise invalid("%s=%r: a whole number from 0 on, of %d bits", what, value, bits)
    return number


def _choice(what, value, choices):
    if value not in choices:
        raise invalid("%s=%r: it is one of %s", what, value, ", ".join(choices))
    return _abi.CONSTANTS[choices[value]]


def _long_text(what, value, most):
    data = _text(value, what) or b""
    if len(data) > most:
        raise invalid("%s: %d characters, and at most %d", what, len(data), most)
    return data


class Session:
    """Opens a session: at the manager's `address`, or the one in PAWL_ADDRESS, or with a cluster of its own on this machine,
    which ends with it.

      address             host:port, tcp://…, unix:/…; of several managers that take turns, with commas
      servers, replicas,  of a cluster of its own: server processes, copies of each key besides the first, threads of each
      shards,             server, bytes that each may hold
      server_memory
      key_file, key       proof that we may; certificate, private_key, authority instead of a key
      require_encryption, read_only, tcp_only, stays_dead, job, listen    as in <pawl/session.h>
      timeout             seconds, for opening

    To be used in a with block, or closed. Any thread may use it, a process that was forked off may not.
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
        timeout=30.0,
    ):
        options, pointer = _abi.SessionOptions(), ctypes.c_void_p()
        lib.pawl_session_options_init(ctypes.byref(options))
        texts = dict(address=address, job=job, listen=listen, key_file=key_file, key=key)
        texts.update(certificate=certificate, private_key=private_key, authority=authority)
        for name, value in texts.items():
            setattr(options, name, _text(value, name))
        flags = dict(require_encryption=require_encryption, read_only=read_only)
        flags.update(tcp_only=tcp_only, stays_dead=stays_dead)
        for name, value in flags.items():
            setattr(options, name, bool(value))
        options.servers, options.shards = _number("servers", servers, 32), _number("shards", shards, 32)
        options.replicas, options.server_memory = _number("replicas", replicas, 32), _number("server_memory", server_memory, 64)
        options.timeout_ns = max(1, nanoseconds(timeout))
        check(lib.pawl_session_open(ctypes.byref(options), ctypes.byref(pointer)))
        self._gate = Gate(pointer.value, "session")
        self._finalizer = weakref.finalize(self, self._gate.close_at_exit)
        self.address = lib.pawl_session_address(pointer).decode()

    # --- closing ------------------------------------------------------------------------------------------------------

    def flush(self, timeout=None):
        """Waits until all that was started has finished. Raises the first failure of a task that nobody asked about."""
        self._gate.flush(timeout)

    def check(self):
        """Raises ClusterError if some keys wait for servers that are down and have the only copy: it names the servers, and the
        commands that end the waiting. Calls on such keys wait too; those without a time-out give a ClusterWarning."""
        with self._gate.inside():
            failure = self._gate.trouble()
        if failure is not None:
            raise failure

    def close(self, timeout=30.0):
        """Waits for what is under way, leaves the cluster and frees everything; tasks may still be asked. After the time-out it
        goes anyway, and TimedOut says that pushes may or may not have been applied."""
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
            pass  # what broke the block is told already

    # --- vectors ------------------------------------------------------------------------------------------------------

    def create(self, name, dtype="float32", size=None, **options):
        """Creates a vector, which must not exist, and opens it. Options as of `ensure`."""
        return self._make(lib.pawl_vector_create, name, dtype, size, **options)

    def ensure(self, name, dtype="float32", size=None, **options):
        """Opens the vector `space/name`, creating it if it is not there: what the workers of a job call side by side.

          dtype       float32, float64, int32, int64 or uint64
          size        keys are [0, size); None: all of 64 bits
          width       values for each key; 1
          function    what a push does: "add" or "assign"
          rule        another server function with its parameters, such as "adagrad rate=0.1" (docs/functions.md)
          filters     what happens to rows on their way, such as "keys | compress" (docs/filters.md)
          placement   "auto", "ordered" or "mixed"
          layout      "auto", "dense" or "sparse"
          timeout     seconds; 30
        """
        return self._make(lib.pawl_vector_ensure, name, dtype, size, **options)

    def open(self, name, *, timeout=30.0):
        """Opens a vector that exists."""
        pointer = ctypes.c_void_p()
        with self._gate.inside() as session:
            check(lib.pawl_vector_open(session, _text(name, "name"), nanoseconds(timeout), ctypes.byref(pointer)))
            return Vector(self, pointer.value)

    def delete(self, name, *, timeout=30.0):
        """Deletes a vector, for everybody."""
        with self._gate.inside() as session:
            check(lib.pawl_vector_delete(session, _text(name, "name"), nanoseconds(timeout)))

    def vectors(self, space=None, *, timeout=30.0):
        """The names of the vectors of a space, or of all that this session may see."""
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
        lib.pawl_vector_options_init(ctypes.byref(options))
        options.function = _choice("function", function, _FUNCTIONS)
        options.type, options.width = _arrays.type_of(dtype), _number("width", width, 32)
        if size is not None:
            options.size = _number("size", size, 64)
        options.placement = _choice("placement", placement, _PLACEMENTS)
        options.layout = _choice("layout", layout, _LAYOUTS)
        options.rule = _long_text("rule", rule, _abi.CONSTANTS["PAWL_RULE_MAX"])
        options.filters = _long_text("filters", filters, _abi.CONSTANTS["PAWL_FILTERS_OPTION_MAX"])
        with self._gate.inside() as session:
            made = ctypes.byref(options), nanoseconds(timeout), ctypes.byref(pointer)
            check(make(session, _text(name, "name"), *made))
            return Vector(self, pointer.value)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def group(self, name, size=0, *, timeout=30.0):
        """Joins the group `space/name`, which starts with `size` members; 0: as it is."""
        return Group(self, name, _number("size", size, 32), timeout)

    @property
    def node(self):
        """By what others know this session."""
        with self._gate.inside() as session:
            return lib.pawl_session_node(session).id

    def figures(self):
        """Bytes and messages sent and received."""
        figures = _abi.SessionFigures()
        with self._gate.inside() as session:
            lib.pawl_session_figures(session, ctypes.byref(figures))
        return Figures(*(getattr(figures, name) for name in Figures._fields))

    def status(self, *, timeout=30.0):
        """The cluster's state, as `pawl status --json` shows it."""
        text = ctypes.c_void_p()
        with self._gate.inside() as session:
            check(lib.pawl_session_status(session, nanoseconds(timeout), ctypes.byref(text)))
            try:
                return json.loads(ctypes.string_at(text.value).decode())
            finally:
                lib.pawl_text_free(text)

    def __repr__(self):
        return "<pawl.Session at %s%s>" % (self.address, ", closed" if self.closed else "")
