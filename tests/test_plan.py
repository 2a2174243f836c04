# SPDX-License-Identifier: Apache-2.0
"""What is decided for a module: events, ids, method, forms; and what contradicts."""

from __future__ import annotations

import pytest
from texts import failure, kernel, place_and_caret, plan_of
from token_texts import tilelang_token

from iket_rewrite import OptionError, PlanError, encode_event, rewrite
from iket_rewrite.abi import EventKind, Method
from iket_rewrite.names import fnv1a32
from iket_rewrite.rewriting.plan import PayloadForm


def marks(count):
    return kernel("\n".join(f'IKET_MARK("m{index}");' for index in range(count)))


def keys(plan):
    return [(event.id, event.kind.value, event.name) for event in plan.events]


def test_ids_follow_the_first_appearance_of_kind_and_name():
    plan = plan_of(
        kernel(
            'IKET_MARK("b"); IKET_MARK("a"); IKET_RANGE_PUSH("b"); IKET_MARK("b"); IKET_RANGE_POP();\n'
            'IKET_RANGE_END("t"); IKET_RANGE_START("t"); IKET_RANGE("b"); IKETR_MARK("a");'
        )
    )
    assert keys(plan) == [(1, "mark", "b"), (2, "mark", "a"), (3, "range", "b"), (4, "token_range", "t")]
    assert [site.event.id if site.event else None for site in plan.sites] == [1, 2, 3, 1, None, 4, 4, 3, 2]


def test_kinds_of_annotation_share_events():
    token = encode_event("mark", "a")
    plan = plan_of(
        kernel(f'TL_IKET_EVENT(9, "{tilelang_token("a", "mark", None)}"); IKET_EVENT("{token}"); IKET_MARK("a");')
    )
    assert keys(plan) == [(1, "mark", "a")]
    assert len(plan.sites) == 3


@pytest.mark.parametrize("method", ["auto", "native"])
def test_thirty_events_are_native(method):
    plan = plan_of(marks(30), method=method)
    assert plan.method is Method.NATIVE
    assert [event.id for event in plan.events] == list(range(1, 31))


@pytest.mark.parametrize("method", ["auto", "extended"])
def test_thirty_one_events_are_extended(method):
    plan = plan_of(marks(31), method=method)
    assert plan.method is Method.EXTENDED
    assert [event.id for event in plan.events] == list(range(64, 95))


def test_extended_can_be_asked_for_with_few_events():
    assert [event.id for event in plan_of(marks(1), method="extended").events] == [64]


def test_ranges_and_marks_count_together():
    text = marks(30) + kernel('IKET_RANGE("m0");')
    assert plan_of(text).method is Method.EXTENDED
    assert plan_of(marks(30) + kernel('IKET_MARK("m0"); IKET_RANGE_POP();')).method is Method.NATIVE


def test_native_has_no_room_for_thirty_one():
    message = failure(marks(31), PlanError, method="native")
    assert "31 events, but NativeDump has room for 30; this is the first too many" in message
    assert place_and_caret(message) == ("32:1", "IKET_MARK")
    assert "fix: choose the method auto or extended" in message


def test_4031_events_are_the_most():
    plan = plan_of(marks(4031))
    assert (plan.events[0].id, plan.events[-1].id, len(plan.events)) == (64, 4094, 4031)


@pytest.mark.parametrize("method", ["auto", "extended"])
def test_4032_events_are_too_many(method):
    message = failure(marks(4032), PlanError, method=method)
    assert "4032 events, but ExtendedNativeDump has room for 4031" in message
    assert place_and_caret(message) == ("4033:1", "IKET_MARK")


@pytest.mark.parametrize("options", [{"method": "both"}, {"method": ""}, {"method": None}, {"pre_hopper": "on"}])
def test_an_unknown_option_is_refused(options):
    with pytest.raises(OptionError, match="choose one of"):
        rewrite("", **options)


def test_range_ids_are_hashes_of_names_and_marks_have_none():
    plan = plan_of(kernel('IKET_RANGE_PUSH("é"); IKET_MARK("é"); IKET_RANGE_START("t");'))
    assert [event.range_id for event in plan.events] == [fnv1a32("é".encode()), 0, fnv1a32(b"t")]


