# SPDX-License-Identifier: Apache-2.0
"""`iket-nvcc` in nvcc's place: what it hands on, what it leaves behind, and what it says."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from building.compilers import StandIn, command, environment, iket_nvcc, plain_nvcc
from building.projects import BASIC, write
from builds import embedded, needs_nvcc
from toolbox import INCLUDE, Official

import iket_rewrite
from iket_rewrite.building import toolkit
from iket_rewrite.building.claiming import claimed

pytestmark = needs_nvcc


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    write(BASIC)
    return project


def instrumented(path: str) -> list[tuple[str, bytes]]:
    return [(arch, image) for arch, image in embedded(Path(path)) if Official(image).instrumented]


def run(line: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment(**variables))


def is_on(preprocessed: str) -> bool:
    """Say whether preprocessed text is rewritten; where events are nothing, as on the host, only this tells."""
    return "iket_emit_compiling" in preprocessed and 'iketr_named("' not in preprocessed


def listing() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file() and str(path) not in BASIC)


PLAIN = {"plain.cu": '#include "plain.h"\nint main() { return VALUE; }\n', "plain.h": "#define VALUE 0\n"}
KERNEL = "src/kernel.cu"


# --- Handed on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["-c", "plain.cu", "-o", "plain.o", "-DX=a b", '-DY="q"', "-Xcompiler", "-Wall,-Wextra"],
        ["--version"],
        [],
        ["-c", "missing.cu"],
        ["one.o", "two.o", "-o", "program"],
        ["-x", "c++", KERNEL],
    ],
)
def test_without_annotations_nvcc_takes_our_place_with_unchanged_arguments(arguments, tmp_path):
    write(PLAIN)
    nvcc = StandIn(tmp_path / "bin")
    line = command("nvcc_command", *arguments)
    with subprocess.Popen(line, env=environment(IKET_NVCC=str(nvcc.path), NVCC_APPEND_FLAGS="-w")) as process:
        process.wait()
    assert nvcc.call["arguments"] == arguments
    assert nvcc.call["pid"] == process.pid
    assert nvcc.call["environment"]["NVCC_APPEND_FLAGS"] == "-w"


@pytest.mark.parametrize("off", ["0", "off"])
def test_switched_off_nvcc_gets_the_originals(off, tmp_path):
    nvcc = StandIn(tmp_path / "bin")
    run(command("nvcc_command", "-c", KERNEL), IKET_NVCC=str(nvcc.path), IKET=off)
    assert nvcc.call["arguments"] == ["-c", KERNEL]


def test_nvcc_is_found_on_the_path_and_never_ourselves(tmp_path):
    write(PLAIN)
    (tmp_path / "first").mkdir()
    (tmp_path / "iket-nvcc").write_text("#!/bin/sh\nexit 99\n")
    (tmp_path / "iket-nvcc").chmod(0o755)
    os.symlink(tmp_path / "iket-nvcc", tmp_path / "first" / "nvcc")
    nvcc = StandIn(tmp_path / "second")
    variables = environment(PATH=f"{tmp_path}/first:{tmp_path}/second:/usr/bin:/bin")
    del variables["IKET_NVCC"]
    subprocess.run(command("nvcc_command", "-c", "plain.cu"), env=variables, check=True)
    assert nvcc.call["arguments"] == ["-c", "plain.cu"]


def test_a_cache_can_stand_behind(tmp_path):
    write(PLAIN)
    nvcc = StandIn(tmp_path / "bin")
    run(command("nvcc_command", "-c", "plain.cu"), IKET_NVCC=f"{nvcc.path} nvcc")
    assert nvcc.call["arguments"] == ["nvcc", "-c", "plain.cu"]


# --- Where nvcc looks for files ---------------------------------------------------------------------------------

REACHED = {
    "k.cu": '#include <marks.cuh>\n#include "more.cuh"\nint k() { return 0; }\n',
    "in c/more.cuh": 'void more() { IKET_MARK("more"); }\n',
    "in_c/more.cuh": 'void more() { IKET_MARK("more"); }\n',
    "in c/marks.cuh": BASIC["include/marks.cuh"],
    "in_c/marks.cuh": BASIC["include/marks.cuh"],
    "options.txt": '-w "-DX=1"\n -I in_c\n',
    "outer.txt": "--options-file options.txt",
    "empty.txt": "",
}
#: nvcc keeps no blank of a path in its variables and options files.
ROUTES = {
    "-I": (["-I", "in c"], {}),
    "-Ijoined": (["-Iin c"], {}),
    "-I=": (["-I=in c"], {}),
    "list": (["-Inothing,in c"], {}),
    "--include-path": (["--include-path", "in c"], {}),
    "-isystem": (["-isystem", "in c"], {}),
    "--system-include=": (["--system-include=in c"], {}),
    "prepended": ([], {"NVCC_PREPEND_FLAGS": "-w -I in_c"}),
    "appended": ([], {"NVCC_APPEND_FLAGS": "-Iin_c"}),
    "options file": (["--options-file", "options.txt"], {}),
    "nested options files": (["-optf=empty.txt,outer.txt"], {}),
    "host -I": (["-Xcompiler", "-O2 -Iin_c"], {}),
    "host -isystem": (["-Xcompiler", "-isystem", "-Xcompiler", "in_c"], {}),
    "host -idirafter": (["-Xcompiler=-idirafter,in_c"], {}),
    "CPATH": ([], {"CPATH": "nothing:in_c"}),
    "CPLUS_INCLUDE_PATH": ([], {"CPLUS_INCLUDE_PATH": "in_c"}),
}


@pytest.mark.parametrize(("options", "variables"), ROUTES.values(), ids=ROUTES)
def test_a_header_is_found_by_every_route(options, variables):
    write(REACHED)
    done = iket_nvcc("-E", *options, "k.cu", **variables)
    assert done.returncode == 0, done.stderr
    assert is_on(done.stdout)
    assert listing() == sorted(REACHED)


def test_a_header_that_only_quotes_find_is_rewritten():
    write({"k.cu": '#include "marks.cuh"\n'})
    done = iket_nvcc("-E", "-Xcompiler", "-iquote,include", "k.cu")
    assert done.returncode == 0, done.stderr
    assert is_on(done.stdout)


@pytest.mark.parametrize(
    "include",
    [
        '"../include/marks.cuh"',
        '"../../project/include/marks.cuh"',
        '"empty/../../include/marks.cuh"',
        '"link/marks.cuh"',
        '"link/../include/marks.cuh"',
        '"{}/include/marks.cuh"',
        "<{}/include/marks.cuh>",
        '"marks.cuh"',
        "<empty/../marks.cuh>",
        "<link/marks.cuh>",
        '/* "marks.cuh" */ "marks.\\\ncuh" /* found through -I */',
    ],
)
def test_an_annotated_header_is_rewritten_however_an_include_names_it(include, folder):
    for empty in ("src/empty", "include/empty"):
        os.mkdir(empty)
    os.symlink("../include", "src/link")
    write({"src/k.cu": f"#include {include.format(folder)}\nint k() {{ return __LINE__; }}\n"})
    done = iket_nvcc("-E", "-Iinclude", "-Isrc", "src/k.cu")
    assert done.returncode == 0, done.stderr
    assert is_on(done.stdout)
    assert f"return {2 + include.count(chr(10))}; }}" in done.stdout


def test_the_first_folder_wins_as_it_does_without_us():
    write({"k.cu": "#include <one.cuh>\n#include <two.cuh>\n", "a/one.cuh": "int a_one;\n"})
    write({"b/one.cuh": 'int b_one() { IKET_MARK("b"); }\n', "b/two.cuh": 'int b_two() { IKET_MARK("two"); }\n'})
    done = iket_nvcc("-E", "-Ia", "-Ib", "k.cu")
    assert "a_one" in done.stdout
    assert "b_one" not in done.stdout
    assert is_on(done.stdout)


@pytest.mark.parametrize(
    "option",
    [
        ["-include", "include/marks.cuh"],
        ["--pre-include=include/marks.cuh"],
        ["-include", "marks.cuh", "-Iinclude"],
        ["-include", "stdint.h,iket_rewrite/iket.cuh", "-include=marks.cuh", "-Xcompiler=-iquote,include"],
    ],
)
def test_a_header_that_is_included_by_an_option(option):
    write({"k.cu": 'void k() { TRACE("k"); }\n'})
    done = iket_nvcc("-E", *option, "k.cu")
    assert done.returncode == 0, done.stderr
    assert is_on(done.stdout)


def test_sources_in_options_files_and_variables(tmp_path):
    nvcc = StandIn(tmp_path / "bin")
    write({"options.txt": f"-DX=1 {KERNEL}", "other.cu": 'void other() { IKET_MARK("o"); }\n'})
    done = run(
        command("nvcc_command", "--options-file", "options.txt"),
        IKET_NVCC=str(nvcc.path),
        NVCC_APPEND_FLAGS="-DY other.cu",
    )
    assert (done.returncode, done.stderr) == (0, "")
    call = nvcc.call
    (text,) = (text for path, text in call["files"].items() if "options" in path)
    assert text == "-DX=1 .iket-kernel.cu/src/kernel.cu"
    assert call["environment"]["NVCC_APPEND_FLAGS"] == "-DY .iket-kernel.cu/other.cu"


def test_a_macro_option_leaves_the_first_names_to_others():
    write({"k.cu": 'void k() { IKETR_MARK("mine"); IKET_MARK(theirs); }\n'})
    done = iket_nvcc("-E", "-DIKETR_ONLY", "k.cu")
    assert is_on(done.stdout)
    assert "IKET_MARK(theirs)" in done.stdout


# --- What nvcc writes ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """One compilation with everything that does not disturb: for three architectures, with line numbers and rules."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("compiled"))
    write(BASIC)
    codes = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ("90a", "100a", "120a")]
    done = iket_nvcc("-c", KERNEL, *codes, "-lineinfo", "-MD", "-Xcompiler", "-Wall,-Wextra,-Werror", "--threads=2")
    os.chdir(before)
    return done, tmp_path_factory.getbasetemp() / "compiled0"


