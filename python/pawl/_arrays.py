"""NumPy arrays as the library wants them: C-contiguous, aligned, of the vector's type. Those that are so already are used
as they are; what cannot be converted without loss is refused."""

import operator

import numpy as np

from . import _abi
from ._errors import error, invalid

TYPES = {
    np.dtype("float32"): _abi.CONSTANTS["PAWL_F32"],
    np.dtype("float64"): _abi.CONSTANTS["PAWL_F64"],
    np.dtype("int32"): _abi.CONSTANTS["PAWL_I32"],
    np.dtype("int64"): _abi.CONSTANTS["PAWL_I64"],
    np.dtype("uint64"): _abi.CONSTANTS["PAWL_U64"],
}
DTYPES = {number: dtype for dtype, number in TYPES.items()}


def type_of(dtype):
    try:
        return TYPES[np.dtype(dtype)]
    except (KeyError, TypeError):
        names = ", ".join(str(known) for known in TYPES)
        raise invalid("dtype %r: a vector holds one of %s", dtype, names) from None


def _straight(array, dtype):
    """The array itself if the library can read it in place, else a copy."""
    return np.require(array, dtype=dtype, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _fits(array, dtype):
    """Whether numbers that are no array, of Python's own types, can be held by the type."""
    if dtype.kind == "f":
        return array.dtype.kind in "fiub"
    if array.dtype.kind not in "iub":
        return False
    limits = np.iinfo(dtype)
    return array.size == 0 or (int(array.min()) >= limits.min and int(array.max()) <= limits.max)


def _as_array(what, thing, noun):
    try:
        array = np.asarray(thing)
    except (TypeError, ValueError) as problem:
        raise invalid("%s: %s that are no array: %s", what, noun, problem) from None
    if array.dtype.kind in "fO" and isinstance(thing, (list, tuple)) and all(type(number) is int for number in thing):
        if 0 <= min(thing, default=-1) and max(thing) < 2**64:  # NumPy takes a large one beside a small one for floats
            return np.array(thing, dtype=np.uint64)
    if array.dtype.kind not in "fiub" and array.size > 0:
        raise invalid("%s: %s of type %s are no numbers", what, noun, array.dtype)
    return array


def values(what, given, dtype, count, width):
    """`count` rows of `width` values, to be read by the library."""
    array = _as_array(what, given, "values")
    if array.dtype != dtype and array.size > 0:
        is_ok = np.can_cast(array.dtype, dtype, "safe") if isinstance(given, np.ndarray) else _fits(array, dtype)
        if not is_ok:
            raise error(
                _abi.MISMATCH,
                "%s: values are %s and the vector holds %s, which may not hold them: values.astype('%s') says that it is meant"
                % (what, array.dtype, dtype, dtype),
            )
    if array.size != count * width:
        raise invalid("%s: %d values, where %d keys of width %d take %d", what, array.size, count, width, count * width)
    return _straight(array, dtype)


def out(what, given, dtype, count, width):
    """Memory for `count` rows that the library fills, not always all of them: the caller's, or new."""
    if given is None:
        return np.zeros(count if width == 1 else (count, width), dtype=dtype)
    if not isinstance(given, np.ndarray) or given.dtype != dtype:
        kind = given.dtype if isinstance(given, np.ndarray) else type(given).__name__
        raise error(_abi.MISMATCH, "%s: out is %s, where a NumPy array of %s is filled" % (what, kind, dtype))
    flags = given.flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        raise invalid("%s: out is not C-contiguous, aligned and writable memory, so it cannot be filled in place", what)
    if given.size != count * width:
        raise invalid("%s: out has room for %d values, where %d keys of width %d take %d", what, given.size, count, width, count * width)
    return given


def keys(what, given):
    """Keys as uint64, in one row. That they rise, and lie in the span, is for the library to say."""
    array = _as_array(what, given, "keys")
    if array.size == 0:
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise invalid("%s: keys are %s of %d dimensions, and not whole numbers in one row", what, array.dtype, array.ndim)
    array = array.reshape(-1)
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise error(_abi.OUT_OF_SPAN, "%s: key %d is below zero" % (what, int(array.min())))
    if array.dtype == np.int64:  # the same bytes, without a copy
        array = _straight(array, np.int64).view(np.uint64)
    return _straight(array, np.uint64)


def bounds(what, given):
    """Begin and end of a range: a pair, a slice, or a range of Python's."""
    if isinstance(given, range):
        given = (given.start, given.stop) if given.step == 1 else None
    elif isinstance(given, slice):
        given = (given.start, given.stop) if given.step in (None, 1) else None
    try:
        begin, end = (operator.index(bound) for bound in given)
    except (TypeError, ValueError):
        raise invalid("%s: a range is (begin, end), two whole numbers", what) from None
    if not 0 <= begin <= end <= _abi.KEY_END:
        raise invalid("%s: [%d, %d) is no range of keys", what, begin, end)
    return begin, end