CONFLICTS = [
    (
        'IKET_MARK("a", IKET_I32(n));\nIKET_MARK("a", IKET_U32(n));',
        "the event 'a' has two payload types: u32 here, i32 before",
    ),
    ('IKET_MARK("a");\nIKET_MARK("a", 1);', "the event 'a' has two payload types: i32 here, no payload before"),
    ('IKET_RANGE("a", 1);\nIKET_RANGE_PUSH("a");', "the event 'a' has two payload types: no payload here, i32 before"),
    (
        'IKET_MARK("a", IKET_BOOL(n));\nIKET_MARK("a", IKET_U8(n));',
        "the event 'a' has two payload types: u8 here, bool",
    ),
    (
        'IKET_RANGE_START("a", 1);\nIKET_RANGE_END("a");',
        "the token range 'a' has a payload at one end only",
    ),
    ('IKET_RANGE_START("a");\nIKET_RANGE_END("a", 1);', "the token range 'a' has a payload at one end only"),
    (
        'IKET_RANGE_START("a", 1);\nIKET_RANGE_END("a", 1.5);',
        "the event 'a' has two payload types: f32 here, i32 before",
    ),
    (
        'IKET_RANGE("a", IKET_COLOR(1));\nIKET_RANGE("a", IKET_COLOR(2));',
        "'a' has two colours",
    ),
    ('IKET_RANGE_PUSH("a");\nIKET_RANGE_START("a");', "'a' is used as a push/pop range and as a token range"),
    ('IKET_RANGE_END("a");\nIKET_RANGE("a");', "'a' is used as a push/pop range and as a token range"),
    # Found by brute force among names of this form.
    (
        'IKET_RANGE("load_warp_35873");\nIKET_RANGE("gemm_block_38510");',
        "the ranges 'gemm_block_38510' and 'load_warp_35873' have one range id, 0x29afa899",
    ),
    (
        'IKET_RANGE_START("load_warp_35873");\nIKET_RANGE("gemm_block_38510");',
        "the ranges 'gemm_block_38510' and 'load_warp_35873' have one range id, 0x29afa899",
    ),
]


@pytest.mark.parametrize(("statements", "message"), CONFLICTS)
def test_annotations_that_contradict_are_an_error_with_both_places(statements, message):
    found = failure(kernel(statements), PlanError)
    assert message in found.split("\n")[0]
    assert place_and_caret(found)[0] == "3:1"
    assert "k.cu:2:1: " in found.split("\n")[3]
    assert "\n  fix: " in found


def test_the_second_colour_is_set_against_the_first_that_was_given():
    text = kernel('IKET_RANGE("a");\nIKET_RANGE("a", IKET_COLOR(1));\nIKET_RANGE("a", IKET_COLOR(2));')
    found = failure(text, PlanError)
    assert (place_and_caret(found)[0], "k.cu:3:1: the other colour is given here" in found) == ("4:1", True)


def test_a_name_whose_hash_is_zero_is_no_range_but_a_mark():
    assert fnv1a32(b"ppkttia") == 0
    assert "has the range id 0" in failure(kernel('IKET_RANGE("ppkttia");'), PlanError)
    assert plan_of(kernel('IKET_MARK("ppkttia");')).events[0].range_id == 0


@pytest.mark.parametrize(
    "statements",
    [
        'IKET_MARK("a"); IKET_RANGE("a");',
        'IKET_MARK("a"); IKET_RANGE_START("a");',
        'IKET_MARK("a", 1); IKET_RANGE("a", 1.5);',
        'IKET_MARK("load_warp_35873"); IKET_RANGE("gemm_block_38510");',
        'IKET_RANGE("a", IKET_COLOR(1)); IKET_RANGE("a"); IKET_RANGE("a", IKET_COLOR(1));',
        'IKET_MARK("A"); IKET_MARK("a");',
    ],
)
def test_annotations_that_only_look_alike_are_fine(statements):
    assert plan_of(kernel(statements)).events


@pytest.mark.parametrize("order", [0, 1])
def test_one_place_gives_the_colour_for_all(order):
    statements = ['IKET_RANGE("a");', 'IKET_RANGE("a", IKET_COLOR(0xFF));'][:: -1 if order else 1]
    assert plan_of(kernel("\n".join(statements))).events[0].color == 0xFF


def test_a_colour_of_a_mark_is_kept_with_a_warning():
    result = rewrite(kernel('IKET_MARK("a", IKET_COLOR(1));'), path="k.cu")
    assert result.plan.events[0].color == 1
    assert "k.cu:2:1: warning: a mark has no colour" in str(result.warnings[0])


TILELANG = f'TL_IKET_EVENT_PAYLOAD_U32(1, n, "{tilelang_token("a", "mark", "i32")}");'
OURS = f'IKET_EVENT("{encode_event("mark", "a", payload="i32")}", n);'
HEADER = 'IKET_MARK("a", IKET_I32(n));'


@pytest.mark.parametrize(
    ("statement", "runtime_payloads", "captured"),
    [
        (TILELANG, None, False),
        (TILELANG, True, True),
        (TILELANG, False, False),
        (OURS, None, True),
        (OURS, True, True),
        (OURS, False, False),
        (HEADER, None, True),
        (HEADER, True, True),
        (HEADER, False, False),
    ],
)
def test_who_decides_whether_a_payload_is_captured(statement, runtime_payloads, captured):
    plan = plan_of(kernel(statement), runtime_payloads=runtime_payloads)
    (event,), (site,) = plan.events, plan.sites
    assert event.declared.name == "i32"
    assert (event.payload is event.declared) is captured
    assert (site.form is not PayloadForm.UNUSED) is captured


