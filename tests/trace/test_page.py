# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser, on real captures.  What is expected is worked out here from the plain JSON."""

from __future__ import annotations

import re
import statistics
import struct
from collections import Counter

import pytest
from browser import CHROMIUM, open_browser
from made_traces import TOKEN, Maker, launches, plain, real

import iket_rewrite
from iket_rewrite.tracing.align import align
from iket_rewrite.tracing.page import render_page

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium on this machine (apt-get install chromium)"
)
GEMM, ALL, CLUSTERS, TIRX = "tilelang_gemm_sm90a", "native_all_payloads", "clusters_divergence_graph", "tirx_affine"
BASE = 1_800_000_000_000_000_000
TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture
def open_page(browser, tmp_path):
    """Return a function that opens the page of a trace; in the end no error and no request may have happened."""
    opened, errors, requests = [], [], []

    def open_it(trace, *, watched=True, size=(1440, 900), options=None, **context):
        if isinstance(trace, str):
            trace = iket_rewrite.load_trace(real(trace))
        file = tmp_path / "page.html"
        file.write_text(render_page(trace, **(options or {})), encoding="utf-8")
        made = browser.new_context(viewport={"width": size[0], "height": size[1]}, offline=True, **context)
        page = made.new_page()
        opened.append(made)
        if watched:
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
            page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_function("performance.getEntriesByName('iket-ready').length")
        return page

    yield open_it
    for made in opened:
        made.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def made(maker, tmp_path):
    return iket_rewrite.load_trace(maker.write(tmp_path / "made.trace.json"))


def durations(launch, names, name):
    return sorted(one["endTs"] - one["startTs"] for one in launch["ranges"] if names[one["rangeNameIdx"]] == name)


