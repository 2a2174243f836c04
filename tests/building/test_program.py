# SPDX-License-Identifier: Apache-2.0
"""Programs: which files are read and copied, one plan over all of them, and what is said about bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from building.projects import BASIC, write

import iket_rewrite
from iket_rewrite import AnnotationError, OptionError, PlanError, rewrite_program
from iket_rewrite.building import writing
from iket_rewrite.building.writing import OPTIONS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test has a project folder of its own, and works in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(program: iket_rewrite.Program) -> list[str]:
    return [event.name for event in program.plan.events]


def copies(program: iket_rewrite.Program) -> list[str]:
    return sorted(copy.path for copy in program.copies if copy.original)


def texts(program: iket_rewrite.Program) -> dict[str, str]:
    return {copy.path: copy.data.decode() for copy in program.copies}


MARK = '#include <iket_rewrite/iket.cuh>\n__device__ inline void f() {{ IKET_MARK("{}"); }}\n'


# --- Which files ----------------------------------------------------------------------------------------------


def test_a_chain_over_a_plain_header_with_a_way_up():
    write(BASIC)
    program = rewrite_program(["src/kernel.cu"])
    assert copies(program) == ["include/marks.cuh", "src/kernel.cu", "src/plain.cuh"]
    assert names(program) == ["in helper", "kernel", "traced"]
    assert program.copy_of("src/kernel.cu") == "src/kernel.cu"
    assert program.copy_of("src/other.cuh") is None


def test_originals_stay_as_they_are():
    write(BASIC)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    rewrite_program(["src/kernel.cu"]).write("out")
    assert {path: path.read_bytes() for path in before} == before
    assert (Path("out") / "src" / "kernel.cu").is_file()


def test_every_copy_names_its_original_and_its_lines():
    write(BASIC)
    for path, text in texts(rewrite_program(["src/kernel.cu"])).items():
        if path.endswith("definitions.cuh"):
            continue
        lead, _, rest = text.partition('#line 1 "')
        named, _, body = rest.partition('"\n')
        assert os.path.samefile(named, path)
        assert len(lead.splitlines()) <= 1
        assert body.count("\n") == Path(path).read_text().count("\n")


@pytest.mark.parametrize(
    ("include", "options"),
    [
        ("<deep/marks.cuh>", {"include_dirs": ["include"]}),
        ('"deep/marks.cuh"', {"include_dirs": ["nothing", "include"]}),
        ('"../include/deep/marks.cuh"', {}),
        ('  "marks.cuh"', {"include_dirs": ["include/deep"]}),
    ],
)
def test_quoted_and_angled_includes_are_found(include, options):
    write({"src/k.cu": f"# include {include}\n", "include/deep/marks.cuh": MARK.format("m"), "nothing/x": ""})
    program = rewrite_program(["src/k.cu"], **options)
    assert names(program) == ["m"]
    assert copies(program) == ["include/deep/marks.cuh", "src/k.cu"]


def test_an_include_that_climbs_above_the_project_writes_nothing_outside_the_overlay():
    os.mkdir("project")
    os.chdir("project")
    """A plain header comes from one folder, and another one of its name lies where a copied file's folder leads."""
    text = '#include "../shared/plain.cuh"\n#include "c/d/marks.cuh"\n'
    write(
        {
            "k.cu": text,
            "a/b/x": "",
            "a/shared/plain.cuh": "",
            "c/shared/plain.cuh": "",
            "c/d/marks.cuh": MARK.format("m"),
        }
    )
    program = rewrite_program(["k.cu"], include_dirs=["a/b"])
    assert copies(program) == ["project/c/d/marks.cuh", "project/k.cu", "shared/plain.cuh"]
    (forwarded,) = (text for path, text in texts(program).items() if path == "shared/plain.cuh")
    assert forwarded.strip() == f'#include "{os.path.realpath("a/shared/plain.cuh")}"'


@pytest.mark.parametrize(
    "text",
    [
        '// #include "marks.cuh"\n',
        '/*\n#include "marks.cuh"\n*/\n',
        'const char* text = R"(\n#include "marks.cuh"\n)";\n',
        'const char* text = "#include \\"marks.cuh\\"";\n',
        '#if 0\n#include "marks.cuh"\n#endif\n',
        '#include "missing.cuh"\n',
        "#include <marks.cuh>\n",
        "#include MARKS\n",
    ],
)
def test_what_is_no_include_of_the_file_reaches_nothing(text):
    write({"k.cu": text, "marks.cuh": MARK.format("m")})
    program = rewrite_program(["k.cu"])
    assert (program.changed, names(program), program.copies) == (False, [], ())