def test_the_object_has_the_originals_name_and_nothing_else_is_left(compiled):
    done, folder = compiled
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in folder.iterdir()) == ["include", "kernel.d", "kernel.o", "src"]


def test_every_embedded_cubin_is_sound_and_names_the_users_lines(compiled):
    _, folder = compiled
    images = instrumented(str(folder / "kernel.o"))
    assert sorted(arch for arch, _ in images) == ["sm_100a", "sm_120a", "sm_90a"]
    for _, image in images:
        report = iket_rewrite.verify(image, strict=True)
        assert report.ok, report.findings
        assert sorted(event.name for event in report.events) == ["in helper", "kernel", "traced"]
        assert b".iket-" not in image


def rule(path: Path | str) -> list[str]:
    return Path(path).read_text().replace("\\\n", " ").split()


def test_the_dependency_file_names_the_originals(compiled, folder):
    _, done_in = compiled
    os.chdir(done_in)
    assert plain_nvcc("-M", KERNEL, "-o", "plain.d").returncode == 0
    assert rule("kernel.d")[:2] == ["kernel.o", ":"]
    assert set(rule("kernel.d")) - {"/usr/include/stdc-predef.h"} == set(rule("plain.d")) - {
        "/usr/include/stdc-predef.h"
    }
    os.unlink("plain.d")


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (["-M"], None),
        (["-MM", "-MT", "target", "-MP"], None),
        (["-M", "-o", "rules.d"], "rules.d"),
        (["-MM", "-MF", "rules.d"], "rules.d"),
        (["-M", "-MF", "other.d", "-o", "rules.d"], "rules.d"),
        (["-MD", "-MF", "deep/rules.d", "-MP", "-ptx", "-o", "k.ptx"], "deep/rules.d"),
        (["-MMD", "-ptx", "-odir", "deep"], "deep/kernel.d"),
    ],
)
def test_rules_are_those_of_nvcc(options, written):
    os.mkdir("deep")
    ours, rules = iket_nvcc(*options, KERNEL), None
    if written:
        rules = Path(written).read_text()
        os.unlink(written)
    theirs = plain_nvcc(*options, KERNEL)
    assert (ours.returncode, ours.stderr) == (0, ""), ours.stderr
    assert sorted((rules or ours.stdout).replace("\\\n", " ").split()) == sorted(
        (Path(written).read_text() if written else theirs.stdout).replace("\\\n", " ").split()
    )


