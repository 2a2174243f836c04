# SPDX-License-Identifier: Apache-2.0
"""Read one call as an annotation: the macros of `iket.cuh`, our tokens, TileLang's tokens.

A call that is found but not understood is an `AnnotationError` at its place.  Nothing is decided here that depends
on other annotations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from .. import abi, names
from ..errors import AnnotationError
from ..source import Source
from .annotation import Annotation, Meaning, NamePiece, Origin, Payload, SiteKind, annotation
from .found import Call, Spelling
from .token_format import EventToken, TokenError, read_tilelang_token, read_token
from .tokens import Arguments, arguments, literal_at, skip_blank

#: The header offers every macro under a second prefix, for sources in which the first is taken.
_PREFIXES = ("IKET_", "IKETR_")
_HEADER_KINDS = {
    "MARK": SiteKind.MARK,
    "RANGE_PUSH": SiteKind.PUSH,
    "RANGE_POP": SiteKind.POP,
    "RANGE_START": SiteKind.START,
    "RANGE_END": SiteKind.END,
    "RANGE": SiteKind.SCOPE,
}
_HEADER = {prefix + word: kind for prefix in _PREFIXES for word, kind in _HEADER_KINDS.items()}
_PAYLOAD_MACROS = {
    prefix + ("PTR" if kind == "pointer" else kind.upper()): kind for prefix in _PREFIXES for kind in abi.PAYLOADS
}
_COLOR_MACROS = frozenset(prefix + "COLOR" for prefix in _PREFIXES)
_TOKEN_CALLEES = frozenset(prefix + "EVENT" for prefix in _PREFIXES)
_TILELANG_PLAIN = "TL_IKET_EVENT"
#: TileLang passes i32 through the unsigned form; the type that counts is the token's.
_TILELANG_PAYLOAD = {"TL_IKET_EVENT_PAYLOAD_U32": ("i32", "u32"), "TL_IKET_EVENT_PAYLOAD_F32": ("f32",)}

#: Every name whose call is an annotation.
CALLEES = frozenset((*_HEADER, *_TOKEN_CALLEES, _TILELANG_PLAIN, *_TILELANG_PAYLOAD))
#: Those that the rewriter leaves nothing of; TileLang's injector keeps its calls.
OWN_CALLEES = frozenset((*_HEADER, *_TOKEN_CALLEES))
#: The callees that remain where a source leaves the header's first names to somebody else (`IKETR_ONLY`).
SECOND_PREFIX_CALLEES = frozenset(name for name in CALLEES if not name.startswith("IKET_"))
#: Every callee contains it: text without it holds no annotation.
CALLEE_HINT = "IKET"

_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9A-Fa-f']+|0[bB][01']+|\d[\d']*)\Z")
_FLOATING = re.compile(r"[-+]?(?:(?:\d[\d']*)?\.\d[\d']*|\d[\d']*\.?)(?:[eE][-+]?\d+)?[fF]?\Z")


def read_all(source: Source, calls: Iterable[Call]) -> list[Annotation]:
    """Return what each call says, in order; calls of the same letters are read once.

    Raises:
        AnnotationError: one can not be understood.
    """
    known: dict[Spelling, Meaning] = {}
    annotations = []
    for call in calls:
        meaning = known.get(call.spelling)
        if meaning is None:
            meaning = known[call.spelling] = read(source, call).meaning
        annotations.append(Annotation(call, meaning))
    return annotations


def read(source: Source, call: Call) -> Annotation:
    """Return what the call says.

    Raises:
        AnnotationError: it can not be understood.
    """
    if call.callee in _HEADER:
        return _Header(source, call).read(_HEADER[call.callee])
    if call.callee in _TOKEN_CALLEES:
        return _token(source, call)
    return _tilelang(source, call)


def _fail(source: Source, span: tuple[int, int], message: str, remedy: str) -> AnnotationError:
    return AnnotationError(message, source.place(*span), remedy=remedy)


# --- iket.cuh -----------------------------------------------------------------------------------------------


class _Header:
    """Reader of one call of a macro of iket.cuh."""

    def __init__(self, source: Source, call: Call) -> None:
        self.source, self.call = source, call
        self.text = source.logical
        self.callee_span = (call.start, call.start + len(call.callee))

    def read(self, kind: SiteKind) -> Annotation:
        spans = list(self.call.arguments.spans)
        if kind is SiteKind.POP:
            if spans:
                raise self._fail(
                    spans[0],
                    f"{self.call.callee} takes no argument: a pop ends the innermost range",
                    "leave the parentheses empty; a payload belongs to the push",
                )
            return annotation(self.call, kind, Origin.HEADER, None, self.callee_span)
        if not spans or spans[0][0] >= spans[0][1]:
            raise self._fail(self.callee_span, "the event has no name", f'write {self.call.callee}("name")')
        name, pieces = self._name(spans[0])
        rest = spans[1:]
        color = self._color(rest)
        payload = self._payload(rest) if rest else None
        return annotation(self.call, kind, Origin.HEADER, name, spans[0], pieces, payload, color)

    def _fail(self, span: tuple[int, int], message: str, remedy: str) -> AnnotationError:
        return _fail(self.source, span, message, remedy)

    def _name(self, span: tuple[int, int]) -> tuple[str | None, tuple[NamePiece, ...]]:
        pieces = name_pieces(self.source, span, self.call.macro.parameters if self.call.macro else None)
        if pieces is None:
            macro = self.call.macro
            if macro is not None and "__VA_ARGS__" in self.text[slice(*span)]:
                remedy = f"give {macro.name} a parameter of its own for the name"
            elif macro is not None:
                remedy = f"the name must be built of string literals and parameters of {macro.name}"
            else:
                remedy = "write the name as a string literal at its place; a variable or a macro can not be read"
            raise self._fail(span, "the event's name is no string literal", remedy)
        data = [piece.data for piece in pieces if piece.data is not None]
        if len(data) == len(pieces):
            return checked_name(self.source, span, b"".join(data)), ()
        return None, pieces

    def _color(self, rest: list[tuple[int, int]]) -> int | None:
        """Take the colour off the end of the arguments."""
        if not rest:
            return None
        start, end = rest[-1]
        word = _IDENTIFIER.match(self.text, start, end)
        if word is None or word.group() not in _COLOR_MACROS:
            return None
        rest.pop()
        inner = arguments(self.source, word.span(), end)
        digits = self.text[slice(*inner.spans[0])].strip().rstrip("uUlL") if inner and len(inner.spans) == 1 else ""
        value = _integer(digits) if _INTEGER.match(digits) else None
        if value is None or not 0 <= value <= abi.COLOR_HIGHEST or inner.end != end:  # type: ignore[union-attr]
            raise self._fail(
                (start, end), "the colour is no literal from 0 to 0xFFFFFF", "write it as IKET_COLOR(0xRRGGBB)"
            )
        return value

    def _payload(self, rest: list[tuple[int, int]]) -> Payload:
        for first, last in rest:
            if first >= last:
                raise self._fail((last, last + 1), "an argument is empty", "remove the comma before it")
        # Only brackets keep commas together: those of template arguments separate.
        span = start, end = rest[0][0], rest[-1][1]
        word = _IDENTIFIER.match(self.text, start, end)
        if word is not None and word.group() in _PAYLOAD_MACROS:
            inner = arguments(self.source, word.span(), end)
            if inner is not None:
                return self._typed_payload(word.group(), inner, rest)
        if word is not None and word.group() in _COLOR_MACROS:
            raise self._fail(span, "the colour stands before another argument", "write the colour last")
        bare = self.text[start:end]
        if _INTEGER.match(bare):
            value = _integer(bare)
            if value is None or not -(1 << 31) <= value < 1 << 31:
                raise self._fail(
                    span, "the literal does not fit a signed 32-bit payload", "give its type: IKET_U64(...)"
                )
            return Payload(abi.PAYLOADS["i32"], start, end)
        if _FLOATING.match(bare):
            return Payload(abi.PAYLOADS["f32"], start, end)
        raise self._fail(
            span,
            "the payload's type can not be told",
            f"give its type, for example IKET_I32({_shorten(bare)}); IKET_F32, IKET_U64, IKET_PTR ... are others",
        )

    def _typed_payload(self, macro: str, inner: Arguments, rest: list[tuple[int, int]]) -> Payload:
        (start, end), others = rest[0], rest[1:]
        if inner.end < end:
            behind = skip_blank(self.text, inner.end)
            raise self._fail(
                (behind, end), f"something follows {macro}(...)", "put the whole expression between its brackets"
            )
        if others:
            raise self._fail(
                (others[0][0], others[-1][1]),
                "an argument too many: an event has a name, one payload and a colour",
                "remove it, or give it to an event of its own",
            )
        if not inner.spans:
            raise self._fail((start, end), f"{macro} holds no expression", "write the value between its brackets")
        if len(inner.spans) > 1 and "<" not in self.text[inner.open : inner.end]:
            # Commas of template arguments separate too; without any, these are arguments too many.
            raise self._fail(inner.spans[1], f"{macro} has an argument too many", "write one value, in parentheses")
        return Payload(abi.PAYLOADS[_PAYLOAD_MACROS[macro]], inner.open, inner.end - 1)


def name_pieces(
    source: Source, span: tuple[int, int], parameters: tuple[str, ...] | None
) -> tuple[NamePiece, ...] | None:
    """Split the text of a name into literals and, in a macro's body, its parameters; None where it is neither."""
    text, (position, end) = source.logical, span
    pieces: list[NamePiece] = []
    while position < end:
        literal = literal_at(source, position)
        if literal is not None:
            # Only a raw string needs its splices: elsewhere they are no part of the literal.
            spelled = source.text[source.physical(position) : source.physical_end(literal[1])]
            if "R" not in spelled.split('"', 1)[0]:
                spelled = text[position : literal[1]]
            pieces.append(NamePiece(spelled, literal[0]))
            position = literal[1]
        else:
            stringized = text[position] == "#"
            word = _IDENTIFIER.match(text, skip_blank(text, position + stringized), end)
            if word is None or word.group() not in (parameters or ()):
                return None
            pieces.append(NamePiece(word.group(), stringized=stringized))
            position = word.end()
        position = skip_blank(text, position)
    return tuple(pieces) or None