def test_an_include_by_a_macro_is_told():
    text = '#define MARKS "marks.cuh"\n#include MARKS\nvoid k() { IKET_MARK("k"); }\n'
    write({"k.cu": text, "marks.cuh": MARK.format("m")})
    program = rewrite_program(["k.cu"])
    assert names(program) == ["k"]
    (warning,) = program.warnings
    assert str(warning).startswith("k.cu:2:1: warning: a macro names this include's file, which is not followed")


def test_a_spliced_include_in_a_branch_is_followed():
    write({"k.cu": '#ifdef X\n#inclu\\\nde /* here */ "marks.cuh"\n#endif\n', "marks.cuh": MARK.format("m")})
    assert names(rewrite_program(["k.cu"])) == ["m"]


def test_headers_of_the_toolkit_and_our_own_are_left_alone():
    write(
        {
            "k.cu": "#include <cuda_runtime.h>\n#include <iket_rewrite/iket.cuh>\n#include <marks.cuh>\n",
            "toolkit/include/cuda_runtime.h": '#include "marks.cuh"\n',
            "toolkit/include/marks.cuh": MARK.format("m"),
        }
    )
    program = rewrite_program(["k.cu"], include_dirs=["toolkit/include", iket_rewrite.include_dir()])
    assert not program.changed


def test_the_first_folder_wins_and_the_file_beside_comes_first():
    write(
        {
            "src/k.cu": '#include "a.cuh"\n#include <a.cuh>\n',
            "src/a.cuh": MARK.format("beside"),
            "one/a.cuh": MARK.format("one"),
            "two/a.cuh": MARK.format("two"),
        }
    )
    assert names(rewrite_program(["src/k.cu"], include_dirs=["one", "two"])) == ["beside", "one"]
    assert names(rewrite_program(["src/k.cu"], include_dirs=["two", "one"])) == ["beside", "two"]


# --- One plan ---------------------------------------------------------------------------------------------------


def test_ids_follow_first_appearance_with_headers_at_their_point_of_inclusion():
    write(
        {
            "a.cu": 'void a() { IKET_MARK("1"); }\n#include "h.cuh"\nvoid b() { IKET_MARK("3"); IKET_MARK("1"); }\n',
            "h.cuh": MARK.format("2"),
            "b.cu": '#include "h.cuh"\nvoid c() { IKET_MARK("4"); IKET_MARK("2"); }\n',
        }
    )
    assert names(rewrite_program(["a.cu", "b.cu"])) == ["1", "2", "3", "4"]
    assert names(rewrite_program(["b.cu", "a.cu"])) == ["2", "4", "1", "3"]


def test_one_event_in_two_files_is_one_event_and_its_contradictions_name_both_files():
    write({"a.cu": 'void a() { IKET_RANGE_PUSH("x"); IKET_RANGE_POP(); }\n', "b.cu": 'void b() { IKET_RANGE("x"); }\n'})
    assert names(rewrite_program(["a.cu", "b.cu"])) == ["x"]
    write({"b.cu": 'void b() {\n  IKET_RANGE_START("x"); }\n'})
    with pytest.raises(PlanError, match=r"b\.cu:2:3: 'x' is used as a push/pop range and as a token range") as error:
        rewrite_program(["a.cu", "b.cu"])
    assert "a.cu:1:12: used the other way here" in str(error.value)


def test_a_wrapper_of_a_header_names_its_events_where_it_is_used():
    write(
        {
            "trace.cuh": "#define TRACE(n) IKET_RANGE(n)\n#define COUNT(n, v) IKET_MARK(n, IKET_I32(v))\n",
            "a.cu": '#include "trace.cuh"\nvoid a() { TRACE("a"); COUNT("c", 3); }\n',
            "b.cu": '#include "trace.cuh"\nvoid b() { TRACE("b"); }\n',
            "c.cu": "#define TRACE(n)\nvoid c() { TRACE(nothing); }\n",
        }
    )
    program = rewrite_program(["a.cu", "b.cu", "c.cu"])
    assert names(program) == ["a", "c", "b"]
    assert copies(program) == ["a.cu", "b.cu", "trace.cuh"]
    assert [site.place.path for site in program.plan.sites] == ["a.cu", "a.cu", "b.cu"]
    assert program.warnings == ()


