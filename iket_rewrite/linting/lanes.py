# SPDX-License-Identifier: Apache-2.0
"""What an expression's value has to do with lanes: the same for a warp, different between its lanes, or one lane's.

Text decides, by a few certain rules; whatever they do not know counts as uniform, because a rule that is silent costs
less than one that cries wolf.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping


class Lanes(enum.Enum):
    """How a value or a condition behaves over the lanes of a warp."""

    UNIFORM = "uniform"
    #: It differs between lanes.
    VARYING = "varying"
    #: The number of the lane itself.
    NUMBER = "number"
    #: A condition that holds for one lane.
    ELECTED = "elected"


_LANE_NAMES = re.compile(r"\b(?:lane|laneId|laneid|lane_id|laneIdx|lane_idx|kLane)\b")
_THREAD_NAMES = re.compile(r"\bthreadIdx\s*\.\s*x\b|\bthread_rank\s*\(\s*\)")
#: Functions that return the number of the lane.
_LANE_CALLS = re.compile(r"\b(?:\w+::)*\w*[lL]ane_?(?:id|idx|Id|Idx)\w*\s*\(\s*\)")
_ELECTION = re.compile(r"\b(?:(?:\w*_)?elect|\w*Elect)(?!ri|ro)\w*(?:<[\w\s]*>)?\s*\(|\b(?:is_)?elected\b")
#: Their value is one for the whole warp.
_GATHERING = re.compile(
    r"\b(?:__shfl_sync|__ballot_sync|__any_sync|__all_sync|__uni_sync|__reduce_\w+_sync|__syncthreads_\w+|__popc"
    r"|__activemask|meta_group_rank|num_threads|size|sizeof|any|all|ballot|shfl|\w*vote\w*"
    r"|\w*(?:[rR]educe|REDUCE|[bB]roadcast|[bB]cast|[uU]niform|[bB]allot)\w*)(?:<[\w\s,:]*>)?\s*\Z"
)
_CAST = re.compile(r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<[^<>()]*>\s*(?=\()")
_TYPE_CAST = re.compile(
    r"\(\s*(?:const\s+)?(?:unsigned|signed|int|long|short|char|float|double|bool|u?int\d+_t|uint"
    r"|size_t|std::size_t)(?:\s+(?:int|long))?\s*\)"
)
_INNER = re.compile(r"(\b[\w:.>-]*(?:<[\w\s,:]*>)?\s*)?([(\[])([^()\[\]]*)[)\]]")
#: A name that a constant has, by its looks.
_CONSTANT = r"(?![VNE]_)(?:\w+::)*(?:k[A-Z]\w*|[A-Z]\w*|warpSize|\w*[wW]arp_?[sS]ize\w*)(?!\w|\s*[(<])"
_PER_WARP = re.compile(rf"\b[NV]_(?:\s*%\s*\w+)?\s*(?:(/)\s*({_CONSTANT}|\d+)|>>\s*([5-9])(?!\d))[uU]?[lL]*\b")
_WARP_SIZE = r"(?:32[uU]?[lL]*|warpSize|\w*(?:WARP|[wW]arp)_?(?:SIZE|[Ss]ize|THREADS|Threads)\w*)"
_IN_WARP = re.compile(rf"\b[NV]_\s*(?:%\s*{_WARP_SIZE}|&\s*(?:31[uU]?|0[xX]1[fF][uU]?))(?!\w)")
_NUMBER = rf"(?:\d+[uU]?[lL]*(?!\w)|{_CONSTANT}|blockDim\s*\.\s*x\b)"
_BOUND = re.compile(rf"\bV_\s*(<=|>=|<|>)\s*({_NUMBER}(?:\s*[-*+/]\s*{_NUMBER})*)(?!\s*[-*+/%\w.(])")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
#: A variable's name: not a member's.
_VARIABLE = re.compile(r"(?<![.\w])(?<!->)(?<!::)[A-Za-z_]\w*")
_ONE_LANE = re.compile(r"\s*(?:N_\s*==\s*\w+|\w+\s*==\s*N_|!\s*N_|E_)\s*\Z")
_LONGEST = 4096


class Variables:
    """What is known of the variables of one function.

    Args:
        value_of: gives the value of a constant expression, or None where it is not known.
        known: what is known beforehand, of macros, helpers and what a lambda captures.
        shared: variables that all lanes share; whoever wrote one, its value is the same for all.
    """

    def __init__(
        self,
        value_of: Callable[[str], int | None] = lambda text: None,
        known: Mapping[str, Lanes] | None = None,
        shared: frozenset[str] = frozenset(),
    ) -> None:
        self.value_of, self.shared = value_of, shared
        self.known: dict[str, Lanes] = dict(known or {})

    def learn(self, name: str, value: str, *, anew: bool = True) -> None:
        """Note that a variable is given a value, or, unless `anew`, that it may have been given that one."""
        if name in self.shared:
            return
        told, before = self.judge(value), self.known.get(name, Lanes.UNIFORM)
        if anew or before is Lanes.UNIFORM:
            self.known[name] = told
        elif told not in (Lanes.UNIFORM, before):
            self.known[name] = Lanes.VARYING

    def judge(self, text: str) -> Lanes:
        """Return how the value of an expression behaves."""
        return _told(self._reduced(text))

    def _reduced(self, text: str) -> str:
        if len(text) > _LONGEST:
            return ""
        text = _ELECTION.sub(lambda match: "E_" + ("(" if match.group().endswith("(") else ""), text)
        text = _LANE_CALLS.sub("N_", text)
        text = _VARIABLE.sub(self._word, _LANE_NAMES.sub(self._lane, _THREAD_NAMES.sub("V_", text)))
        text = _CAST.sub("", _TYPE_CAST.sub("", text))
        while (found := _INNER.search(text)) is not None:
            text = text[: found.start()] + self._folded(*found.groups()) + text[found.end() :]
        return self._settled(text)

    def _lane(self, match: re.Match[str]) -> str:
        return match.group() if match.group() in self.known else "N_"

    def _word(self, match: re.Match[str]) -> str:
        known = self.known.get(match.group())
        # A word of which nothing is known is None here, which is no key and is looked up all the same.
        return {Lanes.VARYING: "V_", Lanes.NUMBER: "N_", Lanes.ELECTED: "E_"}.get(known, match.group())  # type: ignore[arg-type]

    def _folded(self, callee: str | None, bracket: str, inner: str) -> str:
        """Return what stands for a bracket and what calls or indexes with it."""
        head = (callee or "").strip()
        if head.rpartition("::")[2] == "E_":
            return "E_"
        if bracket == "(" and head and _GATHERING.search(head):
            return " u_ "
        inner = self._settled(inner)
        told = _told(inner)
        if not head or head in ("return", "if", "while"):
            return {Lanes.NUMBER: " N_ ", Lanes.VARYING: " V_ ", Lanes.ELECTED: " E_ "}.get(told, " u_ ")
        mixed = any(word in ("V_", "N_") for word in _WORD.findall(f"{inner} {head}"))
        return " V_ " if mixed else " u_ "

    def _settled(self, text: str) -> str:
        """Replace what is known to be the number of the lane, or uniform over the warp."""
        text = _PER_WARP.sub(self._divided, text)
        text = _IN_WARP.sub(" N_ ", text)
        return _BOUND.sub(self._bounded, text)

    def _divided(self, match: re.Match[str]) -> str:
        return " u_ " if not match.group(1) or self._holds_warps(match.group(2), 0) else match.group()

    def _bounded(self, match: re.Match[str]) -> str:
        return " u_ " if self._holds_warps(match.group(2), match.group(1) in ("<=", ">")) else match.group()

    def _holds_warps(self, text: str, more: int) -> bool:
        """Say whether a constant is a number of whole warps; what is not known is taken for one."""
        value = self.value_of(text)
        return value is None or (value + more) % 32 == 0


def _told(text: str) -> Lanes:
    if _ONE_LANE.match(text):
        return Lanes.ELECTED
    words: Iterable[str] = _WORD.findall(text)
    held = {word for word in words if word in ("V_", "N_", "E_")}
    if held == {"N_"} and text.strip() == "N_":
        return Lanes.NUMBER
    if "E_" in held and "V_" not in held and "N_" not in held:
        return Lanes.ELECTED
    return Lanes.VARYING if held else Lanes.UNIFORM
