# SPDX-License-Identifier: Apache-2.0
"""The tokens that code generators print: ours, and TileLang's.

A token is a prefix and URL-safe base64, without padding, of compact JSON.  It says everything about one event
but its id: ids are given by the rewriter to a whole module at once.  Base64 survives every code generator; a quoted
name would not.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from .. import abi, names
from ..errors import OptionError
from .annotation import SiteKind, SourcePosition

PREFIX = "__iket_v1_"
TILELANG_PREFIX = "__tl_iket_v1_"
_TILELANG_VERSION = 1
#: A scoped range is C++ and has no token.
_KINDS = {kind.value: kind for kind in SiteKind if kind is not SiteKind.SCOPE}
_TILELANG_KINDS = {"mark": SiteKind.MARK, "range": SiteKind.PUSH}
#: TileLang's names of the types that it can record; further dtypes travel in tokens only.
_TILELANG_PAYLOADS = {"NoPayload": None, "int32": "i32", "uint32": "u32", "float32": "f32"}
_TILELANG_KEYS = frozenset(["version", "name", "event_id", "kind", "range_id", "payload_type", "payload_iket_id"])
_KEYS = frozenset(["kind", "name", "payload", "color", "file", "line", "column"])
_BASE64 = re.compile(r"[A-Za-z0-9_-]*\Z")


@dataclass(frozen=True, slots=True)
class EventToken:
    """What a token says.

    Attributes:
        kind: "mark", "range_push", "range_pop", "range_start" or "range_end".
        name: the event's name; None for a pop only.
        payload: name of the payload's type (a key of `iket_rewrite.abi.PAYLOADS`), or None.
        color: 0xRRGGBB, or None.
        file, line, column: where the annotation was written (line and column from 1), or None.
    """

    kind: str
    name: str | None = None
    payload: str | None = None
    color: int | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def site_kind(self) -> SiteKind:
        """Return the kind as the rewriter's own type."""
        return _KINDS[self.kind]

    @property
    def position(self) -> SourcePosition | None:
        """Return the source position, or None where the token has none."""
        if self.file is None or self.line is None:
            return None
        return SourcePosition(self.file, self.line, self.column)


class TokenError(ValueError):
    """A token that can not be read; whoever knows its place turns it into an `IketError`."""


def encode_event(
    kind: str,
    name: str | None = None,
    *,
    payload: str | None = None,
    color: int | None = None,
    file: str | None = None,
    line: int | None = None,
    column: int | None = None,
) -> str:
    """Return the token that a code generator prints into ``IKET_EVENT("<token>"[, payload expression])``.

    Args:
        kind: "mark", "range_push", "range_pop", "range_start" or "range_end".
        name: the event's name, any non-empty UTF-8 text without NUL; leave it out for a pop.
        payload: type of the payload, a key of `iket_rewrite.abi.PAYLOADS` such as "i32"; the call then has a
            second argument.  Both ends of a token range carry one type, or neither does.
        color: 0xRRGGBB; the viewer shows it for ranges.
        file, line, column: the position to report for this event, from 1.

    Returns:
        A string of letters, digits, "-" and "_".

    Raises:
        OptionError: the values can not form an event.
    """
    token = EventToken(kind, name, payload, color, file, line, column)
    fault = _fault(token)
    if fault:
        raise OptionError(f"no event token: {fault}")
    values = {key: getattr(token, key) for key in _KEYS if getattr(token, key) is not None}
    return PREFIX + _pack(values)


def decode_event(token: str) -> EventToken:
    """Return what a token of `encode_event` says.

    Raises:
        OptionError: it is no such token; the message says why.
    """
    if not isinstance(token, str):
        raise OptionError(f"no event token: it is {type(token).__name__}, not text")
    try:
        return read_token(token)
    except TokenError as error:
        raise OptionError(f"no event token: {error}") from None


def read_token(token: str) -> EventToken:
    """Decode one of our tokens.

    Raises:
        TokenError: it can not be read.
    """
    values = _unpack(token, PREFIX)
    extra = sorted(values.keys() - _KEYS)
    if extra:
        raise TokenError(f"the token has the unknown key {extra[0]!r}")
    if "kind" not in values:
        raise TokenError("the token lacks the key 'kind'")
    absent = [key for key, value in values.items() if value is None]
    if absent:
        raise TokenError(f"the token's key {absent[0]!r} is null; leave it out instead")
    result = EventToken(**values)
    fault = _fault(result)
    if fault:
        raise TokenError(fault)
    return result


