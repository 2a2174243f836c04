# SPDX-License-Identifier: Apache-2.0
"""Sessions inside the process, as far as they go without a GPU: the layout, the version, the options, and refusals.

The library is NVIDIA's own.  Only the driver that it is linked with is a stand-in, where the test says so.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fetch_parsers import RELEASES, packages
from toolbox import site_packages

import iket_rewrite
from iket_rewrite import CaptureError, OptionError, abi
from iket_rewrite.capturing import failures, in_process, runtime, session
from iket_rewrite.capturing.runtime import find_runtime

HERE = Path(__file__).parent
HEADER = find_runtime().header.read_text(encoding="utf-8")


# --- The layout, against the header that the installed runtime ships ----------------------------------------------


def test_sizes_and_offsets_are_those_of_the_header():
    (options,) = set(re.findall(r"sizeof\((?:\w+::)?IketProfilingSessionOptions\) == (\d+)", HEADER))
    (cluster,) = set(re.findall(r"sizeof\((?:\w+::)?IketProfilingSessionClusterIndex\) == (\d+)", HEADER))
    offsets = dict(re.findall(r"offsetof\((?:\w+::)?IketProfilingSessionOptions, (\w+)\) ==\s+(\d+)", HEADER))
    assert ctypes.sizeof(session.Options) == int(options)
    assert ctypes.sizeof(session.ClusterIndex) == int(cluster)
    ours = {name: getattr(session.Options, name).offset for name, _ in session.Options._fields_}
    assert {name: int(value) for name, value in offsets.items()} == ours


def test_every_field_has_the_headers_type():
    (body,) = re.findall(r"typedef struct IketProfilingSessionOptions \{(.*?)\}", HEADER, re.DOTALL)
    fields = re.findall(r"([\w* ]+?)\s*\b(\w+);", body)
    types = {
        "uint32_t": ctypes.c_uint32,
        "uint64_t": ctypes.c_uint64,
        "const void* const*": ctypes.POINTER(ctypes.c_void_p),
        "IketProfilingSessionClusterIndex": session.ClusterIndex,
        "IketProfilingSessionLogLevelValue": ctypes.c_uint32,
    }
    assert [(name, types[kind.strip()]) for kind, name in fields] == list(session.Options._fields_)


def constants(pattern: str) -> dict[str, int]:
    found = re.findall(rf"#define IKET_PROFILING_SESSION_({pattern}) \(?UINT32_C\((\d+)\)(?: << (\d+)\))?", HEADER)
    return {name: int(value) << int(shift or 0) for name, value, shift in found}


def test_constants_are_the_headers():
    assert constants("API_VERSION_MAJOR") == {"API_VERSION_MAJOR": abi.SESSION_API_MAJOR}
    assert constants("LOG_WARN") == {"LOG_WARN": abi.SESSION_LOG_WARN}
    results = {"SUCCESS": 0} | {name: number for number, name in abi.SESSION_RESULTS.items()}
    assert constants("|".join(results)) == results
    flags = constants("ENABLE_CLUSTER|DEFER_TRACE_READBACK|WARP_LIFETIME_ONLY")
    assert flags == {name: getattr(abi, f"SESSION_FLAG_{name}") for name in flags}
    assert len(flags) == 3


def test_every_function_that_is_called_is_declared():
    called = set(re.findall(r'call\("(\w+)"', Path(session.__file__).read_text(encoding="utf-8")))
    assert len(called) == 8
    assert called <= set(re.findall(r"IketProfilingSession(\w+)\(", HEADER))


# --- The library, with a stand-in for the driver ------------------------------------------------------------------


@pytest.fixture(scope="session")
def driver(tmp_path_factory) -> Path:
    """A folder with a stand-in for the driver's library."""
    folder = tmp_path_factory.mktemp("driver")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler here")
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(folder / "libcuda.so.1")]
    subprocess.run([compiler, *options, str(HERE / "stand_in_driver.c")], check=True)
    return folder


def with_driver(folder: Path, code: str, **environment: str) -> dict:
    """Run code in a process that sees the stand-in; `out` is what it leaves."""
    program = f"import json; out = {{}}\n{code}\nprint('\\n' + json.dumps(out))"
    values = dict(os.environ) | {"LD_LIBRARY_PATH": str(folder)} | environment
    done = subprocess.run([sys.executable, "-c", program], env=values, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"stdout": done.stdout, "stderr": done.stderr}


