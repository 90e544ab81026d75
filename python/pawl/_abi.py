"""libpawl's binary interface: the structs, constants and prototypes of include/pawl that the package uses.

Nothing here is generated from the headers, because the package is also used where they are not installed.
tests/python/abi_test.py compiles a C program that compares everything with the headers: sizes and offsets of
structs, values of constants, and the prototypes below word for word. ctypes gets its signatures from the same
prototypes. """

import ctypes

VERSION = "0.1"  # major and minor of the library this was written for; before 1.0 each minor may change the interface

# --- numbers ----------------------------------------------------------------------------------------------------------

CONSTANTS = {
    "PAWL_OK": 0,
    "PAWL_INVALID": -101,
    "PAWL_MISMATCH": -110,
    "PAWL_UNSUPPORTED": -106,
    "PAWL_OUT_OF_SPAN": -109,
    "PAWL_TIMED_OUT": -202,
    "PAWL_NODE_STOPPED": -403,
    "PAWL_F32": 1,
    "PAWL_F64": 2,
    "PAWL_I32": 3,
    "PAWL_I64": 4,
    "PAWL_U64": 5,
    "PAWL_ADD": 0,
    "PAWL_ASSIGN": 1,
    "PAWL_PLACE_AUTO": 0,
    "PAWL_PLACE_ORDERED": 1,
    "PAWL_PLACE_MIXED": 2,
    "PAWL_LAYOUT_AUTO": 0,
    "PAWL_LAYOUT_DENSE": 1,
    "PAWL_LAYOUT_SPARSE": 2,
    "PAWL_NAME_MAX": 127,
    "PAWL_RULE_MAX": 255,
    "PAWL_FILTERS_OPTION_MAX": 255,
    "PAWL_SITE_MAX": 64,
    "PAWL_PEERS_NONE": 2**32 - 1,
    "PAWL_REDUCE_GRAPH_MAX": 255,
    "PAWL_REDUCE_NOTIFY_ACK": 0,
    "PAWL_REDUCE_BSP": 1,
    "PAWL_REDUCE_ASYNC": 2,
    "PAWL_REDUCE_MIX": 0,
    "PAWL_REDUCE_MEAN": 1,
    "PAWL_REDUCE_FULL": 0,
    "PAWL_REDUCE_F16": 1,
    "PAWL_REDUCE_BF16": 2,
    "PAWL_REDUCE_INT8": 3,
    "PAWL_COLLECTIVE_SUM": 0,
    "PAWL_COLLECTIVE_MIN": 1,
    "PAWL_COLLECTIVE_MAX": 2,
    "PAWL_FOREVER": 2**63 - 1,
    "PAWL_KEY_END": 2**64 - 1,
}

OK = CONSTANTS["PAWL_OK"]
INVALID = CONSTANTS["PAWL_INVALID"]
MISMATCH = CONSTANTS["PAWL_MISMATCH"]
UNSUPPORTED = CONSTANTS["PAWL_UNSUPPORTED"]
OUT_OF_SPAN = CONSTANTS["PAWL_OUT_OF_SPAN"]
TIMED_OUT = CONSTANTS["PAWL_TIMED_OUT"]
NODE_STOPPED = CONSTANTS["PAWL_NODE_STOPPED"]
FOREVER = CONSTANTS["PAWL_FOREVER"]
KEY_END = CONSTANTS["PAWL_KEY_END"]

# --- structs ----------------------------------------------------------------------------------------------------------


class Range(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_uint64), ("end", ctypes.c_uint64)]


ALL = Range(0, KEY_END)  # every key; an empty range is none


class Node(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64)]


class SessionOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("address", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("read_only", ctypes.c_bool),
        ("listen", ctypes.c_char_p),
        ("tcp_only", ctypes.c_bool),
        ("stays_dead", ctypes.c_bool),
        ("key_file", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("certificate", ctypes.c_char_p),
        ("private_key", ctypes.c_char_p),
        ("authority", ctypes.c_char_p),
        ("require_encryption", ctypes.c_bool),
        ("servers", ctypes.c_uint32),
        ("shards", ctypes.c_uint32),
        ("server_memory", ctypes.c_uint64),
        ("replicas", ctypes.c_uint32),
        ("timeout_ns", ctypes.c_int64),
        ("impatient", ctypes.c_bool),
        ("rack", ctypes.c_char_p),
        ("peers_only", ctypes.c_bool),
        ("priority", ctypes.c_uint32),
        ("dscp", ctypes.c_uint32),
    ]


class PeersState(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_uint64),
        ("size", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("founders", ctypes.c_uint32),
        ("complete", ctypes.c_bool),
    ]


class PeerMember(ctypes.Structure):
    _fields_ = [
        ("node", Node),
        ("number", ctypes.c_uint64),
        ("host", ctypes.c_char * (CONSTANTS["PAWL_SITE_MAX"] + 1)),
        ("rack", ctypes.c_char * (CONSTANTS["PAWL_SITE_MAX"] + 1)),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [("values", ctypes.c_void_p), ("count", ctypes.c_size_t), ("type", ctypes.c_int)]


class ReduceOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("mode", ctypes.c_int),
        ("what", ctypes.c_int),
        ("graph", ctypes.c_char_p),
        ("seed", ctypes.c_uint64),
        ("degree", ctypes.c_uint32),
        ("narrow", ctypes.c_int),
        ("significant", ctypes.c_double),
        ("carried", ctypes.c_void_p),
        ("carried_count", ctypes.c_size_t),
        ("checkpoint", ctypes.c_char_p),
        ("checkpoint_period", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
    ]


class ReduceReport(ctypes.Structure):
    _fields_ = [
        ("iteration", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("expected", ctypes.c_uint32),
        ("used", ctypes.c_uint32),
        ("current", ctypes.c_uint32),
        ("is_regenerated", ctypes.c_bool),
        ("is_adopted", ctypes.c_bool),
        ("bytes_sent", ctypes.c_uint64),
        ("waited_ack_ns", ctypes.c_int64),
        ("waited_ns", ctypes.c_int64),
        ("agreed_ns", ctypes.c_int64),
    ]


class ReduceState(ctypes.Structure):
    _fields_ = [
        ("iteration", ctypes.c_uint64),
        ("number", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("inputs", ctypes.c_uint32),
        ("outputs", ctypes.c_uint32),
        ("graph", ctypes.c_char * (CONSTANTS["PAWL_REDUCE_GRAPH_MAX"] + 1)),
        ("bytes_sent", ctypes.c_uint64),
        ("regenerated", ctypes.c_uint64),
    ]


class CollectiveState(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_uint64),
        ("rank", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("members", ctypes.c_uint32),
        ("operations", ctypes.c_uint64),
        ("bytes_sent", ctypes.c_uint64),
        ("renewals", ctypes.c_uint64),
        ("failed", ctypes.c_int),
    ]


class SessionFigures(ctypes.Structure):
    _fields_ = [
        ("bytes_sent", ctypes.c_uint64),
        ("bytes_received", ctypes.c_uint64),
        ("messages_sent", ctypes.c_uint64),
        ("messages_received", ctypes.c_uint64),
    ]


class VectorOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("width", ctypes.c_uint32),
        ("size", ctypes.c_uint64),
        ("function", ctypes.c_int),
        ("placement", ctypes.c_int),
        ("layout", ctypes.c_int),
        ("rule", ctypes.c_char * (CONSTANTS["PAWL_RULE_MAX"] + 1)),
        ("filters", ctypes.c_char * (CONSTANTS["PAWL_FILTERS_OPTION_MAX"] + 1)),
        ("pushed_width", ctypes.c_uint32),
        ("stored_width", ctypes.c_uint32),
        ("state_width", ctypes.c_uint32),
    ]


class VectorInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * (CONSTANTS["PAWL_NAME_MAX"] + 1)),
        ("id", ctypes.c_uint64),
        ("options", VectorOptions),
        ("pushed_width", ctypes.c_uint32),
        ("pulled_width", ctypes.c_uint32),
    ]


class Where(ctypes.Structure):
    _fields_ = [
        ("keys", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("list", ctypes.c_void_p),
        ("range", Range),
        ("node", Node),
        ("after", ctypes.c_void_p),
        ("after_count", ctypes.c_size_t),
        ("parent", ctypes.c_void_p),
        ("clocks", ctypes.c_bool),
        ("operand", ctypes.c_void_p),
        ("operand_rows", ctypes.c_size_t),
    ]


STRUCTS = {
    "pawl_range": Range,
    "pawl_node": Node,
    "pawl_session_options": SessionOptions,
    "pawl_session_figures": SessionFigures,
    "pawl_peers_state": PeersState,
    "pawl_peer_member": PeerMember,
    "pawl_tensor": Tensor,
    "pawl_reduce_options": ReduceOptions,
    "pawl_reduce_report": ReduceReport,
    "pawl_reduce_state": ReduceState,
    "pawl_collective_state": CollectiveState,
    "pawl_vector_options": VectorOptions,
    "pawl_vector_info": VectorInfo,
    "pawl_where": Where,
}

# --- functions --------------------------------------------------------------------------------------------------------

PROTOTYPES = """
const char *pawl_version(void);
const char *pawl_status_text(pawl_status);
const char *pawl_status_name(pawl_status);
const char *pawl_status_group(pawl_status);
const char *pawl_error_text(void);
void pawl_text_free(char *);

void pawl_session_options_init_sized(struct pawl_session_options *, size_t);
pawl_status pawl_session_open(const struct pawl_session_options *, struct pawl_session **);
pawl_status pawl_session_close(struct pawl_session *, int64_t);
pawl_status pawl_session_flush(struct pawl_session *, int64_t);
struct pawl_node pawl_session_node(const struct pawl_session *);
const char *pawl_session_address(const struct pawl_session *);
void pawl_session_figures(struct pawl_session *, struct pawl_session_figures *);
pawl_status pawl_session_status(struct pawl_session *, int64_t, char **);
pawl_status pawl_session_check(struct pawl_session *);

void pawl_vector_options_init_sized(struct pawl_vector_options *, size_t);
pawl_status pawl_vector_create(struct pawl_session *, const char *, const struct pawl_vector_options *, int64_t, struct pawl_vector **);
pawl_status pawl_vector_ensure(struct pawl_session *, const char *, const struct pawl_vector_options *, int64_t, struct pawl_vector **);
pawl_status pawl_vector_open(struct pawl_session *, const char *, int64_t, struct pawl_vector **);
void pawl_vector_close(struct pawl_vector *);
pawl_status pawl_vector_delete(struct pawl_session *, const char *, int64_t);
void pawl_vector_info(const struct pawl_vector *, struct pawl_vector_info *);
pawl_status pawl_vector_list(struct pawl_session *, const char *, int64_t, struct pawl_vector_info **, size_t *);
void pawl_vector_list_free(struct pawl_vector_info *);
pawl_status pawl_vector_push(struct pawl_vector *, struct pawl_where, const void *, struct pawl_task **);
pawl_status pawl_vector_pull(struct pawl_vector *, struct pawl_where, void *, struct pawl_task **);
pawl_status pawl_vector_pushpull(struct pawl_vector *, struct pawl_where, const void *, void *, struct pawl_task **);
pawl_status pawl_vector_push_filtered(struct pawl_vector *, struct pawl_where, const void *, const void *, struct pawl_task **);
pawl_status pawl_vector_filter(struct pawl_vector *, const char *, const struct pawl_filters_options *);
pawl_status pawl_vector_flush_filters(struct pawl_vector *, struct pawl_task **);
pawl_status pawl_keys_create(struct pawl_vector *, const uint64_t *, size_t, struct pawl_keys **);
void pawl_keys_destroy(struct pawl_keys *);

pawl_status pawl_task_wait(struct pawl_task *, int64_t);
bool pawl_task_is_done(const struct pawl_task *);
size_t pawl_task_failure_count(const struct pawl_task *);
pawl_status pawl_task_failure(const struct pawl_task *, size_t, struct pawl_range *, pawl_status *);
void pawl_task_describe(const struct pawl_task *, char *, size_t);
uint64_t pawl_task_id(const struct pawl_task *);
void pawl_task_release(struct pawl_task *);

pawl_status pawl_group_join(struct pawl_session *, const char *, uint32_t, int64_t, struct pawl_group **);
void pawl_group_leave(struct pawl_group *);
uint64_t pawl_group_tick(const struct pawl_group *);
uint32_t pawl_group_size(const struct pawl_group *);
uint32_t pawl_group_rank(const struct pawl_group *);
pawl_status pawl_group_clock_after(struct pawl_group *, struct pawl_task *const *, size_t, struct pawl_task **);
pawl_status pawl_group_push(struct pawl_group *, struct pawl_vector *, struct pawl_where, const void *, struct pawl_task **);
pawl_status pawl_group_pull(struct pawl_group *, struct pawl_vector *, struct pawl_where, uint64_t, void *, struct pawl_task **);
pawl_status pawl_group_await(struct pawl_group *, uint64_t, int64_t);

pawl_status pawl_peers_join(struct pawl_session *, const char *, uint32_t, int64_t, struct pawl_peers **);
void pawl_peers_leave(struct pawl_peers *);
void pawl_peers_state(const struct pawl_peers *, struct pawl_peers_state *);
pawl_status pawl_peers_member(const struct pawl_peers *, uint32_t, struct pawl_peer_member *);
pawl_status pawl_peers_await(struct pawl_peers *, uint64_t, int64_t);

void pawl_reduce_options_init_sized(struct pawl_reduce_options *, size_t);
pawl_status pawl_reduce_open(struct pawl_peers *, const char *, const struct pawl_tensor *, size_t, const struct pawl_reduce_options *, int64_t, struct pawl_reduce **);
pawl_status pawl_reduce_step(struct pawl_reduce *, int64_t, struct pawl_reduce_report *);
void pawl_reduce_state(const struct pawl_reduce *, struct pawl_reduce_state *);
void pawl_reduce_close(struct pawl_reduce *);
pawl_status pawl_reduce_save(struct pawl_reduce *, const char *);
pawl_status pawl_reduce_load(struct pawl_reduce *, const char *, uint64_t *);

pawl_status pawl_collective_open(struct pawl_peers *, const char *, int64_t, struct pawl_collective **);
pawl_status pawl_collective_barrier(struct pawl_collective *, int64_t);
pawl_status pawl_collective_broadcast(struct pawl_collective *, void *, size_t, enum pawl_type, uint32_t, int64_t);
pawl_status pawl_collective_all_gather(struct pawl_collective *, const void *, size_t, enum pawl_type, void *, size_t, int64_t);
pawl_status pawl_collective_all_reduce(struct pawl_collective *, const void *, void *, size_t, enum pawl_type, enum pawl_collective_operator, int64_t);
pawl_status pawl_collective_reduce_scatter(struct pawl_collective *, const void *, size_t, enum pawl_type, enum pawl_collective_operator, void *, size_t, int64_t);
void pawl_collective_block(size_t, uint32_t, uint32_t, size_t *, size_t *);
pawl_status pawl_collective_renew(struct pawl_collective *, int64_t);
void pawl_collective_state(const struct pawl_collective *, struct pawl_collective_state *);
void pawl_collective_close(struct pawl_collective *);
"""

_TYPES = {
    "void": None,
    "bool": ctypes.c_bool,
    "pawl_status": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "const char *": ctypes.c_char_p,
    "enum pawl_type": ctypes.c_int,
    "enum pawl_collective_operator": ctypes.c_int,
}


def _type_of(words):
    """The ctypes type of a C type. Pointers are c_void_p, except for strings; structs are passed by value."""
    words = words.strip()
    if words in _TYPES:
        return _TYPES[words]
    if words.endswith("*"):
        return ctypes.c_void_p
    return STRUCTS[words[len("struct ") :]]


def signatures():
    """Name, type of the result and types of the arguments of every prototype."""
    for line in PROTOTYPES.split(";"):
        if not line.strip():
            continue
        head, arguments = line.strip().rstrip(")").split("(")
        at = head.rindex("pawl_")
        types = [_type_of(words) for words in arguments.split(",")]
        yield head[at:], _type_of(head[:at]), [] if types == [None] else types