def test_an_older_language_is_told_in_one_line():
    done = iket_nvcc("-std=c++11", "-cubin", "-arch=sm_90a", KERNEL, "-o", "k.cubin")
    assert done.returncode != 0
    assert "IKET's events need C++14: give the compiler -std=c++14 or a later one" in done.stderr
    assert done.stderr.count("error:") == 1


def test_headers_that_guard_against_each_other_are_no_news():
    write({"a.cuh": '#pragma once\n#include "b.cuh"\n', "k.cu": '#include "a.cuh"\nvoid k() { IKET_MARK("k"); }\n'})
    write({"b.cuh": '#pragma once\n#include "a.cuh"\nvoid b() { IKET_MARK("b"); }\n'})
    done = iket_nvcc("-E", "k.cu")
    assert (done.returncode, done.stderr) == (0, "")
    assert is_on(done.stdout)


def test_messages_and_status_are_those_of_nvcc():
    write({"src/other.cuh": "#define OTHER missing\n"})
    broken = BASIC["include/marks.cuh"].replace("out[0] = n;", "out[0] = undeclared; // é")
    write({"include/marks.cuh": broken})
    ours, theirs = (run("-c", KERNEL, "-o", "kernel.o") for run in (iket_nvcc, plain_nvcc))
    assert theirs.returncode != 0
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert ours.stderr == theirs.stderr
    assert 'src/../include/marks.cuh(9): error: identifier "undeclared" is undefined' in ours.stderr
    assert listing() == []