def quantile(values, share):
    place = (len(values) - 1) * share
    low = int(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def cells(page):
    """Return the table that is shown: by row and column title, the exact values."""
    return page.evaluate(
        """() => {
          const titles = [...document.querySelectorAll("#table thead button")].map((one) => one.firstChild.data);
          return Object.fromEntries([...document.querySelectorAll("#table tbody tr")].map((row) => [
            row.querySelector(".name")?.textContent ?? row.cells[0].textContent,
            Object.fromEntries([...row.cells].map((cell, at) => [titles[at], cell.dataset.value ?? cell.innerText])),
          ]));
        }"""
    )


def column(page, title):
    return page.evaluate(
        """(title) => {
          const titles = [...document.querySelectorAll("#table thead button")].map((one) => one.firstChild.data);
          const at = titles.indexOf(title);
          return [...document.querySelectorAll("#table tbody tr")].map((row) => row.cells[at].innerText);
        }""",
        title,
    )


def find(page, kind, launch, document, record):
    """Return the page's number of a record of the file."""
    place = document["locationTable"][record["locIdx"] if kind == "marker" else record["warpLocIdxs"][0]]
    key = "markerNameIdx" if kind == "marker" else "rangeNameIdx"
    stamps = ["startTs", "endTs", "timestamp"]
    first = min(
        one[stamp]
        for part in ("ranges", "markers", "warpLifetimes")
        for one in launch[part]
        for stamp in stamps
        if stamp in one
    )
    start = record["timestamp" if kind == "marker" else "startTs"] - first
    length = 0 if kind == "marker" else record["endTs"] - record["startTs"]
    wanted = [document["stringTable"][record[key]], start, length, *place["ctaId"], place["warpId"], place["smId"]]
    found = page.evaluate(
        """([kind, wanted]) => {
          const { launch, page } = iket, rows = [];
          const count = kind === "marker" ? launch.markerCount : launch.rangeCount;
          for (let row = 0; row < count; row++) {
            const warp = launch.warpOf({ kind, row }), [from] = launch.timesOf({ kind, row });
            const length = kind === "marker" ? 0 : launch.duration[row];
            const name = page.styles[launch.styleOf({ kind, row })].name;
            const { cta, id, sm } = launch.warps;
            const here = [name, from, length, ...cta.slice(3 * warp, 3 * warp + 3), id[warp], sm[warp]];
            if (String(here) === String(wanted)) rows.push(row);
          }
          return rows;
        }""",
        [kind, wanted],
    )
    assert found, wanted
    return found[0]


def middle(page, kind, row):
    box = page.evaluate("([kind, row]) => iket.boxOf(kind, row)", [kind, row])
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def details(page):
    labels, texts = page.locator("#details dt").all_inner_texts(), page.locator("#details dd").all_inner_texts()
    return page.locator("#details h3").inner_text().strip(), dict(zip(labels, texts, strict=True))


def view(page):
    return page.evaluate("iket.view")


def bright(page):
    """Return which ranges are bright."""
    return page.evaluate("Array.from({ length: iket.launch.rangeCount }, (_, row) => iket.isBright('range', row))")


def settle(page):
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


# --- Numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [GEMM, ALL, TIRX, "extended_36_events"])
def test_the_table_says_what_the_file_says(open_page, name):
    document = plain(name)
    (launch,), names = launches(document), document["stringTable"]
    shown = cells(open_page(name))
    assert set(shown) == {names[one["rangeNameIdx"]] for one in launch["ranges"]}
    for range_name, row in shown.items():
        values = durations(launch, names, range_name)
        assert int(row["count"]) == len(values)
        assert (int(row["total"]), int(row["min"]), int(row["max"])) == (sum(values), values[0], values[-1])
        assert float(row["mean"]) == pytest.approx(statistics.fmean(values))
        assert float(row["median"]) == pytest.approx(statistics.median(values))
        assert float(row["p95"]) == pytest.approx(quantile(values, 0.95))
        users = {one["warpLocIdxs"][0] for one in launch["ranges"] if names[one["rangeNameIdx"]] == range_name}
        assert int(row["warps"]) == len(users)


def test_times_of_a_column_have_one_unit_and_stand_right(open_page):
    page = open_page(GEMM)
    values = durations(launches(plain(GEMM))[0], plain(GEMM)["stringTable"], "mma")
    assert column(page, "mean")[0] == f"{statistics.fmean(values):.1f}"
    assert column(page, "total")[0] == f"{sum(values) / 1000:.3f}"
    heads = page.locator("#table thead th").all_inner_texts()
    assert [head for head in heads if head.startswith("total")] == ["total µs"]
    cell = page.locator("#table tbody tr").first.locator("td").first
    assert cell.evaluate("one => getComputedStyle(one).textAlign") == "right"
    assert cell.evaluate("one => getComputedStyle(one).fontVariantNumeric") == "tabular-nums"


def test_facts_of_the_launch(open_page):
    page = open_page(GEMM)
    facts = dict(
        zip(page.locator("#facts dt").all_inner_texts(), page.locator("#facts dd").all_inner_texts(), strict=True)
    )
    assert facts["grid"] == f"4 {TIMES} 4 {TIMES} 1"
    assert facts["block"] == f"384 {TIMES} 1 {TIMES} 1"
    assert (facts["ranges"], facts["markers"], facts["warps"]) == ("2,176", "192", "192")
    assert facts["duration"] == "6.56 µs"


def test_launches_of_one_kernel_are_counted_alone_and_together(open_page):
    document = plain(CLUSTERS)
    page = open_page(CLUSTERS)
    everything = launches(document)
    first = {one["kernelName"] for one in everything}
    assert first == {"clustered", "divergent"}
    for number, launch in enumerate(everything):
        page.select_option("#launch", str(number))
        page.click("#tab-ranges")
        shown = cells(page)
        for name, row in shown.items():
            assert int(row["count"]) == len(durations(launch, document["stringTable"], name))
        page.click("#tab-all")
        for name, row in cells(page).items():
            alike = [one for one in everything if one["kernelName"] == launch["kernelName"]]
            assert int(row["total"]) == sum(sum(durations(one, document["stringTable"], name)) for one in alike)


# --- Hover, click, details -----------------------------------------------------------------------------------


def test_a_click_shows_what_the_file_says_of_a_range(open_page):
    document = plain(GEMM)
    (launch,) = launches(document)
    page = open_page(GEMM)
    chosen = [one for one in launch["ranges"] if document["locationTable"][one["warpLocIdxs"][0]]["smId"] == 0]
    for record in (chosen[0], chosen[40], max(chosen, key=lambda one: one["endTs"] - one["startTs"])):
        row = find(page, "range", launch, document, record)
        page.keyboard.press("0")
        settle(page)
        page.mouse.click(*middle(page, "range", row))
        title, said = details(page)
        place = document["locationTable"][record["warpLocIdxs"][0]]
        assert title == document["stringTable"][record["rangeNameIdx"]]
        length = record["endTs"] - record["startTs"]
        assert re.sub(r".*\(|[,)]", "", said["duration"]) == f"{length} ns"
        assert said["warp"] == f"{place['warpId']} of CTA ({','.join(map(str, place['ctaId']))})"
        assert said["runs on"] == f"SM {place['smId']}, TPC {place['tpcId']}, GPC {place['gpcId']}"
        payload = record["internalEvents"][0]
        assert said.get("payload") == (f"{payload['payloadVal']} (i32)" if payload.get("payloadType") else None)
        assert ("beware" in said) == (length <= 32)
        assert page.evaluate("iket.selected") == {"kind": "range", "row": row}


def expected_payload(kind, bits):
    """Return a payload as text, by its type's number: from the runtime's list of types."""
    widths = {
        1: ("b", 8),
        2: ("B", 8),
        3: ("h", 16),
        4: ("H", 16),
        5: ("i", 32),
        6: ("I", 32),
        7: ("q", 64),
        16: ("Q", 64),
    }
    if kind in widths:
        code, width = widths[kind]
        return struct.unpack(f"<{code}", bits.to_bytes(width // 8, "little"))[0]
    code, width = {13: ("f", 32), 14: ("d", 64)}[kind]
    return struct.unpack(f"<{code}", bits.to_bytes(width // 8, "little"))[0]


def test_payloads_of_every_type_are_shown_as_values(open_page):
    document = plain(ALL)
    (launch,) = launches(document)
    page = open_page(ALL)
    seen = set()
    for record in launch["markers"]:
        kind = record.get("payloadType", 0)
        if kind in seen or not kind:
            continue
        seen.add(kind)
        row = find(page, "marker", launch, document, record)
        for _ in range(20):
            # Several markers fall into one tick: each click chooses the next of them.
            page.mouse.click(*middle(page, "marker", row))
            if page.evaluate("iket.selected.row") == row:
                break
        title, said = details(page)
        assert title == document["stringTable"][record["markerNameIdx"]]
        value, _, type_name = said["payload"].partition(" ")
        assert float(value) == pytest.approx(expected_payload(kind, record["payloadVal"]), rel=1e-6)
        if kind not in (13, 14):
            assert int(value) == expected_payload(kind, record["payloadVal"])
        assert type_name == f"({title})" or title not in (
            "i8",
            "u8",
            "i16",
            "u16",
            "i32",
            "u32",
            "i64",
            "u64",
            "f32",
            "f64",
        )
    assert len(seen) >= 10


def test_hover_tells_and_leaves(open_page):
    document = plain(TIRX)
    (launch,) = launches(document)
    page = open_page(TIRX)
    tip = page.locator("#tip")
    assert not tip.is_visible()
    page.mouse.move(*middle(page, "range", find(page, "range", launch, document, launch["ranges"][0])))
    assert tip.inner_text().split("\n") == ["affine", "192 ns", "SM 124, CTA 0,0,0, warp 0"]
    x, y = middle(page, "marker", 0)
    page.mouse.move(x, y)
    assert tip.inner_text().split("\n")[:2] == ["loaded", "at 160 ns"]
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_a_warps_life_can_be_pointed_at(open_page):
    page = open_page(TIRX)
    box = page.evaluate("iket.boxOf('warp', 0)")
    page.mouse.click(box["x"] + 4, box["y"] + 8)
    title, said = details(page)
    life = launches(plain(TIRX))[0]["warpLifetimes"][0]
    assert title == "warp 0"
    assert said["lifetime"] == f"{life['endTs'] - life['startTs']} ns"


def test_source_lines_come_from_the_event_table(open_page, tmp_path):
    table = {
        "schema": 1,
        "events": [{"id": 1, "kind": "range", "name": "affine", "payload": None, "declared": None}],
        "sites": [
            {
                "event": 1,
                "kind": "range_push",
                "name": "affine",
                "file": "affine.cu",
                "line": 17,
                "column": 3,
                "kernel": None,
            }
        ],
    }
    page = open_page(iket_rewrite.load_trace(real(TIRX), events=table))
    page.mouse.move(*middle(page, "range", 0))
    assert "affine.cu:17" in page.locator("#tip").inner_text()
    page.mouse.click(*middle(page, "range", 0))
    assert details(page)[1]["source"] == "affine.cu:17"


def test_both_payloads_of_a_range_and_a_pointer(open_page, tmp_path):
    maker = Maker().life(BASE, BASE + 640)
    maker.range("copy", BASE + 64, BASE + 512, kind=TOKEN, payload=(5, 7), last=(15, 0x7F00DEADBEEF))
    page = open_page(made(maker, tmp_path))
    page.mouse.click(*middle(page, "range", 0))
    said = details(page)[1]
    assert (said["payload"], said["payload at the end"]) == ("7 (i32)", "0x7f00deadbeef (pointer)")
    assert said["kind"] == "range, started and ended"


# --- Search, sort, highlight, histogram ----------------------------------------------------------------------


def test_search_counts_steps_and_lets_go(open_page):
    document = plain(GEMM)
    count = len(durations(launches(document)[0], document["stringTable"], "epilogue"))
    page = open_page(GEMM)
    page.keyboard.press("/")
    page.keyboard.type("EPI")
    assert page.locator("#matches").inner_text() == str(count)
    page.keyboard.press("Enter")
    assert page.locator("#matches").inner_text() == f"1 of {count}"
    first = page.evaluate("iket.launch.start[iket.selected.row]")
    page.keyboard.press("Enter")
    assert page.locator("#matches").inner_text() == f"2 of {count}"
    assert page.evaluate("iket.launch.start[iket.selected.row]") >= first
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    assert page.locator("#matches").inner_text() == f"{count} of {count}"
    settle(page)
    box, rows = page.evaluate("iket.boxOf('range', iket.selected.row)"), page.locator("#rows").bounding_box()
    assert rows["y"] <= box["y"] <= rows["y"] + rows["height"]
    assert details(page)[0] == "epilogue"
    shown = bright(page)
    assert sum(shown) == count
    page.keyboard.press("Escape")
    assert page.locator("#search").input_value() == ""
    assert page.evaluate("iket.isBright('range', 0)")
    assert page.evaluate("document.activeElement.id") == "timeline"


def test_a_search_finds_markers_and_says_when_there_is_nothing(open_page):
    page = open_page(GEMM)
    page.fill("#search", "enter")
    assert page.locator("#matches").inner_text() == "192"
    page.keyboard.press("Enter")
    assert page.evaluate("iket.selected.kind") == "marker"
    page.fill("#search", "no such thing")
    assert page.locator("#matches").inner_text() == "none"


def test_the_table_sorts_by_every_column_both_ways(open_page):
    page = open_page(GEMM)
    for title in ("count", "total", "mean", "p95", "min"):
        head = page.locator("#table thead th", has_text=title)
        for state, sign in (("descending", -1), ("ascending", 1)):
            head.get_by_role("button").click()
            assert head.get_attribute("aria-sort") == state
            values = [float(row[title]) for row in cells(page).values()]
            assert values == sorted(values, key=lambda value: sign * value)
    head = page.locator("#table thead th").first
    head.get_by_role("button").click()
    assert list(cells(page)) == sorted(cells(page))
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"


def test_a_row_highlights_its_ranges(open_page):
    document = plain(GEMM)
    (launch,) = launches(document)
    page = open_page(GEMM)
    button = page.get_by_role("button", name="copy")
    button.click()
    names = page.evaluate("Array.from(iket.launch.rangeStyle, (style) => iket.page.styles[style].name)")
    shown = bright(page)
    assert [name == "copy" for name in names] == shown
    assert sum(shown) == len(durations(launch, document["stringTable"], "copy"))
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert page.evaluate("iket.isBright('range', 0) && iket.isBright('range', 1)")


def test_the_histogram_counts_what_the_file_holds(open_page):
    document = plain(GEMM)
    values = durations(launches(document)[0], document["stringTable"], "mma")
    page = open_page(GEMM)
    page.get_by_role("button", name="mma").click()
    bars = page.evaluate(
        "[...document.querySelectorAll('.histogram rect')].map(({ dataset }) => [+dataset.low, +dataset.count])"
    )
    assert bars == [list(bar) for bar in sorted(Counter(values).items())]
    caption = page.locator("#histogram .caption").inner_text()
    assert f"{len(values):,} {TIMES} mma" in caption
    assert f"median {statistics.median(values):g} ns" in caption
    low, count = max(bars)
    page.locator(f".histogram rect[data-low='{low}']").press("Enter")
    shown = bright(page)
    lengths = page.evaluate("Array.from(iket.launch.duration)")
    assert [length for length, on in zip(lengths, shown, strict=True) if on] == [low] * count


def test_roles_and_payloads_highlight_their_part(open_page):
    document = plain(GEMM)
    (launch,) = launches(document)
    page = open_page(GEMM)
    page.click("#tab-payload")
    rows = page.evaluate(
        """() => [...document.querySelectorAll("#table tbody tr")].map((row) =>
          [...row.cells].slice(0, 3).map((cell) => cell.innerText.trim()))"""
    )
    name, payload, count = next(row for row in rows if row[0] == "mma")
    page.locator("#table tbody tr", has_text="mma").first.get_by_role("button").click()
    expected = [
        one
        for one in launch["ranges"]
        if document["stringTable"][one["rangeNameIdx"]] == name
        and str(one["internalEvents"][0].get("payloadVal")) == payload
    ]
    assert sum(bright(page)) == len(expected) == int(count)
    page.click("#tab-role")
    assert "warps 4-11" in page.locator("#table tbody").inner_text()


# --- Zoom, pan, keys -----------------------------------------------------------------------------------------


def test_the_wheel_zooms_around_the_pointer(open_page):
    page = open_page(GEMM)
    x, y = middle(page, "range", 200)
    page.mouse.move(x, y)
    before = view(page)
    page.mouse.wheel(0, -200)
    settle(page)
    after = view(page)
    assert after["until"] - after["from"] < 0.8 * (before["until"] - before["from"])
    assert middle(page, "range", 200)[0] == pytest.approx(x, abs=0.5)
    for _ in range(40):
        page.mouse.wheel(0, -200)
    settle(page)
    closest = view(page)
    assert closest["until"] - closest["from"] == pytest.approx(16)
    for _ in range(80):
        page.mouse.wheel(0, 200)
    settle(page)
    assert [view(page)[end] for end in ("from", "until")] == pytest.approx([before["from"], before["until"]])


def test_two_fingers_zoom(open_page):
    page = open_page(GEMM, has_touch=True)
    before = view(page)
    box = page.locator("#timeline").bounding_box()
    y = box["y"] + 200
    client = page.context.new_cdp_session(page)

    def touch(kind, *places):
        points = [{"x": box["x"] + x, "y": y, "id": number} for number, x in enumerate(places)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 400, 500)
    for step in range(10):
        touch("touchMove", 400 - 10 * step, 500 + 10 * step)
    touch("touchEnd")
    settle(page)
    after = view(page)
    assert after["until"] - after["from"] == pytest.approx((before["until"] - before["from"]) * 100 / 280, rel=0.1)


def test_control_and_wheel_zoom_as_touchpads_do(open_page):
    page = open_page(GEMM)
    before = view(page)
    page.mouse.move(*middle(page, "range", 200))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -30)
    page.keyboard.up("Control")
    settle(page)
    after = view(page)
    assert (after["until"] - after["from"]) / (before["until"] - before["from"]) == pytest.approx(0.74, abs=0.02)


def test_dragging_moves_time_and_rows_and_is_no_click(open_page):
    page = open_page(GEMM)
    for _ in range(3):
        page.keyboard.press("+")
    settle(page)
    before, (x, y) = view(page), (500, 500)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y - 40, steps=5)
    page.mouse.up()
    settle(page)
    after = view(page)
    pixel = (before["until"] - before["from"]) / (page.locator("#timeline").bounding_box()["width"] - 148)
    assert after["from"] - before["from"] == pytest.approx(60 * pixel, rel=0.02)
    assert after["top"] == before["top"] + 40
    assert page.evaluate("iket.selected") is None


def test_shift_and_drag_zoom_to_a_span(open_page):
    page = open_page(GEMM)
    page.keyboard.down("Shift")
    page.mouse.move(300, 400)
    page.mouse.down()
    page.mouse.move(500, 420, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    settle(page)
    pixels = page.locator("#timeline").bounding_box()["width"] - 148
    span = 6560 * 1.04
    assert view(page)["until"] - view(page)["from"] == pytest.approx(span * 200 / pixels, rel=0.02)


def test_keys_move_zoom_and_walk_from_range_to_range(open_page):
    page = open_page(GEMM)
    whole = view(page)
    page.locator("#timeline").focus()
    page.keyboard.press("+")
    settle(page)
    near = view(page)
    assert (near["until"] - near["from"]) * 1.5 == pytest.approx(whole["until"] - whole["from"])
    page.keyboard.press("ArrowRight")
    settle(page)
    assert view(page)["from"] > near["from"]
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert view(page)["from"] == pytest.approx(near["from"])
    page.keyboard.press("ArrowDown")
    settle(page)
    assert view(page)["top"] == 60
    page.keyboard.press("0")
    settle(page)
    assert view(page)["until"] == pytest.approx(whole["until"])
    page.keyboard.press("Shift+ArrowRight")
    first = page.evaluate("iket.selected")
    page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate("iket.selected") == {"kind": "range", "row": first["row"] + 1}
    page.keyboard.press("Shift+ArrowLeft")
    assert page.evaluate("iket.selected") == first
    page.keyboard.press("Shift+ArrowDown")
    other = page.evaluate("[iket.selected, iket.launch.warpOf(iket.selected)]")
    assert other[1] == page.evaluate("(item) => iket.launch.warpOf(item)", first) + 1
    assert details(page)[0] in page.locator("#said").inner_text()
    page.keyboard.press("f")
    settle(page)
    box = page.evaluate("iket.boxOf('range', iket.selected.row)")
    assert box["width"] > 300
    page.keyboard.press("Escape")
    assert page.evaluate("iket.selected") is None


def test_everything_can_be_reached_by_tab_and_shows_its_focus(open_page):
    page = open_page(GEMM)
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        now = page.evaluate(
            """() => {
              const one = document.activeElement, style = getComputedStyle(one);
              const name = one.id || one.innerText.trim().split("\\n")[0];
              return [name, style.outlineStyle, parseFloat(style.outlineWidth)];
            }"""
        )
        if now[0] in seen or page.evaluate("document.activeElement === document.body"):
            break
        assert now[1] != "none", now
        assert now[2] >= 2, now
        seen.append(now[0])
    assert {
        "launch",
        "search",
        "level-3",
        "zoom-in",
        "theme",
        "open-help",
        "timeline",
        "splitter",
        "tab-ranges",
    } <= set(seen)
    assert "mma" in seen


def test_help_opens_and_closes(open_page):
    page = open_page(TIRX)
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


# --- Rows and launches ---------------------------------------------------------------------------------------


def test_rows_of_sms_ctas_and_warps(open_page, tmp_path):
    maker = Maker(grid=4, block=64, sms=2)
    for cta in range(4):
        for warp in range(2):
            maker.life(BASE, BASE + 1000, warp=(cta, warp)).range("work", BASE + 100, BASE + 900, warp=(cta, warp))
    page = open_page(made(maker, tmp_path))
    rows = "page => Array.from(new Set(Array.from({ length: 8 }, (_, row) => iket.boxOf('range', row).y))).length"
    for key, count in (("3", 8), ("2", 8), ("1", 8)):
        page.keyboard.press(key)
        settle(page)
        assert page.evaluate(rows) == count
        for row in range(8):
            x, y = middle(page, "range", row)
            page.mouse.move(x, y)
            place = page.evaluate("(row) => iket.launch.place(iket.launch.warpOf({ kind: 'range', row }))", row)
            assert place in page.locator("#tip").inner_text()
    # A click on the label opens the SM.
    box = page.locator("#timeline").bounding_box()
    before = page.evaluate("iket.boxOf('range', 7).y")
    page.mouse.click(box["x"] + 40, box["y"] + 40)
    settle(page)
    assert page.evaluate("iket.boxOf('range', 7).y") > before


def test_the_chooser_goes_through_all_launches(open_page):
    document = plain(CLUSTERS)
    page = open_page(CLUSTERS)
    options = page.locator("#launch option").all_inner_texts()
    assert len(options) == len(launches(document)) == 6
    assert [text for text in options if "graph_exec_2:1" in text]
    for number, launch in enumerate(launches(document)):
        assert page.locator("#launch").input_value() == str(number)
        assert page.evaluate("[iket.launch.rangeCount, iket.launch.markerCount]") == [
            len(launch["ranges"]),
            len(launch["markers"]),
        ]
        if number < 5:
            page.click("#next") if number % 2 else page.keyboard.press("]")
    assert page.locator("#next").is_disabled()
    page.keyboard.press("[")
    assert page.locator("#launch").input_value() == "4"


def test_launches_of_several_processes_stand_apart_and_the_alignment_is_said(open_page, tmp_path):
    files = []
    for rank, shift in enumerate((0, 7_000_000)):
        zero = BASE + shift
        maker = Maker().life(zero, zero + 640).range("step", zero + 32 * rank, zero + 320).mark("barrier", zero + 512)
        files.append(maker.write(tmp_path / f"pid_{rank + 1}.trace.json"))
    trace = iket_rewrite.load_trace(files)
    page = open_page(trace)
    groups = page.evaluate("[...document.querySelectorAll('#launch optgroup')].map((one) => one.label)")
    assert groups == ["pid 1", "pid 2"]
    assert "clocks" not in details(page)[1]
    assert "can not be compared" in page.locator("#findings-list").text_content()
    page = open_page(align(trace, "barrier"))
    assert "aligned on marker barrier" in details(page)[1]["clocks"]
    page.keyboard.press("]")
    assert page.evaluate("iket.launch.start[0]") == 32


def test_ranges_are_drawn_where_and_as_long_as_they_were(open_page):
    document = plain(TIRX)
    (launch,) = launches(document)
    page = open_page(TIRX)
    record, life = launch["ranges"][0], launch["warpLifetimes"][0]
    range_box, life_box = page.evaluate("[iket.boxOf('range', 0), iket.boxOf('warp', 0)]")
    scale = life_box["width"] / (life["endTs"] - life["startTs"])
    assert range_box["x"] - life_box["x"] == pytest.approx((record["startTs"] - life["startTs"]) * scale, abs=0.5)
    assert range_box["width"] == pytest.approx((record["endTs"] - record["startTs"]) * scale - 1, abs=0.5)
    colors = page.evaluate(
        """(box) => {
          const canvas = document.getElementById("timeline"), place = canvas.getBoundingClientRect();
          const pen = canvas.getContext("2d"), ratio = canvas.width / place.width;
          const y = (box.y - place.y + 3) * ratio;
          const at = (x) => [...pen.getImageData((x - place.x) * ratio, y, 1, 1).data].slice(0, 3);
          return [box.x - 3, box.x + 2, box.x + box.width - 3, box.x + box.width + 4].map(at);
        }""",
        range_box,
    )
    fill = page.evaluate("iket.page.styles[0].fill")
    inside = [int(fill[at : at + 2], 16) for at in (1, 3, 5)]
    assert [color == inside for color in colors] == [False, True, True, False]


# --- Colours and themes --------------------------------------------------------------------------------------


def test_declared_colours_are_used_and_others_are_okabe_and_itos(open_page, tmp_path):
    maker = Maker().life(BASE, BASE + 1000).range("mine", BASE, BASE + 320, rangeColor=0x336699)
    for number in range(9):
        maker.range(f"r{number}", BASE + 320 + 64 * number, BASE + 384 + 64 * number)
    page = open_page(made(maker, tmp_path))
    styles = {one["name"]: one for one in page.evaluate("iket.page.styles")}
    assert styles["mine"]["fill"] == "#336699"
    palette = {"#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}
    assert {styles[f"r{number}"]["fill"] for number in range(7)} == palette
    looks = [(styles[f"r{number}"]["fill"], styles[f"r{number}"]["pattern"]) for number in range(9)]
    assert len(set(looks)) == 9


def contrast(page, selector, behind):
    return page.evaluate(
        """([selector, behind]) => {
          const light = (color) => {
            const parts = color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
            const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const one = light(getComputedStyle(document.querySelector(selector)).color);
          const two = light(getComputedStyle(document.querySelector(behind)).backgroundColor);
          return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
        }""",
        [selector, behind],
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(open_page, scheme):
    page = open_page(GEMM, color_scheme=scheme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every((one) => one < 60)")
    assert dark == (scheme == "dark")
    assert contrast(page, "body", "#side") > 10
    for selector, behind in (("#facts dt", "#stage"), ("#table thead button", "#side"), ("footer", "#stage")):
        assert contrast(page, selector, behind) > 4.5
    assert contrast(page, "#findings summary", "#findings summary") > 4.5


def test_the_theme_is_switched_and_kept(open_page):
    page = open_page(TIRX, color_scheme="light")
    shades = []
    for _ in range(3):
        page.keyboard.press("d")
        shades.append(
            page.evaluate("[document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]")
        )
    assert [theme for theme, _ in shades] == ["light", "dark", "auto"]
    assert shades[0][1] == shades[2][1] != shades[1][1]
    page.keyboard.press("d")
    page.click("#theme")
    page.reload()
    page.wait_for_function("performance.getEntriesByName('iket-ready').length")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize(("limit", "said"), [(500, "drawn warps, of 36"), (9999, "warps alive, of 192")])
def test_the_strip_says_whether_it_counts_what_is_drawn_only(open_page, limit, said):
    page = open_page(GEMM, options={"limit": limit})
    written = page.evaluate(
        """async () => {
          const seen = [], pen = CanvasRenderingContext2D.prototype, old = pen.fillText;
          pen.fillText = function (text, ...rest) { seen.push(text); return old.call(this, text, ...rest); };
          document.getElementById("zoom-in").click();
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return seen;
        }"""
    )
    assert said in written


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_theme_has_all_the_colours(open_page, scheme):
    """The system's dark, the chosen dark, and light: as many pairs of different colours as there are names."""
    read = """() => [...document.styleSheets[1].cssRules[0].style].map((name) =>
      getComputedStyle(document.documentElement).getPropertyValue(name))"""
    page = open_page(TIRX, color_scheme=scheme)
    seen = {"auto": page.evaluate(read)}
    for theme in ("light", "dark"):
        page.keyboard.press("d")
        seen[theme] = page.evaluate(read)
    assert seen["auto"] == seen[scheme]
    assert len(seen["dark"]) > 15
    assert all(light != dark for light, dark in zip(seen["light"], seen["dark"], strict=True))


def test_a_trace_without_launches_says_so_and_draws_nothing(open_page, tmp_path):
    path = tmp_path / "t.trace.json"
    path.write_text('{"launches": []}')
    page = open_page(iket_rewrite.load_trace(path))
    shown = page.locator("body").inner_text()
    assert "No events were recorded" in shown
    assert "the trace holds no launch" in page.locator("#findings").text_content()
    assert "Durations" not in shown
    assert not page.locator("#timeline").is_visible()
    assert not page.locator("#overview").is_visible()


# --- What must not happen ------------------------------------------------------------------------------------

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "<!--<script>",
    "\" autofocus onfocus='window.hacked = 1' x=\"",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:window.hacked=1",
    "\u2028\u202e&lt;b&gt;",
]


def test_markup_in_names_is_shown_and_never_runs(open_page, tmp_path):
    maker = Maker(kernel=HOSTILE[0]).life(BASE, BASE + 10_000)
    for number, name in enumerate(HOSTILE):
        maker.range(name, BASE + 1000 * number, BASE + 1000 * number + 900)
        maker.mark(name, BASE + 1000 * number + 100)
    file = maker.write(tmp_path / "<img src=x onerror=window.hacked=1>.trace.json")
    trace = iket_rewrite.load_trace(file)
    page = open_page(trace, options={"title": HOSTILE[0]})
    assert page.locator("h1").inner_text() == HOSTILE[0]
    for number, name in enumerate(HOSTILE):
        page.mouse.move(*middle(page, "range", number))
        page.mouse.click(*middle(page, "range", number))
        assert page.locator("#details h3").inner_text().strip() == name.strip()
    page.click("#tab-markers")
    page.locator("#table tbody button").first.click()
    page.fill("#search", HOSTILE[1])
    page.keyboard.press("Enter")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 2 + len(trace.launches)
    assert page.locator("#launch option").inner_text().startswith("#0 </script>")


def test_the_policy_lets_nothing_else_run_and_nothing_be_fetched(open_page):
    page = open_page(TIRX, watched=False)
    blocked = page.evaluate(
        """async () => {
          const found = [];
          document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.hacked = 1";
          document.body.append(script);
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          document.body.append(style);
          await fetch("https://example.com/").catch(() => {});
          new Image().src = "https://example.com/x.png";
          await new Promise((done) => setTimeout(done, 100));
          return found;
        }"""
    )
    assert {"script-src-elem", "style-src-elem", "connect-src", "img-src"} <= set(blocked)
    assert page.evaluate("window.hacked") is None


def test_odd_records_are_drawn_and_said(open_page, tmp_path):
    maker = Maker(grid=2, block=64)
    maker.life(BASE, BASE + 2000).range("back", BASE + 500, BASE + 400).range("empty", BASE + 600, BASE + 600)
    maker.range("one", BASE + 700, BASE + 1100).range("two", BASE + 900, BASE + 1300)
    maker.range("silent", BASE + 100, BASE + 300, warp=(1, 0)).mark("m", BASE + 50, warp=(1, 1))
    page = open_page(made(maker, tmp_path))
    said = {}
    for row in range(page.evaluate("iket.launch.rangeCount")):
        page.mouse.click(*middle(page, "range", row))
        title, lines = details(page)
        said[title] = lines.get("beware", "")
    assert "before it begins" in said["back"]
    assert "one tick" in said["empty"]
    assert any("without nesting" in said[name] for name in ("one", "two"))
    page.mouse.click(*middle(page, "warp", page.evaluate("iket.launch.warpCount - 1")))
    assert "no lifetime" in details(page)[1].get("beware", "")
    assert page.locator("#findings").is_visible()


# --- Much and nothing ----------------------------------------------------------------------------------------


def test_what_is_left_out_is_said(open_page):
    page = open_page(GEMM, options={"limit": 500})
    note = page.locator("#left").inner_text()
    drawn, ctas = page.evaluate("[iket.launch.rangeCount, new Set(iket.launch.groups.map((one) => one.key)).size]")
    assert page.locator("#left").is_visible()
    assert f"{ctas} of 16 CTAs" in note
    assert f"{drawn:,} of 2,176 ranges" in note
    assert {name: row["count"] for name, row in cells(page).items()} == {
        "mma": "1024",
        "epilogue": "128",
        "copy": "1024",
    }


def test_the_whole_of_a_small_trace_is_drawn_without_a_note(open_page):
    assert not open_page(GEMM).locator("#left").is_visible()


def test_a_launch_without_events_says_so(open_page, tmp_path):
    maker = Maker().again()
    maker.life(BASE, BASE + 64).range("a", BASE, BASE + 32)
    page = open_page(made(maker, tmp_path))
    assert page.locator("#launch").input_value() == "1"
    assert not page.locator("#empty").is_visible()
    page.select_option("#launch", "0")
    assert page.locator("#empty").is_visible()
    for key in ("+", "0", "3", "ArrowRight", "Shift+ArrowRight", "n", "f", "Escape"):
        page.keyboard.press(key)
    page.keyboard.press("]")
    settle(page)
    assert not page.locator("#empty").is_visible()
    assert page.evaluate("iket.boxOf('range', 0).width") > 10


def test_a_trace_without_launches_says_so(open_page, tmp_path):
    file = tmp_path / "none.trace.json"
    file.write_text(
        '{"launches": [], "graphLaunches": {}, "stringTable": [], "locationTable": [], "meta": {"version": 1}}'
    )
    page = open_page(iket_rewrite.load_trace(file))
    assert page.locator("#empty").is_visible()
    page.keyboard.press("+")


@pytest.mark.parametrize("size", [(800, 700), (1920, 1080), (420, 800)])
def test_it_fits_small_and_large_windows(open_page, size):
    page = open_page(GEMM, size=size)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.getElementById('timeline').clientWidth") > 200