def test_wrappers_of_one_name_do_not_meet():
    write(
        {
            "a.cu": '#define TRACE(n) IKET_RANGE(n)\nvoid a() { TRACE("x"); }\n',
            "b.cu": '#define TRACE(n) IKET_MARK(n)\nvoid b() { TRACE("y"); }\n',
        }
    )
    program = rewrite_program(["a.cu", "b.cu"])
    assert [(event.kind.value, event.name) for event in program.plan.events] == [("range", "x"), ("mark", "y")]


def test_a_wrapper_that_nobody_uses_is_told_once():
    write({"trace.cuh": "#define TRACE(n) IKET_RANGE(n)\n", "a.cu": '#include "trace.cuh"\n', "b.cu": "\n"})
    program = rewrite_program(["a.cu", "b.cu"])
    (warning,) = program.warnings
    assert str(warning).startswith("trace.cuh:1:29: warning: TRACE holds an annotation and is not used in this program")
    assert not program.changed


def test_a_name_that_is_not_spelled_points_to_both_files():
    write(
        {
            "trace.cuh": "#define TRACE(n) IKET_RANGE(n)\n",
            "a.cu": '#include "trace.cuh"\nvoid a(const char* x) { TRACE(x); }\n',
        }
    )
    with pytest.raises(AnnotationError, match=r"a\.cu:2:31: the name that TRACE passes on") as error:
        rewrite_program(["a.cu"])
    assert "trace.cuh:1:29: the annotation that it names" in str(error.value)


def test_a_program_that_leaves_the_first_names_to_others():
    write(
        {
            "a.cu": '#define IKETR_ONLY\n#include "h.cuh"\nvoid a() { IKET_MARK(x); IKETR_MARK("a"); }\n',
            "h.cuh": 'void h() { IKET_MARK(y); IKETR_MARK("h"); }\n',
        }
    )
    assert names(rewrite_program(["a.cu"])) == ["h", "a"]


def test_a_macro_of_another_file_may_change_a_parameter():
    write(
        {
            "h.cuh": "#define ADVANCE ++n\n",
            "k.cu": '#include "h.cuh"\n__global__ void k(int n) { ADVANCE; IKET_MARK("m", IKET_I32(n)); }\n',
        }
    )
    (site,) = rewrite_program(["k.cu"]).plan.sites
    assert site.uniform is False
    write({"h.cuh": "#define ADVANCE ++m\n"})
    (site,) = rewrite_program(["k.cu"]).plan.sites
    assert site.uniform is True


def test_more_than_thirty_events_over_two_files_take_the_extended_method():
    for name in "ab":
        marks = " ".join(f'IKET_MARK("{name}{number}");' for number in range(16))
        write({f"{name}.cu": f"void {name}() {{ {marks} }}\n"})
    assert rewrite_program(["a.cu"]).plan.method.value == "native"
    assert rewrite_program(["a.cu", "b.cu"]).plan.method.value == "extended"


# --- A plan file --------------------------------------------------------------------------------------------------


def ids(program: iket_rewrite.Program) -> dict[str, int]:
    return {event.name: event.id for event in program.plan.events}


def test_a_plan_file_keeps_ids_and_takes_new_events():
    write({"a.cu": 'void a() { IKET_MARK("x"); IKET_RANGE("y"); }\n', "b.cu": 'void b() { IKET_MARK("z"); }\n'})
    rewrite_program(["a.cu"], plan="plan.json").write("out")
    write({"a.cu": 'void a() { IKET_MARK("new"); IKET_RANGE("y"); }\n'})
    program = rewrite_program(["a.cu"], plan="plan.json")
    assert ids(program) == {"x": 1, "y": 2, "new": 3}
    program.write("out")
    assert not rewrite_program(["a.cu"], plan="plan.json").plan_changed
    both = [rewrite_program([path], plan="plan.json") for path in ("b.cu", "b.cu")]
    both[0].write_plan()
    # What shares a plan file has one digest, whatever of it a library uses.
    digests = {rewrite_program([path], plan="plan.json").plan.digest for path in ("a.cu", "b.cu")}
    assert len(digests) == 1
    assert [entry["name"] for entry in json.loads(Path("plan.json").read_text())["events"]] == ["x", "y", "new", "z"]