def checked_name(source: Source, span: tuple[int, int], data: bytes) -> str:
    """Decode the bytes of a name.

    Raises:
        AnnotationError: they are empty, not UTF-8, or hold a NUL.
    """
    try:
        name = data.decode("utf-8")
        fault = names.fault_of(name)
    except UnicodeDecodeError:
        fault = "the name is not valid UTF-8"
    if fault:
        raise _fail(source, span, fault, "a name is any text of UTF-8 without a NUL, at least one character")
    return name


def _integer(text: str) -> int | None:
    digits = text.replace("'", "").lstrip("+-")
    try:
        value = int(digits, 0) if not digits.startswith("0") or digits[1:2] in tuple("xXbB") else int(digits, 8)
    except ValueError:
        return None
    return -value if text.startswith("-") else value


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 32 else text[:29] + "..."


# --- Tokens -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8192)
def _decode(read_one: Callable[[str], EventToken], token: str) -> EventToken | str:
    """Decode a token, or say what is wrong with it; generated text repeats tokens."""
    try:
        return read_one(token)
    except TokenError as error:
        return str(error)


def _token_argument(
    source: Source, call: Call, span: tuple[int, int], read_one: Callable[[str], EventToken]
) -> EventToken:
    literal = literal_at(source, span[0])
    if literal is None or literal[1] != span[1]:
        raise _fail(source, span, f"{call.callee} needs its token as one string literal", "print the token as it is")
    token = _decode(read_one, literal[0].decode("utf-8", "replace"))
    if isinstance(token, str):
        raise _fail(source, span, token, "print the token exactly as encode_event (or TileLang) returned it")
    return token