LOAD = """
from iket_rewrite.capturing.runtime import find_runtime
from iket_rewrite.capturing import session
library = session.load_library(find_runtime())
options = library.defaults()
"""


def test_the_library_speaks_our_version_and_initialises_the_options(driver):
    code = LOAD + "out |= dict(version=library.version, events=options.max_ts_per_warp, size=options.struct_size)"
    found = with_driver(driver, code + "; out['buffer'] = options.device_buffer_size")
    assert found["version"] == [1, 0]
    assert found["size"] == abi.SESSION_OPTIONS_SIZE
    # These are what the documentation of `capture` names as defaults.
    assert (found["events"], found["buffer"]) == (256, 512 << 20)


def test_a_structure_of_another_size_is_refused(driver):
    code = """
options.struct_size -= 8
try:
    library.call("OptionsInit", session.ctypes.byref(options))
except session.CallError as error:
    out["said"] = str(error)
"""
    assert with_driver(driver, LOAD + code)["said"] == "OptionsInit returned 1 (INVALID_ARGUMENT)"


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"max_events_per_warp": 2**32 - 1, "buffer_bytes": 1 << 33},
        {"cluster": (7, 6, 5)},
        {"contexts": (0x1000, 0x2000)},
        {"warp_lifetimes_only": True},
    ],
)
def test_the_library_takes_our_options_and_saves_an_empty_trace(driver, tmp_path, chosen):
    values = {"max_events_per_warp": None, "buffer_bytes": None, "cluster": None, "contexts": ()}
    values |= {"warp_lifetimes_only": False} | chosen
    code = f"""
import pathlib
session.settle(options, **{values!r})
one = session.Session(library, options)
one.save(pathlib.Path({str(tmp_path / "empty.trace.json")!r}))
one.close()
one.close()
"""
    with_driver(driver, LOAD + code)
    assert len(iket_rewrite.load_trace(tmp_path / "empty.trace.json").launches) == 0


def test_what_the_runtime_says_is_heard_and_nothing_else_is_lost(driver):
    code = """
one = session.Session(library, options)
print("before", flush=True)
try:
    one.start()
except session.CallError as error:
    out["said"], out["result"] = list(error.messages), error.result
print("after", flush=True)
"""
    found = with_driver(driver, LOAD + code)
    assert found["result"] == 14
    assert "IKET could not initialize CUDA profiling support." in found["said"]
    assert "IKET" not in found["stdout"].replace(json.dumps(found["said"]), "") + found["stderr"]
    assert found["stdout"].startswith("before\nafter\n")


def test_a_driver_that_refuses_the_runtime_is_told(driver):
    code = """
import iket_rewrite
for _ in range(2):  # a capture that did not begin does not block the next one
    try:
        iket_rewrite.capture().__enter__()
    except iket_rewrite.CaptureError as error:
        out.setdefault("slugs", []).append(error.slug)
        out["message"] = str(error)
"""
    found = with_driver(driver, code)
    assert found["slugs"] == ["driver-unsupported"] * 2
    assert "could not initialize CUDA profiling support" in found["message"]


@pytest.mark.parsers
@pytest.mark.parametrize("release", RELEASES)
def test_a_runtime_without_sessions_is_told(driver, release):
    if packages(release) is None:
        pytest.skip("not fetched: make test-parsers")
    code = """
import iket_rewrite
try:
    iket_rewrite.capture().__enter__()
except iket_rewrite.CaptureError as error:
    out |= dict(slug=error.slug, message=str(error))
"""
    found = with_driver(driver, code, IKET_RUNTIME=str(packages(release)))
    assert found["slug"] == "runtime-too-old"
    assert f"runtime {release} is too old" in found["message"]
    assert "iket-profile" in found["message"]


# --- Refusals that need no library ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_events_per_warp": 0}, "max_events_per_warp"),
        ({"max_events_per_warp": True}, "max_events_per_warp"),
        ({"max_events_per_warp": 2**32}, "max_events_per_warp"),
        ({"buffer_bytes": -1}, "buffer_bytes"),
        ({"cluster": (0, 65536, 0)}, "three indices"),
        ({"cluster": (0, 0, 0), "warp_lifetimes_only": True}, "do not go together"),
        ({"contexts": ["no context"]}, "no CUDA context"),
        ({"contexts": ["12"]}, "no CUDA context"),
        ({"contexts": [None]}, "no CUDA context"),
        ({"contexts": [0]}, "0 is no CUDA context"),
        ({"contexts": [-1]}, "no CUDA context"),
        ({"contexts": [2**64]}, "no CUDA context"),
        ({"contexts": 12}, "contexts is a list"),
        ({"contexts": []}, "contexts names none"),
        ({"cluster": 3}, "three indices"),
        ({"buffer_bytes": 2**63 + 1}, "at most 9,223,372,036,854,775,808"),
        ({"output": ""}, "output is empty"),
        ({"output": 5}, "output is 5"),
    ],
)
def test_options_that_can_not_be_are_refused_where_they_are_given(options, words):
    with pytest.raises(OptionError, match=words):
        iket_rewrite.capture(**options)


