"""NumPy arrays as the library needs them: C-contiguous, aligned and of the vector's type. Such arrays are
used in place, others are converted. A conversion that may lose information is refused."""

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
        raise invalid("unsupported dtype %r; expected one of %s", dtype, names) from None


def _straight(array, dtype):
    """The array itself if the library can read it in place, else a copy."""
    return np.require(array, dtype=dtype, requirements=["C_CONTIGUOUS", "ALIGNED"])


def _fits(array, dtype):
    """Whether Python numbers (not an array) fit in the dtype."""
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
        raise invalid("%s: cannot convert the %s to an array: %s", what, noun, problem) from None
    if array.dtype.kind in "fO" and isinstance(thing, (list, tuple)) and all(type(number) is int for number in thing):
        if 0 <= min(thing, default=-1) and max(thing) < 2**64:  # NumPy would make floats of a mix of large and small integers
            return np.array(thing, dtype=np.uint64)
    if array.dtype.kind not in "fiub" and array.size > 0:
        raise invalid("%s: the %s have the type %s, which is not numeric", what, noun, array.dtype)
    return array


def values(what, given, dtype, count, width):
    """`count` rows of `width` values, for the library to read."""
    array = _as_array(what, given, "values")
    if array.dtype != dtype and array.size > 0:
        is_ok = np.can_cast(array.dtype, dtype, "safe") if isinstance(given, np.ndarray) else _fits(array, dtype)
        if not is_ok:
            raise error(
                _abi.MISMATCH,
                "%s: values are %s, which may not fit in the vector's %s; convert them with values.astype('%s')"
                % (what, array.dtype, dtype, dtype),
            )
    if array.size != count * width:
        raise invalid("%s: got %d values, but %d keys of width %d need %d", what, array.size, count, width, count * width)
    return _straight(array, dtype)


def out(what, given, dtype, count, width):
    """The caller's or a new array of `count` rows. The library fills all rows, or only those of a range."""
    if given is None:
        return np.zeros(count if width == 1 else (count, width), dtype=dtype)
    if not isinstance(given, np.ndarray) or given.dtype != dtype:
        kind = given.dtype if isinstance(given, np.ndarray) else type(given).__name__
        raise error(_abi.MISMATCH, "%s: out is %s; expected a NumPy array of %s" % (what, kind, dtype))
    flags = given.flags
    if not (flags.c_contiguous and flags.aligned and flags.writeable):
        raise invalid("%s: out must be C-contiguous, aligned and writable", what)
    if given.size != count * width:
        raise invalid("%s: out has %d values, but %d keys of width %d need %d", what, given.size, count, width, count * width)
    return given


def keys(what, given):
    """Keys as a one-dimensional uint64 array. The library checks that they are ascending and in the span."""
    array = _as_array(what, given, "keys")
    if array.size == 0:
        return np.empty(0, dtype=np.uint64)
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise invalid("%s: keys are %s of %d dimensions; expected a one-dimensional array of integers", what, array.dtype, array.ndim)
    array = array.reshape(-1)
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise error(_abi.OUT_OF_SPAN, "%s: key %d is negative" % (what, int(array.min())))
    if array.dtype == np.int64:  # the same bytes, without a copy
        array = _straight(array, np.int64).view(np.uint64)
    return _straight(array, np.uint64)


def bounds(what, given):
    """Begin and end of a range, given as a pair, a slice or a Python range."""
    if isinstance(given, range):
        given = (given.start, given.stop) if given.step == 1 else None
    elif isinstance(given, slice):
        given = (given.start, given.stop) if given.step in (None, 1) else None
    try:
        begin, end = (operator.index(bound) for bound in given)
    except (TypeError, ValueError):
        raise invalid("%s: invalid range; expected (begin, end), two integers", what) from None
    if not 0 <= begin <= end <= _abi.KEY_END:
        raise invalid("%s: [%d, %d) is not a range of keys", what, begin, end)
    return begin, end
