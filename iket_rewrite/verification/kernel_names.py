# SPDX-License-Identifier: Apache-2.0
"""Match kernels of two builds by mangled name, also those whose name holds a hash of the build."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

#: nvcc names an anonymous namespace after a hash and the file, and with -rdc puts the same before what is static: a
#: kernel, or a device function.  The number is the length of what follows.
_HASHED = re.compile(r"(\d+)(?=_GLOBAL__N__|_INTERNAL_)|__nv_static_(\d+)_")

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
    often = [Counter(map(without_hash, rest)) for rest in (rest_old, rest_new)]
    by_name = {without_hash(key): key for key in rest_old}
    for key in rest_new:
        name = without_hash(key)
        if often[0][name] == often[1][name] == 1:
            found[key] = by_name[name]
    return found


def without_hash(key: Key) -> Key:
    """Return a kernel's name with the hashes of the build left out."""
    arch, name = key
    parts: list[str] = []
    at = 0
    # Behind what is left out the search begins anew: a hash can end in digits that would be read as part of a number.
    while match := _HASHED.search(name, at):
        parts += [name[at : match.start()], "hashed"]
        at = min(len(name), match.end() + int(match.group(1) or match.group(2)))
    return arch, "".join([*parts, name[at:]])