def _token(source: Source, call: Call) -> Annotation:
    spans, callee = call.arguments.spans, (call.start, call.start + len(call.callee))
    if not spans:
        raise _fail(source, callee, f"{call.callee} has no token", 'write IKET_EVENT("<token>"[, payload])')
    token = _token_argument(source, call, spans[0], read_token)
    payload = None
    if len(spans) > 1:
        span = (spans[1][0], spans[-1][1])
        if token.site_kind is SiteKind.POP:
            raise _fail(
                source, span, "a pop carries no payload", "leave the argument out; a payload belongs to the push"
            )
        if token.payload is None:
            raise _fail(
                source,
                span,
                "the call has a payload, but its token declares none",
                "name the payload's type in encode_event, or leave the argument out",
            )
        if span[0] >= span[1]:
            raise _fail(source, callee, "the payload is empty", "write the value as the second argument")
        if len(spans) > 2 and "<" not in source.logical[slice(*span)]:
            # Commas of template arguments separate too; without any, these are arguments too many.
            raise _fail(source, spans[2], f"{call.callee} has an argument too many", "write one value, in parentheses")
        payload = Payload(abi.PAYLOADS[token.payload], *span)
    elif token.payload is not None:
        raise _fail(
            source,
            callee,
            f"the token declares a payload of type {token.payload}, but the call has none",
            "write the value as the second argument",
        )
    return annotation(
        call, token.site_kind, Origin.TOKEN, token.name, spans[0], (), payload, token.color, token.position
    )