def read_tilelang_token(token: str) -> EventToken:
    """Decode one of TileLang's tokens; its ids are of no use to us and are only checked to be numbers.

    Raises:
        TokenError: it can not be read.
    """
    values = _unpack(token, TILELANG_PREFIX)
    if values.get("version", _TILELANG_VERSION) != _TILELANG_VERSION:
        raise TokenError(f"the token is of version {values['version']!r}; only version {_TILELANG_VERSION} is known")
    missing, extra = sorted(_TILELANG_KEYS - values.keys()), sorted(values.keys() - _TILELANG_KEYS)
    if missing:
        raise TokenError(f"the token lacks the key {missing[0]!r}")
    if extra:
        raise TokenError(f"the token has the unknown key {extra[0]!r}")
    for key in ("event_id", "range_id", "payload_iket_id"):
        if type(values[key]) is not int or values[key] < 0:
            raise TokenError(f"the token's key {key!r} is {values[key]!r}, not a number")
    if not isinstance(values["kind"], str) or values["kind"] not in _TILELANG_KINDS:
        raise TokenError(f"the token's kind is {values['kind']!r}, not one of {', '.join(_TILELANG_KINDS)}")
    if not isinstance(values["payload_type"], str) or values["payload_type"] not in _TILELANG_PAYLOADS:
        raise TokenError(
            f"the token's payload type is {values['payload_type']!r}, not one of {', '.join(_TILELANG_PAYLOADS)}"
        )
    kind, payload = _TILELANG_KINDS[values["kind"]], _TILELANG_PAYLOADS[values["payload_type"]]
    code = abi.PAYLOADS[payload].code if payload else abi.PAYLOAD_NONE
    if values["payload_iket_id"] != code:
        raise TokenError(
            f"the token's payload number is {values['payload_iket_id']}, but {values['payload_type']} is {code}"
        )
    result = EventToken(kind.value, values["name"], payload)
    fault = _fault(result)
    if fault:
        raise TokenError(fault)
    return result


def _pack(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode("utf-8")).decode("ascii").rstrip("=")


def _unpack(token: str, prefix: str) -> dict[str, Any]:
    if not token.startswith(prefix):
        raise TokenError(f"the token does not start with {prefix!r}: it is of another version, or no token")
    body = token[len(prefix) :]
    if not _BASE64.match(body):
        raise TokenError("the token is not base64 of the URL-safe alphabet without padding")
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_")
    except (binascii.Error, ValueError):
        raise TokenError("the token is not base64") from None
    try:
        values = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
    except TokenError:
        raise
    except (ValueError, RecursionError):
        raise TokenError("the token's base64 does not hold JSON") from None
    if not isinstance(values, dict):
        raise TokenError("the token's JSON is no object")
    return values


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its pairs, none of which may hide another."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise TokenError(f"the token has the key {max(keys, key=keys.count)!r} twice")
    return values


def _fault(token: EventToken) -> str | None:
    """Say what is wrong with the values of a token, or None."""
    if not isinstance(token.kind, str) or token.kind not in _KINDS:
        return f"the kind is {token.kind!r}, not one of {', '.join(_KINDS)}"
    if token.kind == SiteKind.POP.value:
        if token.name is not None:
            return "a pop has no name: it ends the innermost range"
        if token.payload is not None:
            return "a pop carries no payload"
        if token.color is not None:
            return "a pop has no colour: its range has one"
    elif not isinstance(token.name, str):
        return f"the name is {token.name!r}, not text"
    elif fault := names.fault_of(token.name):
        return fault
    if token.payload is not None and (not isinstance(token.payload, str) or token.payload not in abi.PAYLOADS):
        return f"the payload type is {token.payload!r}, not one of {', '.join(abi.PAYLOADS)}"
    if token.color is not None and (type(token.color) is not int or not 0 <= token.color <= abi.COLOR_HIGHEST):
        return f"the colour is {token.color!r}, not a number from 0 to 0xFFFFFF"
    return _position_fault(token)


def _position_fault(token: EventToken) -> str | None:
    if token.file is not None:
        if not isinstance(token.file, str) or names.fault_of(token.file):
            return f"the file is {token.file!r}, not the name of one"
        if token.line is None:
            return "a file needs a line"
    elif token.line is not None:
        return "a line needs a file"
    if token.column is not None and token.line is None:
        return "a column needs a line"
    for key in ("line", "column"):
        value = getattr(token, key)
        if value is not None and (type(value) is not int or not 1 <= value < 1 << 31):
            return f"the {key} is {value!r}, not a number from 1"
    return None