def test_two_builds_are_the_same_to_the_byte():
    objects = []
    for _ in range(2):
        assert iket_nvcc("-cubin", "-arch=sm_90a", KERNEL, "-o", "kernel.cubin").returncode == 0
        objects.append(Path("kernel.cubin").read_bytes())
    assert objects[0] == objects[1]


def test_several_sources_become_one_program_and_standard_input_is_a_source():
    write({"main.cu": '#include "src/plain.cuh"\nint main() { return 0; }\n'})
    done = iket_nvcc("-arch=sm_90a", KERNEL, "main.cu", "-o", "program")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(instrumented("program")) == 2  # one of them without a kernel
    assert subprocess.run(["./program"], check=False).returncode == 0
    done = iket_nvcc("-x", "cu", "-E", "-", stdin='#include "src/plain.cuh"\nvoid f() { IKET_MARK("in"); }\n')
    assert done.returncode == 0
    assert is_on(done.stdout)
    done = iket_nvcc("-x", "cu", "-E", "-", stdin="int plain;\n")
    assert done.stdout.endswith("int plain;\n")


# --- Separate compilation with one plan file --------------------------------------------------------------------------


def test_units_that_are_compiled_apart_share_a_plan_file():
    write({"other.cu": 'void __global__ other() { IKET_MARK("other"); }\nint main() { return 0; }\n'})
    write({"other.cu": "#include <iket_rewrite/iket.cuh>\n" + Path("other.cu").read_text()})
    iket_rewrite.rewrite_program([KERNEL, "other.cu"], plan="plan.json").write_plan()
    for source in (KERNEL, "other.cu"):
        done = iket_nvcc("-dc", "-arch=sm_90a", "-MD", source, IKET_PLAN="plan.json")
        assert (done.returncode, done.stderr) == (0, "")
    assert "plan.json" in rule("kernel.d")
    assert plain_nvcc("-arch=sm_90a", "kernel.o", "other.o", "-o", "program").returncode == 0
    report = iket_rewrite.verify("program")
    assert report.ok, report.findings
    write({"other.cu": Path("other.cu").read_text().replace('"other"', '"unknown"')})
    done = iket_nvcc("-dc", "other.cu", IKET_PLAN="plan.json")
    assert done.returncode == 1
    assert "other.cu:2:27: the event 'unknown' is not in plan.json" in done.stderr
    assert "fix: add it for all sources that share the plan: iket-rewrite --plan plan.json" in done.stderr


# --- What goes wrong ---------------------------------------------------------------------------------------------


def test_an_annotation_error_is_told_as_a_compiler_does_and_nvcc_is_not_called(tmp_path):
    nvcc = StandIn(tmp_path / "bin")
    write({"include/marks.cuh": "void f(const char* n) { IKET_MARK(n); }\n"})
    done = run(command("nvcc_command", "-c", KERNEL), IKET_NVCC=str(nvcc.path))
    assert done.returncode == 1
    assert done.stderr.startswith("src/../include/marks.cuh:1:35: the event's name is no string literal")
    assert not nvcc.log.exists()
    assert listing() == []


@pytest.mark.parametrize(("then", "status"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 128 + 9)])
def test_the_status_of_a_failing_or_killed_nvcc_is_kept(then, status, tmp_path):
    nvcc = StandIn(tmp_path / "bin", then)
    done = run(command("nvcc_command", "-c", KERNEL), IKET_NVCC=str(nvcc.path))
    assert done.returncode == status
    assert ("was ended by signal 9" in done.stderr) == (status > 128)
    assert listing() == []


def test_a_missing_nvcc_is_told(monkeypatch):
    monkeypatch.setattr(toolkit, "_by_pathfinder", lambda: None)
    with pytest.raises(iket_rewrite.ToolError, match="nvcc is not installed") as error:
        toolkit.find_nvcc({"PATH": "/nowhere", "CUDA_HOME": "/nowhere"})
    assert "IKET_NVCC" in error.value.remedy


