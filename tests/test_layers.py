# SPDX-License-Identifier: Apache-2.0
"""The rules of the house: who may import what, what is loaded when, and where the contract's numbers stand."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import iket_rewrite

PACKAGE = Path(iket_rewrite.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
#: Rooms from the inside out: a module imports its own room and those before it, never one behind it.
ROOMS = ["", "rewriting", "linting", "verification", "building", "tracing", "capturing", "tilelang", "tirx", "cli"]
#: Which packages of others a module may use, beside the standard library; "" is every module.
MAY_USE = {
    "jinja2": ["iket_rewrite.rewriting.render", "iket_rewrite.tracing.page_files"],
    "pycparser": ["iket_rewrite.rewriting.payloads", "iket_rewrite.rewriting.readback"],
    "msgspec": ["iket_rewrite.tracing", "iket_rewrite.tracing.export_chrome", "iket_rewrite.tracing.layout"],
    "perfetto": ["iket_rewrite.tracing.export_perfetto"],
    "tree_sitter": ["iket_rewrite.linting.parsing"],
    "tree_sitter_cuda": ["iket_rewrite.linting.parsing"],
}
#: What `import iket_rewrite` must not load: none of it is needed to start.
HEAVY = [
    "torch",
    "tilelang",
    "tvm",
    "cuda",
    "numpy",
    "msgspec",
    "perfetto",
    "jinja2",
    "pycparser",
    "elftools",
    "rich",
    "typing",
    "dataclasses",
    "tree_sitter",
]
#: Packages that an extra brings: where it is not installed, what needs it can not be imported.
EXTRAS = [
    "torch",
    "tilelang",
    "tvm",
    "tvm_tirx",
    "tvm_ffi",
    "cuda",
    "numpy",
    "msgspec",
    "elftools",
    "rich",
    "perfetto",
    "iket",
]


def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imports(module: str) -> set[str]:
    """Return the full names of what a module imports, wherever in it the import stands."""
    package = module if MODULES[module].stem == "__init__" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, *([base] if base else [])])
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names}
    return found


def room(module: str) -> int:
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 and parts[1] in ROOMS else ""
    return ROOMS.index(name)


def test_there_are_modules():
    assert len(MODULES) > 20
    assert imports("iket_rewrite.rewriting.core") >= {"iket_rewrite.source", "iket_rewrite.rewriting.scan", "os"}


@pytest.mark.parametrize("module", [name for name in MODULES if name != "iket_rewrite"])
def test_imports_go_one_way(module):
    ours = {name for name in imports(module) if name.split(".")[0] == "iket_rewrite"}
    assert [name for name in ours if room(name) > room(module)] == []


def test_the_imports_of_modules_make_no_circle():
    state: dict[str, int] = {}

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert state.get(module) != 1, " -> ".join([*path, module])
        if module not in state:
            state[module] = 1
            for name in imports(module) & MODULES.keys() - {"iket_rewrite"}:
                visit(name, (*path, module))
            state[module] = 2

    for module in MODULES:
        if module != "iket_rewrite":
            visit(module, ())


@pytest.mark.parametrize("module", ["iket_rewrite.abi", "iket_rewrite.errors"])
def test_leaves_import_nothing_of_the_package(module):
    assert [name for name in imports(module) if name.startswith("iket_rewrite")] == []


@pytest.mark.parametrize(("package", "allowed"), MAY_USE.items())
def test_a_package_of_others_has_its_one_place(package, allowed):
    users = [module for module in MODULES if package in {name.split(".")[0] for name in imports(module)}]
    assert sorted(users) == sorted(allowed)


def top_level_imports(module: str) -> set[str]:
    found = set()
    for node in tree(module).body:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


@pytest.mark.parametrize("module", [name for name in MODULES if ROOMS[room(name)] in ("", "rewriting", "cli")])
def test_the_core_and_the_commands_import_packages_of_others_where_they_are_needed(module):
    assert top_level_imports(module) <= sys.stdlib_module_names


@pytest.mark.parametrize("module", MODULES)
def test_only_commands_print_and_exit(module):
    calls = {
        node.func.id
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert ".cli." in module or not calls & {"print", "exit", "quit", "input"}
    assert ".cli." in module or "sys.exit" not in MODULES[module].read_text()


@pytest.mark.parametrize("name", iket_rewrite.__all__)
def test_no_module_hides_a_public_name(name):
    assert f"iket_rewrite.{name}" not in MODULES


def test_every_public_name_lives_after_every_module_is_imported():
    for module in MODULES:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as missing:
            if (missing.name or "").split(".")[0] not in EXTRAS:
                raise
    first = {name: getattr(iket_rewrite, name) for name in iket_rewrite.__all__}
    assert {name: getattr(iket_rewrite, name) for name in iket_rewrite.__all__} == first
    assert [name for name, value in first.items() if type(value) is type(sys)] == []
    assert set(dir(iket_rewrite)) == set(iket_rewrite.__all__)


def test_public_functions_can_be_called_twice():
    for _ in range(2):
        assert iket_rewrite.rewrite("").text == ""
        assert iket_rewrite.strip("").text == ""
        assert iket_rewrite.decode_event(iket_rewrite.encode_event("mark", "a")).name == "a"
        assert Path(iket_rewrite.include_dir(), "iket_rewrite", "iket.cuh").is_file()
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", iket_rewrite.__version__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        iket_rewrite.nothing  # noqa: B018


@functools.cache
def loaded_by(statement: str) -> set[str]:
    line = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-c", line], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("package", HEAVY)
def test_importing_the_package_loads_nothing_heavy(package):
    loaded = loaded_by("import iket_rewrite")
    assert "iket_rewrite" in loaded
    assert package not in loaded


@pytest.mark.parametrize(
    "statement",
    [
        "import iket_rewrite; iket_rewrite.rewrite('int a;')",
        "from iket_rewrite.cli.rewrite_command import parser; parser()",
    ],
)
def test_what_needs_no_template_and_no_parser_loads_none(statement):
    assert not loaded_by(statement) & {"jinja2", "pycparser", "numpy", "cuda"}


#: Every number of the contract that is not an everyday one, with how it may be written.
CONTRACT = {
    "magic": 0xBABEF19D,
    "highest extended id": 4095,
    "last extended id": 4094,
    "offset on sm_90": 0x3F0,
    "cluster stride": 0x1000000,
    "FNV-32 offset": 0x811C9DC5,
    "FNV-32 prime": 0x01000193,
    "FNV-64 offset": 0xCBF29CE484222325,
    "FNV-64 prime": 0x00000100000001B3,
    "capacity": 4031,
}


def numbers(path: Path) -> set[int]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int}


@pytest.mark.parametrize("name", CONTRACT)
def test_a_number_of_the_contract_stands_in_abi_alone(name):
    value = CONTRACT[name]
    homes = [module for module, path in MODULES.items() if value in numbers(path)]
    assert homes == (["iket_rewrite.abi"] if value != 4031 else [])
    written = re.compile(rf"(?i)\b(?:0x0*{value:x}|{value})\b")
    templates = [path.name for path in (PACKAGE.parent / "templates").glob("*.j2") if written.search(path.read_text())]
    assert templates == []


def strings(module: str) -> set[str]:
    """Return the texts in a module that are no documentation."""
    nodes = list(ast.walk(tree(module)))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    }


@pytest.mark.parametrize("symbol", ["__iket_meta_info", "__iket_evt_", "__iket_range_", "__iket_string_"])
def test_symbols_of_the_contract_stand_in_abi_alone(symbol):
    assert [name for name in MODULES if any(symbol in text for text in strings(name))] == ["iket_rewrite.abi"]


@pytest.mark.parametrize(
    "word", ["asm volatile", "__device__ ", "pmevent.mask", "globaltimer_lo", "st.volatile", "#define", "IKET_EMIT("]
)
def test_python_holds_no_cuda_and_no_ptx(word):
    assert [name for name in MODULES if any(word in text for text in strings(name))] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_and_under_which_licence(module):
    text = MODULES[module].read_text(encoding="utf-8")
    assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n")
    assert ast.get_docstring(ast.parse(text))