def test_a_plan_that_outgrows_its_method_says_so():
    write({"a.cu": 'void a() { IKET_MARK("x"); }\n'})
    rewrite_program(["a.cu"], plan="plan.json").write_plan()
    marks = " ".join(f'IKET_MARK("{number}");' for number in range(30))
    write({"a.cu": f"void a() {{ {marks} }}\n"})
    program = rewrite_program(["a.cu"], plan="plan.json")
    assert program.plan.method.value == "extended"
    assert (program.plan.events[0].name, program.plan.events[0].id) == ("x", 64)
    assert "every id is new" in str(program.warnings[0])


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ('IKET_MARK("x", IKET_F32(1.0f))', "'x' has the payload f32 here, and the payload i32 in plan.json"),
        ('IKET_RANGE_START("r")', "'r' is the other kind of range in plan.json"),
        ('IKET_RANGE_PUSH("r", IKET_COLOR(0xff0000))', "'r' has another colour in plan.json"),
    ],
)
def test_a_contradiction_to_the_plan_file_is_an_error(annotation, message):
    write({"a.cu": 'void a() { IKET_MARK("x", 1); IKET_RANGE("r", IKET_COLOR(0x00ff00)); }\n'})
    rewrite_program(["a.cu"], plan="plan.json").write_plan()
    write({"b.cu": f"void b() {{ {annotation}; }}\n"})
    with pytest.raises(PlanError, match=message):
        rewrite_program(["b.cu"], plan="plan.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2, "method": "native", "events": []}',
        '{"schema": 1, "method": "loud", "events": []}',
        '{"schema": 1, "method": "native", "events": [{"id": 99, "kind": "mark", "name": "x"}]}',
        '{"schema": 1, "method": "native", "events": [{"id": 1, "kind": "mark", "name": ""}]}',
        '{"schema": 1, "method": "native", "events": [{"id": 1, "kind": "mark", "name": "x", "payload": "i7"}]}',
        '{"schema": 1, "method": "native", "events": [{"id": 1, "kind": "mark", "name": "x"}, '
        '{"id": 1, "kind": "mark", "name": "y"}]}',
    ],
)
def test_a_file_that_is_no_plan_is_refused(text):
    write({"a.cu": 'void a() { IKET_MARK("x"); }\n', "plan.json": text})
    with pytest.raises(OptionError, match=r"plan\.json: is no plan file"):
        rewrite_program(["a.cu"], plan="plan.json")


# --- Bad input ------------------------------------------------------------------------------------------------------


def test_an_annotated_header_that_no_source_includes_is_an_error():
    write({"k.cu": 'void k() { IKET_MARK("x"); }\n', "lone.cuh": MARK.format("y"), "plain.cuh": "\n"})
    with pytest.raises(OptionError, match=r"lone\.cuh is annotated, and none of the sources includes it"):
        rewrite_program(["k.cu", "lone.cuh", "plain.cuh"])
    assert names(rewrite_program(["k.cu", "plain.cuh"])) == ["x"]
    assert names(rewrite_program(["lone.cuh"])) == ["y"]


def test_an_annotated_header_in_an_include_folder_that_no_source_includes_is_told():
    write({"k.cu": 'void k() { IKET_MARK("x"); }\n', "include/lone.cuh": MARK.format("y")})
    (warning,) = rewrite_program(["k.cu"], include_dirs=["include"]).warnings
    assert str(warning) == (
        "warning: include/lone.cuh is annotated, and none of the sources includes it: its events are not in the plan"
    )


def test_an_include_circle_is_told_and_read_once():
    write(
        {
            "k.cu": '#include "a.cuh"\n',
            "a.cuh": '#pragma once\n#include "b.cuh"\n' + MARK.format("a"),
            "b.cuh": '#pragma once\n#include "a.cuh"\n' + MARK.format("b"),
        }
    )
    program = rewrite_program(["k.cu"])
    assert names(program) == ["b", "a"]
    (warning,) = program.warnings
    assert str(warning).startswith("b.cuh:2:1: warning: files include each other: a.cuh -> b.cuh -> a.cuh")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_header_under_two_names_counts_once_and_is_told(link):
    write({"k.cu": '#include "first.cuh"\n#include "second.cuh"\n', "first.cuh": "#pragma once\n" + MARK.format("m")})
    link("first.cuh", "second.cuh")
    program = rewrite_program(["k.cu"])
    assert names(program) == ["m"]
    assert len(program.plan.sites) == 1
    (warning,) = program.warnings
    assert "second.cuh and" in str(warning)
    assert "first.cuh are one file, which is included under two names" in str(warning)
    program.write("out")
    assert os.path.samefile("out/first.cuh", "out/second.cuh")