@pytest.mark.parametrize("named", ["/nowhere/nvcc", "no-such-program nvcc", "/etc"])
def test_a_wrong_variable_is_told(named):
    done = run(command("nvcc_command", "-c", KERNEL), IKET_NVCC=named)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_nvcc_too_and_leaves_nothing(number, tmp_path):
    ready = tmp_path / "ready"
    ignorant = f"import signal, time; signal.signal(2, signal.SIG_DFL); open({str(ready)!r}, 'w'); time.sleep(60)"
    nvcc = StandIn(tmp_path / "bin", ignorant)
    line = command("nvcc_command", "-c", KERNEL)
    with subprocess.Popen(line, env=environment(IKET_NVCC=str(nvcc.path)), stderr=subprocess.PIPE) as process:
        while not ready.exists():
            assert process.poll() is None
            time.sleep(0.02)
        assert Path(".iket-kernel.cu").is_dir()
        process.send_signal(number)
        assert process.wait(timeout=30) == -number
        assert b"Traceback" not in process.stderr.read()
    assert listing() == []
    with pytest.raises(ProcessLookupError):
        os.kill(nvcc.call["pid"], 0)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    nvcc = StandIn(tmp_path / "bin", "import time; time.sleep(1)")
    line = ["nohup", *command("nvcc_command", "-c", KERNEL)]
    with subprocess.Popen(line, env=environment(IKET_NVCC=str(nvcc.path)), stderr=subprocess.PIPE) as process:
        while not (nvcc.log.exists() and nvcc.log.read_text().endswith("}")):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=30) == 0


def test_what_a_killed_process_left_behind_is_cleared_away():
    write({".iket-kernel.o/stale": "", ".iket-kernel.o/src/kernel.cu": "int old;\n"})
    assert iket_nvcc("-E", KERNEL, "-o", "kernel.o").returncode == 0
    assert listing() == ["kernel.o"]


def test_two_compilations_of_one_name_do_not_disturb_each_other():
    with claimed(".iket-k.cu") as first:
        Path(first, "src").mkdir()
        with claimed(".iket-k.cu") as second:
            assert (first, second) == (".iket-k.cu", ".iket-k.cu-2")
        assert sorted(os.listdir(first)) == [".iket-lock", "src"]
        assert not Path(second).exists()
    with claimed(".iket-k.cu") as again:
        assert again == first
    assert not Path(first).exists()


@pytest.mark.parametrize("occupy", [lambda path: path.write_text(""), lambda path: path.symlink_to("src")])
def test_what_is_no_folder_of_ours_is_left_alone(occupy):
    path = Path(".iket-k.o")
    occupy(path)
    with claimed(str(path)) as other:
        assert Path(other).is_dir()
        assert Path(other).parent != Path()
    assert path.exists()
    assert Path(KERNEL).is_file()
    assert not Path(other).exists()


def test_rules_of_two_sources_of_one_name_are_made_at_once():
    """As `make -j` has it, where each `.d` file is the output of `nvcc -M`."""
    for name in "abc":
        write({f"{name}/k.cu": f'#include <iket_rewrite/iket.cuh>\nvoid {name}() {{ IKET_MARK("{name}"); }}\n'})
    lines = [command("nvcc_command", f"-I{INCLUDE}", "-M", f"{name}/k.cu") for name in "abc"]
    running = [subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE, text=True) for line in lines]
    for name, process in zip("abc", running, strict=True):
        assert process.communicate()[0].startswith(f"k.o : {name}/k.cu ")
        assert process.returncode == 0
    assert listing() == ["a/k.cu", "b/k.cu", "c/k.cu"]


@pytest.mark.parametrize("cache", ["ccache", "sccache"])
def test_a_cache_in_front_is_refused_with_the_line_that_fixes_it(cache, tmp_path):
    script = tmp_path / cache
    script.write_text('#!/bin/sh\n"$@"\nexit $?\n')
    script.chmod(0o755)
    line = [str(script), *command("nvcc_command", f"-I{INCLUDE}", "-E", KERNEL)]
    done = run(line)
    assert done.returncode == 2
    assert f"{cache} stands in front of the rewriter" in done.stderr
    assert f'CMAKE_CUDA_COMPILER_LAUNCHER="iket-launch;{cache}"' in done.stderr
    assert run(line, IKET="0").returncode == 0
