# SPDX-License-Identifier: Apache-2.0
"""The annotated headers that a file includes, for where that file is rewritten by itself."""

from __future__ import annotations

from ..errors import IketError
from .reached import Tree
from .reading import Reading
from .search import Search


def annotated_headers(path: str) -> list[str]:
    """Return the annotated headers that a file reaches without any folder's help; none where they can not be read."""
    try:
        tree = Tree(Search((), ()))
        place = tree.add(path)
        if not set(tree.hinted()) - {place}:
            return []
        texts = Reading(tree, [(place,)], hints=False).texts
    except IketError:
        return []  # whoever rewrites them is told
    return [text.source.path for at, text in texts.items() if text.annotations and at != place]
