# SPDX-License-Identifier: Apache-2.0
"""Where a comparison with constants holds, as a set of values: so that of two comparisons of one value, as of the index
of a warp, each tells what the other one can be.
"""

from __future__ import annotations

Condition = tuple[object, ...]

#: Sets of values of 32 bits: their ranges, both ends belonging to them, in order.
Span = tuple[tuple[int, int], ...]
#: A value, and what it can be where a condition holds and where it does not.
Claim = tuple[object, Span, Span]
_MOST, _HALF = 0xFFFFFFFF, 0x80000000
_MOST_THREADS = 1024
EVERY: Span = ((0, _MOST),)
#: The greatest values, without a sign and with one: a set that reaches them is what no comparison took away.
ENDS = (_MOST, _HALF - 1)


def parts_of(condition: Condition) -> tuple[tuple[Condition, bool], ...]:
    """Return the conditions that one is made of, with the values at which it holds; nothing where it is one alone."""
    match condition:
        case ("and", tuple(parts)):
            return parts
    return ()


def claims_of(condition: Condition) -> tuple[Claim, ...]:
    """Return what a condition says of the values that it compares with constants."""
    parts = parts_of(condition)
    if not parts:
        found = _span_of(condition)
        return ((found[0], found[1], opposite(found[1])),) if found else ()
    within: dict[object, Span] = {}
    for part, holds in parts:
        for value, when_true, when_false in claims_of(part):
            within[value] = both(within.get(value, EVERY), when_true if holds else when_false)
    # Where it does not hold, any of its parts may be the reason.
    alone = len(within) == 1 and all(len(claims_of(part)) == 1 for part, _ in parts)
    return tuple((value, span, opposite(span) if alone else EVERY) for value, span in within.items())


def _span_of(condition: Condition) -> tuple[object, Span] | None:
    """Return the value that a comparison with constants tests, and where it holds; None for other conditions."""
    *how, value, bound = condition
    if not (isinstance(bound, tuple) and len(bound) == 2 and bound[0] == "literal" and isinstance(bound[1], int)):
        return None
    number = bound[1]
    if how == ["equal"]:
        number &= _MOST
        span: Span = ((number, number),)
    elif how == ["less", True] and 0 < number <= _MOST:
        span = ((0, number - 1),)
    elif how == ["less", False] and 0 < number < _HALF:
        span = ((0, number - 1), (_HALF, _MOST))
    elif how == ["less", False] and -_HALF < number <= 0:
        span = ((_HALF, number - 1 & _MOST),)
    else:
        return None
    return _unshifted(value, span)


def _unshifted(value: object, span: Span) -> tuple[object, Span] | None:
    """See through what was computed of a value.

    So are a sum with a constant, and a shift to the right or a mask that clears low bits: from a thread's index to its
    warp's.
    """
    match value:
        case ("_", (("of" | "fixed", "VIADD", (source, ("literal", int(constant)))),)):
            return source, _moved(span, -constant)
        case (
            "_",
            ((_, "SHF.R.U32.HI" | "SHF.R.S32.HI" as shift, (("literal", 0), ("literal", int(by)), source)),),
        ) if 0 < by < 32:
            top = (_MOST if "U32" in shift else _HALF - 1) >> by
            if "S32" in shift and any(high > top for _, high in span):
                return value, span
            whole = tuple((low << by, (min(high, top) + 1 << by) - 1) for low, high in span if low <= top)
            return (source, whole) if whole else None
        case ("_", ((_, "LOP3.LUT", (source, ("literal", int(mask)), ("literal", 0), ("literal", 0xC0), *_)),)):
            # ptxas knows how many threads a CTA has at the most, and keeps no bit above.
            cleared = ~mask & (_MOST_THREADS - 1 if _is_thread(source) else _MOST)
            (low, high), *others = span
            # A value with these bits cleared stands for all that differ in them only.
            if cleared & cleared + 1 == 0 and not others and low == high and low & cleared == 0:
                return source, ((low, low | cleared),)
    return value, span


def _moved(span: Span, by: int) -> Span:
    """Return a set with a number added to each of its values, as 32 bits add."""
    moved = []
    for low, high in span:
        low, high = low + by & _MOST, high + by & _MOST
        moved += [(low, high)] if low <= high else [(low, _MOST), (0, high)]
    return tuple(sorted(moved))


def _is_thread(value: object) -> bool:
    match value:
        case ("_", (("fixed", str(text)),)):
            return text.startswith("SR_TID")
    return False


def both(left: Span, right: Span) -> Span:
    """Return the values that are in two sets."""
    pairs = ((max(a[0], b[0]), min(a[1], b[1])) for a in left for b in right)
    return tuple(sorted(pair for pair in pairs if pair[0] <= pair[1]))


def opposite(span: Span) -> Span:
    """Return the values that are not in a set."""
    edges = [-1, *(edge for low, high in span for edge in (low, high)), _MOST + 1]
    return tuple((low + 1, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=True) if high - low > 1)