def test_a_folder_under_two_names_is_one_folder():
    write({"k.cu": "#include <a.cuh>\n#include <b.cuh>\n", "real/a.cuh": MARK.format("a")})
    write({"real/b.cuh": '#include "a.cuh"\n'})
    os.symlink("real", "linked")
    program = rewrite_program(["k.cu"], include_dirs=["linked", "real"])
    assert copies(program) == ["k.cu", "real/a.cuh", "real/b.cuh"]
    assert program.options("out")[-4:] == ["-Iout/real", "-Ilinked", "-Iout/real", "-Ireal"]


@pytest.mark.parametrize("output", ["src", ".", "src/../src", ".."])
def test_an_overlay_folder_that_holds_sources_is_refused(output):
    write(BASIC)
    before = sorted(Path().rglob("*"))
    with pytest.raises(OptionError, match="the folder for the overlay holds the source"):
        rewrite_program(["src/kernel.cu"]).write(output)
    assert sorted(Path().rglob("*")) == before


def test_a_folder_with_other_things_is_refused():
    write({**BASIC, "out/precious.txt": "mine"})
    with pytest.raises(OptionError, match="out: the folder is there already and is no overlay"):
        rewrite_program(["src/kernel.cu"]).write("out")
    assert [path.name for path in Path("out").iterdir()] == ["precious.txt"]
    Path("file").write_text("mine")
    with pytest.raises(OptionError, match="file: is no folder"):
        rewrite_program(["src/kernel.cu"]).write("file")


def test_a_read_only_output_leaves_nothing():
    write({**BASIC, "locked/x": ""})
    os.chmod("locked", 0o500)
    # Root may write everywhere but there.
    outputs = ["/proc/out", *(["locked/out"] if os.geteuid() else [])]
    for output in outputs:
        with pytest.raises(OptionError, match=f"{output}: can not be written"):
            rewrite_program(["src/kernel.cu"], plan="plan.json").write(output)
    assert os.listdir("locked") == ["x"]
    assert sorted(os.listdir()) == ["include", "locked", "src"]


def test_a_failed_write_keeps_the_old_overlay(monkeypatch):
    write(BASIC)
    rewrite_program(["src/kernel.cu"]).write("out")
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    write({"src/kernel.cu": BASIC["src/kernel.cu"].replace("kernel", "core")})
    program = rewrite_program(["src/kernel.cu"])
    # A system that can not exchange two folders in one step.
    monkeypatch.setattr(writing, "_swapped", lambda *_: False)
    real = os.rename

    def failing(source, target):
        if str(target).endswith("/out") and "old" not in str(source):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OptionError, match="out: can not be written: No space left on device"):
        program.write("out")
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    assert sorted(os.listdir()) == ["include", "out", "src"]


def test_an_overlay_is_replaced_and_what_stays_the_same_keeps_its_time():
    write(BASIC)
    rewrite_program(["src/kernel.cu"]).write("out")
    os.utime("out/include/marks.cuh", (1000, 1000))
    os.utime("out/src/kernel.cu", (1000, 1000))
    write({"src/kernel.cu": BASIC["src/kernel.cu"] + "// more\n"})
    rewrite_program(["src/kernel.cu"]).write("out")
    assert os.stat("out/include/marks.cuh").st_mtime == 1000
    assert os.stat("out/src/kernel.cu").st_mtime != 1000
    write({"src/kernel.cu": "// nothing\n"})
    rewrite_program(["src/kernel.cu"]).write("out")
    assert os.listdir("out") == [OPTIONS]


def test_a_missing_source_and_a_missing_folder():
    write(BASIC)
    with pytest.raises(OptionError, match=r"nothing\.cu: can not be read: No such file"):
        rewrite_program(["nothing.cu"])
    with pytest.raises(OptionError, match="nowhere: is no folder"):
        rewrite_program(["src/kernel.cu"], include_dirs=["nowhere"])


def test_an_instrumented_file_stays_and_is_told():
    write({"k.cu": '#include "done.cuh"\nvoid k() { IKET_MARK("k"); }\n'})
    write({"done.cuh": iket_rewrite.rewrite('void d() { IKET_MARK("d"); }\n').text})
    program = rewrite_program(["k.cu"])
    assert names(program) == ["k"]
    assert str(program.warnings[0]) == "warning: done.cuh is instrumented already and stays as it is"
