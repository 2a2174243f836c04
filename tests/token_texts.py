# SPDX-License-Identifier: Apache-2.0
"""Tokens made by hand, apart from the code that is tested."""

from __future__ import annotations

import base64
import json

_TILELANG = {None: ("NoPayload", 0), "i32": ("int32", 5), "u32": ("uint32", 6), "f32": ("float32", 13)}


def pack(prefix: str, values) -> str:
    """Return a prefix and the base64 of JSON, or of bytes."""
    data = values if isinstance(values, bytes) else json.dumps(values).encode()
    return prefix + base64.urlsafe_b64encode(data).decode().rstrip("=")


def tilelang_token(name: str, kind: str, payload: str | None, **changes) -> str:
    """Return a token as TileLang prints it; `changes` replace its values."""
    payload_type, code = _TILELANG[payload]
    values = {
        "version": 1,
        "name": name,
        "event_id": 1,
        "kind": kind,
        "range_id": 0,
        "payload_type": payload_type,
        "payload_iket_id": code,
    }
    return pack("__tl_iket_v1_", values | changes)
