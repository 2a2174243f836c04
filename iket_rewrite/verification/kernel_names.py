# SPDX-License-Identifier: Apache-2.0
"""Match kernels of two builds by mangled name, also those whose name holds a hash of the build."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

#: nvcc names an anonymous namespace after a hash and the file, and with -rdc puts the same before what is static.  The
#: number is the length of what follows.
_HASHED = re.compile(r"(\d+)(?=_GLOBAL__N__)|__nv_static_(\d+)_")

#: Architecture number and mangled name.
Key = tuple[int, str]


def matched(before: Iterable[Key], after: Iterable[Key]) -> dict[Key, Key]:
    """Return the kernel of the first build that each one of the second is.

    Names are the same, or are once hashes are left out, where that tells one kernel of either build from all others.
    """
    old, new = list(before), list(after)
    found = {key: key for key in new if key in set(old)}
    rest_old = [key for key in old if key not in found]
    rest_new = [key for key in new if key not in found]
    often = [Counter(map(_without_hash, rest)) for rest in (rest_old, rest_new)]
    by_name = {_without_hash(key): key for key in rest_old}
    for key in rest_new:
        name = _without_hash(key)
        if often[0][name] == often[1][name] == 1:
            found[key] = by_name[name]
    return found


def _without_hash(key: Key) -> Key:
    arch, name = key
    parts: list[str] = []
    at = 0
    for match in _HASHED.finditer(name):
        if match.start() >= at:
            parts += [name[at : match.start()], "hashed"]
            at = min(len(name), match.end() + int(match.group(1) or match.group(2)))
    return arch, "".join([*parts, name[at:]])