def test_an_event_captured_in_one_place_only_is_an_error():
    found = failure(kernel(TILELANG + "\n" + HEADER), PlanError)
    assert "the payload of 'a' is captured in one place and not in another" in found
    assert "fix: set runtime_payloads" in found
    assert plan_of(kernel(TILELANG + "\n" + HEADER), runtime_payloads=True).events[0].payload


@pytest.mark.parametrize("expression", ["n++", "x = 3", "f(n -= 1)"])
def test_a_side_effect_in_a_payload_that_is_not_captured_is_an_error(expression):
    text = kernel(f'IKET_MARK("a", IKET_I32({expression}));')
    found = failure(text, PlanError, runtime_payloads=False)
    assert place_and_caret(found) == ("2:25", expression)
    assert "fix: move the side effect to a statement of its own, or capture payloads" in found
    (warning,) = rewrite(text).warnings
    assert "the payload changes something, and only where events are recorded" in warning.message


def test_what_may_have_a_side_effect_is_dropped_with_a_warning():
    result = rewrite(kernel('IKET_MARK("a", IKET_I32(next<1>(n)));'), runtime_payloads=False, path="k.cu")
    (warning,) = result.warnings
    assert str(warning).startswith("k.cu:2:25: warning: the payload is not captured and is dropped; whether")
    assert rewrite(kernel('IKET_MARK("a", IKET_I32(next<1>(n)));')).warnings == ()


def test_a_payload_without_effects_is_dropped_in_silence():
    assert rewrite(kernel(TILELANG)).warnings == ()


@pytest.mark.parametrize(
    ("payload", "form", "constant"),
    [
        ("IKET_I32(threadIdx.x)", PayloadForm.ELECTED, False),
        ("IKET_I32(n)", PayloadForm.UNIFORM, False),
        ("IKET_I32(3)", PayloadForm.UNIFORM, True),
        ("3", PayloadForm.UNIFORM, True),
        ("IKET_I32(f(n))", PayloadForm.ELECTED, False),
        ("IKET_I32(n++)", PayloadForm.ELECTED, False),
    ],
)
def test_the_form_follows_what_is_known_of_the_payload(payload, form, constant):
    (site,) = plan_of(kernel(f'IKET_MARK("a", {payload});')).sites
    assert (site.form, site.constant) == (form, constant)


@pytest.mark.parametrize(
    ("name", "long_names"),
    [("x" * 31, False), ("x" * 32, False), ("x" * 33, True), ("é" * 16, False), ("é" * 17, True)],
)
def test_one_name_that_does_not_fit_makes_all_long(name, long_names):
    assert plan_of(kernel(f'IKET_MARK("a"); IKET_RANGE("{name}");')).long_names is long_names


def test_sites_say_where_they_stand_and_in_what():
    text = '__global__ void first() {\r\n  IKET_MARK("a"); }\r\n__device__ void f() { IKET_RANGE_POP(); }\r\n'
    sites = plan_of(text, path="dir/k.cu").sites
    assert [(str(site.place), site.kernel) for site in sites] == [("dir/k.cu:2:3", "first"), ("dir/k.cu:3:23", None)]


def test_plans_share_a_digest_only_if_they_give_the_same_ids():
    base = plan_of(kernel('IKET_MARK("a"); IKET_RANGE("b", 1);'))
    same = plan_of(kernel('  IKETR_MARK("a");\n\nIKET_RANGE_PUSH("b", IKET_I32(n)); IKET_RANGE_POP();'))
    others = [
        'IKET_RANGE("b", 1); IKET_MARK("a");',
        'IKET_MARK("a"); IKET_RANGE("b", 1.5);',
        'IKET_MARK("a"); IKET_RANGE("b", 1, IKET_COLOR(3));',
        'IKET_MARK("a"); IKET_RANGE_START("b", 1);',
        'IKET_MARK("a"); IKET_RANGE("c", 1);',
        'IKET_MARK("a");',
    ]
    assert base.digest == same.digest
    digests = {plan_of(kernel(text)).digest for text in others} | {base.digest}
    assert len(digests) == len(others) + 1
    assert all(len(digest) == 16 for digest in digests)


def test_a_plan_can_not_be_changed():
    plan = plan_of(kernel('IKET_MARK("a");'))
    for thing, field in (
        (plan, "events"),
        (plan.events[0], "id"),
        (plan.sites[0], "kernel"),
        (plan.sites[0].place, "line"),
    ):
        with pytest.raises(AttributeError):
            setattr(thing, field, None)


def test_kinds_of_events_are_those_of_the_contract():
    kinds = [event.kind for event in plan_of(kernel('IKET_MARK("a"); IKET_RANGE("b"); IKET_RANGE_END("c");')).events]
    assert kinds == [EventKind.MARK, EventKind.RANGE, EventKind.TOKEN_RANGE]