@pytest.mark.parametrize(
    "output", ["file/trace.json", "file", "file/deep/", "folder.json", "/proc/nowhere/trace.json", "a" * 300 + ".json"]
)
def test_an_output_that_can_not_be_written_is_told_before_the_block(tmp_path, output):
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OptionError, match="can not be written: "):
        iket_rewrite.capture(output=tmp_path / output).__enter__()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_refused_output_leaves_the_process_free_for_a_capture(tmp_path):
    (tmp_path / "file").touch()
    for _ in range(2):
        with pytest.raises(OptionError, match="can not be written"):
            iket_rewrite.capture(output=tmp_path / "file" / "trace.json").__enter__()


def test_a_second_capture_at_the_same_time_is_refused(monkeypatch):
    monkeypatch.setattr(in_process, "_one", in_process.threading.Lock())
    in_process._one.acquire()
    with pytest.raises(CaptureError, match="going on in this process") as caught:
        iket_rewrite.capture().__enter__()
    assert caught.value.slug == "already-capturing"


def test_a_replayed_process_is_not_captured_again(monkeypatch):
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/x/libiket_injection.so")
    monkeypatch.setenv("IKET_INJECTION_CONFIG", "/x")
    with pytest.raises(CaptureError, match="run-iket records") as caught:
        iket_rewrite.capture().__enter__()
    assert "without run-iket" in caught.value.remedy
    assert caught.value.slug == "already-capturing"


def test_an_active_pytorch_profiler_is_told():
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(), pytest.raises(CaptureError) as caught:
        iket_rewrite.capture().__enter__()
    assert (caught.value.slug, "torch.profiler" in caught.value.message) == ("other-profiler", True)


def test_a_runtime_that_is_not_installed_is_told(monkeypatch, tmp_path):
    with pytest.raises(CaptureError) as caught:
        find_runtime([str(tmp_path)])
    assert (caught.value.slug, caught.value.remedy) == ("runtime-missing", failures.INSTALL)
    monkeypatch.setenv("IKET_RUNTIME", str(tmp_path))
    with pytest.raises(CaptureError, match=r"not where IKET_RUNTIME says: .* does not hold it") as caught:
        find_runtime()
    assert "IKET_RUNTIME, or unset it" in caught.value.remedy


def test_a_runtime_with_other_files_is_told(tmp_path):
    package = tmp_path / "nvidia_cutlass_dsl" / "dsl_packages" / "iket"
    (package / "profiler").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "profiler" / "libnew_injection.so").touch()
    (tmp_path / "nvidia_cutlass_dsl_libs_base-5.0.0.dist-info").mkdir()
    with pytest.raises(CaptureError) as caught:
        find_runtime([str(tmp_path)])
    assert caught.value.slug == "runtime-changed"
    assert "runtime 5.0.0" in caught.value.message
    assert "libnew_injection.so" in caught.value.message


def test_the_runtime_is_found_with_and_without_the_umbrella_package():
    folder = site_packages("nvidia-cutlass-dsl-libs-base", "nvidia_cutlass_dsl/dsl_packages").resolve()
    site = folder.parents[1]
    assert find_runtime([str(site)]).folder == folder
    assert find_runtime(["/nowhere", str(folder)]) == find_runtime([str(site)])
    assert re.fullmatch(r"\d+\.\d+\.\d+", find_runtime([str(site)]).version)
    assert runtime.DISTRIBUTION == "nvidia-cutlass-dsl-libs-base"


def test_a_capture_has_nothing_before_its_end():
    captured = in_process.Captured()
    for name in ("path", "contents", "trace", "launches"):
        with pytest.raises(CaptureError, match="has not ended") as caught:
            getattr(captured, name)
        assert caught.value.slug == "not-captured-yet"
    assert repr(captured) == "Captured(nothing yet)"
