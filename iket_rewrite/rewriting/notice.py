# SPDX-License-Identifier: Apache-2.0
"""What the author of a source should know and that stops nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Place


@dataclass(frozen=True, slots=True)
class Notice:
    """One warning.

    Attributes:
        message: what there is to know.
        place: where, or None where it concerns no place.
        slug: a short word that stays when the message changes, for programs that tell notices apart; "" where none
            needs to.
    """

    message: str
    place: Place | None = None
    slug: str = ""

    def __str__(self) -> str:
        if self.place is None:
            return f"warning: {self.message}"
        return f"{self.place}: warning: {self.message}\n{self.place.excerpt()}"