def _tilelang(source: Source, call: Call) -> Annotation:
    text, spans, callee = source.logical, call.arguments.spans, (call.start, call.start + len(call.callee))
    number = text[slice(*spans[0])] if spans else ""
    if not (number.isascii() and number.isdigit()):
        raise _fail(
            source,
            spans[0] if spans else callee,
            f"{call.callee} does not start with an event id",
            "keep the call as TileLang printed it",
        )
    if call.callee == _TILELANG_PLAIN:
        if len(spans) == 1:
            if number.lstrip("0") != str(abi.ID_POP):
                raise _fail(
                    source,
                    spans[0],
                    "the event has no token; only the pop (31) goes without",
                    "keep the call as TileLang printed it",
                )
            return annotation(call, SiteKind.POP, Origin.TILELANG, None, callee)
        if len(spans) != 2:
            raise _fail(
                source,
                (spans[1][0], spans[-1][1]),
                f"{call.callee} takes an id and a token",
                "keep the call as TileLang printed it",
            )
    elif len(spans) < 3:
        raise _fail(
            source, callee, f"{call.callee} takes an id, a payload and a token", "keep the call as TileLang printed it"
        )
    token = _token_argument(source, call, spans[-1], read_tilelang_token)
    allowed = _TILELANG_PAYLOAD.get(call.callee, (None,))
    if token.payload not in allowed:
        raise _fail(
            source,
            callee,
            f"{call.callee} does not fit its token, whose payload is {token.payload or 'none'}",
            "keep the call as TileLang printed it",
        )
    payload = None
    if token.payload is not None:
        payload = Payload(abi.PAYLOADS[token.payload], spans[1][0], spans[-2][1])
        if payload.start >= payload.end:
            raise _fail(source, callee, "the payload is empty", "keep the call as TileLang printed it")
    return annotation(call, token.site_kind, Origin.TILELANG, token.name, spans[-1], (), payload)
