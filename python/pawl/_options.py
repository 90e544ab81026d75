"""Options of calls: numbers, and words that stand for constants of the library."""

import operator

from . import _abi
from ._errors import invalid


def number(what, value, bits):
    try:
        result = operator.index(value)
    except TypeError:
        result = -1
    if not 0 <= result < 2**bits:
        raise invalid("invalid %s=%r; expected an unsigned integer of %d bits", what, value, bits)
    return result


def choice(what, value, choices):
    if value not in choices:
        raise invalid("invalid %s=%r; expected one of %s", what, value, ", ".join(choices))
    return _abi.CONSTANTS[choices[value]]
