# SPDX-License-Identifier: Apache-2.0
"""Every number of the contract between a compiler and NVIDIA's IKET runtime, each with its provenance.

The contract is private.  *Oracle* means: read from the cubins of NVIDIA's own CuTe DSL compiler 4.8.1, kept in
`fixtures/oracle`.  *Parser* means: `iket.Context` of runtimes 4.6.0 to 4.8.1 reads it so.  *Hardware* means:
seen in captures on an H200 (driver 580, CUDA 13.0, runtime 4.8.1).  Nothing outside this module repeats one of
these numbers, and this module imports nothing of the package.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

# --- Names of the symbols (oracle) --------------------------------------------------------------------------

#: What every metadata symbol starts with; helpers of our own must not.
SYMBOL_PREFIX = "__iket_"
META_SYMBOL = "__iket_meta_info"
EVENT_SYMBOL = "__iket_evt_decl_{name}_{id}_attrs"
RANGE_SYMBOL = "__iket_range_decl_{name}_{id}_attrs"
#: With long names the literal word `id` takes the place of the name (parser, hardware).
LONG_NAME_SYMBOL_WORD = "id"
EVENT_STRING_SYMBOL = "__iket_string_decl_evt_{key}_str"
RANGE_STRING_SYMBOL = "__iket_string_decl_rng_{key}_str"
#: Not part of the contract: the hash of the plan, for tools that must tell two plans in one image apart.  The
#: parser ignores arrays of other names.
PLAN_SYMBOL = "iket_rewrite_plan_{digest}"

# --- Layouts, little-endian (oracle) ------------------------------------------------------------------------

#: size, major, minor, highest id, longest name, size of an event record, magic, 0, feature set (64 bit), 0, 0
META = struct.Struct("<8IQ2I")
META_MAJOR = 0
META_MINOR_INLINE_NAMES = 5
META_MINOR_LONG_NAMES = 7
META_MAGIC = 0xBABEF19D
#: Feature set: bit 0 basic, bit 1 payload.  The oracle sets both whether or not an event has a payload.
META_FEATURES = 3
META_LONGEST_INLINE = 32
META_LONGEST_UNBOUNDED = 0xFFFFFFFF

#: size, id, method, payload type, position, range id, name length, name
EVENT = struct.Struct("<7I32s")
#: size, scope, range id, colour, type, pairing, 0, 0, name length, name, 0
RANGE = struct.Struct("<9I32sI")
RANGE_SCOPE_WARP = 0
#: "The viewer chooses"; any other value is 0x00RRGGBB and arrives as `rangeColor` (hardware).
COLOR_AUTOMATIC = 0xFFFFFFFF
COLOR_HIGHEST = 0xFFFFFF

#: Longest name in bytes that a record holds itself: all 32 with inline names; with long names a NUL must fit too.
NAME_FIELD = 32
#: A longer name is replaced in its record by this letter and 16 hex digits of its 64-bit FNV-1a (parser, hardware).
LONG_NAME_KEY = "h{hash:016x}"

FNV32_OFFSET, FNV32_PRIME = 0x811C9DC5, 0x01000193
FNV64_OFFSET, FNV64_PRIME = 0xCBF29CE484222325, 0x00000100000001B3

# --- Event ids (oracle) -------------------------------------------------------------------------------------

#: Sentinel: no event.
ID_NONE = 0
#: "Pop the innermost range", in both methods; it is never declared.
ID_POP = 31


class Method(enum.Enum):
    """How a record lies in shared memory; one method for a whole module."""

    NATIVE = "native"
    EXTENDED = "extended"

    @property
    def facts(self) -> MethodFacts:
        """Return the numbers of this method."""
        return _METHODS[self]


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """The numbers of one instrument method.

    Attributes:
        title: the runtime's own name of the method.
        code: the number in an event declaration.
        first_id, last_id: the ids that events may take, inclusive.
        highest_id: the word in the module's header.
        timestamp_bits: width of the store at offset 0.
        payload_offset: byte offset of a payload by its width in bits.
    """

    title: str
    code: int
    first_id: int
    last_id: int
    highest_id: int
    timestamp_bits: int
    payload_offset: dict[int, int]

    @property
    def capacity(self) -> int:
        """Return how many events one module can declare."""
        return self.last_id - self.first_id + 1


_METHODS = {
    Method.NATIVE: MethodFacts("NativeDump", 3, 1, 30, 31, 32, {32: 4, 64: 8}),
    # 4095 is the highest id that fits the trigger; one other port uses it, the oracle stops at 4094.
    Method.EXTENDED: MethodFacts("ExtendedNativeDump", 5, 64, 4094, 4095, 64, {32: 8, 64: 8}),
}

# --- Payload types (ids: oracle; f16, bf16 and pointer: hardware) -------------------------------------------


@dataclass(frozen=True, slots=True)
class PayloadType:
    """One type of payload.

    Attributes:
        name: the name in annotations, tables and tokens.
        code: the number in an event declaration.
        bits: width of the value itself.
        stored_bits: width of the payload in the record; narrower values are zero-extended.
    """

    name: str
    code: int
    bits: int
    stored_bits: int


PAYLOAD_NONE = 0
PAYLOADS: dict[str, PayloadType] = {
    name: PayloadType(name, code, bits, 64 if bits == 64 else 32)
    for name, code, bits in (
        ("i8", 1, 8),
        ("u8", 2, 8),
        # The runtime has no bool: it travels as u8 (oracle).
        ("bool", 2, 8),
        ("i16", 3, 16),
        ("u16", 4, 16),
        ("i32", 5, 32),
        ("u32", 6, 32),
        ("i64", 7, 64),
        # 9 and 10 are f4 and f8 in the runtime's enumeration; nobody has tried them.
        ("f16", 11, 16),
        ("bf16", 12, 16),
        ("f32", 13, 32),
        ("f64", 14, 64),
        ("pointer", 15, 64),
        ("u64", 16, 64),
    )
}
#: By number, for readers: a declaration can not tell u8 from bool.
PAYLOAD_BY_CODE: dict[int, PayloadType] = {kind.code: kind for kind in PAYLOADS.values() if kind.name != "bool"}


# --- Kinds of event (oracle) --------------------------------------------------------------------------------


class EventKind(enum.Enum):
    """What an event is; (kind, name) identifies it in a module."""

    MARK = "mark"
    RANGE = "range"
    TOKEN_RANGE = "token_range"

    @property
    def facts(self) -> KindFacts:
        """Return the numbers of this kind."""
        return _KINDS[self]


@dataclass(frozen=True, slots=True)
class KindFacts:
    """The numbers of one kind of event: its position word, and type and pairing of its range declaration."""

    position: int
    range_type: int | None
    pairing: int | None


_KINDS = {
    EventKind.MARK: KindFacts(0, None, None),
    EventKind.RANGE: KindFacts(1, 2, 0),
    # One id serves both ends; they are paired by name.
    EventKind.TOKEN_RANGE: KindFacts(4, 1, 1),
}
KIND_BY_POSITION = {facts.position: kind for kind, facts in _KINDS.items()}

# --- Architectures ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arch:
    """One architecture on which an event can be recorded.

    Attributes:
        cuda_arch: the value of `__CUDA_ARCH__`.
        offset: byte offset of the record in the shared window, beside the cluster rank.
        evidence: how the offset is known.
    """

    cuda_arch: int
    offset: int
    evidence: str


#: An allow-list, never `>=`: a larger number can be another family with another reserved address.
ARCHES: dict[int, Arch] = {
    arch.cuda_arch: arch
    for arch in (
        Arch(900, 0x3F0, "oracle, hardware"),
        Arch(1000, 0x20, "oracle"),
        Arch(1030, 0x20, "oracle"),
        Arch(1100, 0x20, "parser"),
        Arch(1200, 0x20, "oracle"),
        Arch(1210, 0x20, "parser"),
    )
}
#: The first architecture that the runtime supports.  Below it a record lands in the user's shared memory.
FIRST_CUDA_ARCH = 900
#: The documented form for older architectures: this plain offset, cluster rank 0.
PRE_HOPPER_OFFSET = 0x20
#: Distance between the shared windows of two CTAs of a cluster.
CLUSTER_STRIDE = 0x1000000
#: The globaltimer's tick on sm_90 and newer; its low five bits carry a NativeDump id.
TIMER_TICK_NS = 32

# --- Sessions inside the process ----------------------------------------------------------------------------------
# Source: the header iket_profiling_session.h, which the runtime ships from release 4.8.0 on.

#: The major version that we speak; a minor one only adds.
SESSION_API_MAJOR = 1
#: The first release that exports sessions.
SESSION_FIRST_RELEASE = "4.8.0"
#: The first release of the runtime that was ever tried.
RUNTIME_FIRST_RELEASE = "4.6.0"
#: Size of the options' prefix of version 1.0, which every later runtime accepts, and the offsets of its fields.
SESSION_OPTIONS_SIZE = 56
SESSION_OPTIONS_OFFSETS = {
    "struct_size": 0,
    "flags": 4,
    "max_ts_per_warp": 8,
    "device_buffer_size": 16,
    "profiled_cuda_contexts": 24,
    "num_profiled_cuda_contexts": 32,
    "enabled_cluster": 40,
    "log_level": 48,
}
SESSION_CLUSTER_SIZE = 8
SESSION_FLAG_ENABLE_CLUSTER = 1 << 0
SESSION_FLAG_DEFER_TRACE_READBACK = 1 << 1
SESSION_FLAG_WARP_LIFETIME_ONLY = 1 << 2
SESSION_LOG_WARN = 1
SESSION_SUCCESS = 0
SESSION_INVALID_EVENT_RECORD = 6
#: What the other results are called.
SESSION_RESULTS = {
    1: "INVALID_ARGUMENT",
    2: "FEATURE_NOT_SUPPORTED",
    3: "NOT_IMPLEMENTED",
    4: "NOT_INSTRUMENTED",
    5: "UNKNOWN_ERROR",
    SESSION_INVALID_EVENT_RECORD: "INVALID_EVENT_RECORD",
    7: "NO_INSTRUMENT_CONFIG",
    8: "INVALID_STATE",
    9: "DUPLICATE_OPERATION",
    13: "IO_ERROR",
    14: "INTERNAL_ERROR",
}
#: Highest index of a cluster in x, y and z: 32, 16 and 16 bits.
CLUSTER_INDEX_HIGHEST = (2**32 - 1, 2**16 - 1, 2**16 - 1)
