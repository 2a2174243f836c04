# SPDX-License-Identifier: Apache-2.0
"""The runtime's words, and what a trace file holds: read from lines and files as the runtime writes them."""

from __future__ import annotations

import json
import warnings

import pytest
from toolbox import FIXTURES

import iket_rewrite
from iket_rewrite import CaptureError, CaptureWarning, abi
from iket_rewrite.capturing import budget, checking, contents, failures, messages

HEAD = "[2026-11-29 20:52:22.617] [IketInjectionManager] "
#: As the library of runtime 4.8.1 holds it, with its places filled.
DROPPED = (
    "Trace incomplete: 3 warp record(s) dropped because the warp emitted more events than maxTsCntPerWarp=256 allows "
    "=> kernel: gemm(float*). Raise maxTsCntPerWarp to capture them; a discovery pass reports a suitable value."
)
TRACES = sorted((FIXTURES / "trace").glob("*.trace.json"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (HEAD + "[warning] " + DROPPED, DROPPED),
        (HEAD + "[error] IKET does not support CUDA device 0.", "IKET does not support CUDA device 0."),
        ('IKET profiling operation failed with CUDA error 0100 ("no device").', None),
        (HEAD + "[info] IKET profiling session started.", ""),
        ("[2026-11-29 20:52:22.617] [mine] [error] IKET", ""),
        ("my IKET kernel", ""),
    ],
)
def test_the_runtimes_lines_are_told_from_the_programs(line, words):
    assert messages.words_of(line) == (line if words is None else words or None)


def test_dropped_warps_become_a_warning_with_a_number():
    assert messages.dropped_warps([DROPPED]) == [messages.Dropped("gemm(float*)", 3, 256)]
    with pytest.warns(CaptureWarning, match=r"3 warps of gemm\(float\*\) are missing.*max_events_per_warp=1024"):
        budget.warn_of_dropped([DROPPED])


def test_a_trace_whose_every_warp_was_dropped_is_a_failure_with_a_number():
    launched = contents.Contents(("gemm",), 0, 0, lifetimes=False)
    for said, words in (([DROPPED], "max_events_per_warp=1024"), ([], "max_events_per_warp=a larger number")):
        with pytest.raises(CaptureError, match=words) as caught:
            checking.refuse_empty_session(launched, said, warp_lifetimes_only=False)
        assert caught.value.slug == "too-many-events"


def test_a_buffer_that_is_too_small_is_told_with_the_size():
    said = (
        "IKET trace buffer is too small. Increase the trace buffer size to at least 1073741824 bytes (run-iket: "
        "--context-buffer-size; in-process API: IketProfilingSessionConfig::device_buffer_size)."
    )
    with pytest.raises(CaptureError, match="buffer_bytes=1073741824") as caught:
        checking.refuse_empty_session(contents.Contents((), 0, 0), [said], warp_lifetimes_only=False)
    assert caught.value.slug == "buffer-too-small"


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_look_into_a_file_counts_what_reading_it_counts(path):
    trace = iket_rewrite.load_trace(path)
    seen = contents.look_into(path.read_bytes())
    assert (sorted(seen.kernels), seen.ranges, seen.markers) == (
        sorted(trace.launches.kernel),
        len(trace.ranges),
        len(trace.markers),
    )
    # The session writes the same with indentation.
    pretty = json.dumps(json.loads(path.read_bytes()), indent=2).encode()
    assert contents.look_into(pretty).events == seen.events


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_whole_traces_miss_no_warp(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget.warn_of_missing_warps(iket_rewrite.load_trace(path))


def test_a_trace_that_misses_warps_is_told(tmp_path):
    document = json.loads((FIXTURES / "trace" / "native_all_payloads.trace.json").read_bytes())
    (launch,) = document["launches"]
    gone = launch["warpLifetimes"].pop()["locIdx"]
    launch["markers"] = [one for one in launch["markers"] if one["locIdx"] != gone]
    launch["ranges"] = [one for one in launch["ranges"] if one["warpLocIdxs"][0] != gone]
    (tmp_path / "cut.trace.json").write_text(json.dumps(document))
    with pytest.warns(CaptureWarning, match="1 of 8 warps of k are missing"):
        budget.warn_of_missing_warps(iket_rewrite.load_trace(tmp_path / "cut.trace.json"))


@pytest.mark.parametrize(
    ("cluster", "exists"), [((0, 0, 0), True), ((3, 0, 0), True), ((4, 0, 0), False), ((0, 1, 0), False)]
)
def test_a_cluster_is_looked_for_among_the_blocks(cluster, exists):
    data = (FIXTURES / "trace" / "native_all_payloads.trace.json").read_bytes()
    if exists:
        checking.refuse_other_cluster([data], cluster)
    else:
        with pytest.raises(CaptureError, match="does not exist in k") as caught:
            checking.refuse_other_cluster([data], cluster)
        assert caught.value.slug == "cluster-missing"


def test_a_cluster_that_only_some_kernels_have_is_a_warning():
    data = (FIXTURES / "trace" / "clusters_divergence_graph.trace.json").read_bytes()
    with pytest.warns(CaptureWarning, match="does not exist in divergent"):
        checking.refuse_other_cluster([data], (2, 0, 0))


def test_an_empty_trace_is_a_failure_that_names_its_kernels():
    held = contents.Contents(("vectorized_elementwise", "reduce"), 0, 0)
    with pytest.raises(CaptureError, match="launched were vectorized_elementwise, reduce") as caught:
        checking.refuse_empty_session(held, (), warp_lifetimes_only=False)
    assert caught.value.slug == "not-instrumented"
    checking.refuse_empty_session(held, (), warp_lifetimes_only=True)


def test_every_slug_is_raised_somewhere_and_documented():
    source = (FIXTURES.parent / "iket_rewrite" / "capturing" / "failures.py").read_text(encoding="utf-8")
    for slug in failures.SLUGS:
        assert source.count(f'"{slug}"') >= 2, slug
    page = (FIXTURES.parent / "docs" / "capture.md").read_text(encoding="utf-8")
    assert [slug for slug in failures.SLUGS if f"`{slug}`" not in page] == []


def test_the_first_release_with_sessions_is_the_one_that_failures_name():
    assert abi.SESSION_FIRST_RELEASE in failures.no_sessions("4.7.1").remedy
