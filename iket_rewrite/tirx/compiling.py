# SPDX-License-Identifier: Apache-2.0
"""Compile a TIRx module whose kernels hold events."""

from __future__ import annotations

from typing import Any

from ..capturing import keeping
from ..rewriting.core import Rewrite
from ..rewriting.table import event_table
from . import callback, compat


class Instrumented:
    """A compiled TIRx module with events; call it as TIRx's own executable.

    Attributes:
        runtime_payloads: whether payloads are recorded, as `IketProfiler.compile` was told.
        rewrites: what the rewriter made of the CUDA source of each device module; `text` is what gets compiled.
    """

    def __init__(self, executable: Any, rewrites: tuple[Rewrite[str], ...], runtime_payloads: bool | None) -> None:
        self._executable = executable
        self.runtime_payloads = runtime_payloads
        self.rewrites = rewrites
        keeping.note(self)

    @property
    def mod(self) -> Any:
        """The module, as TIRx made it; its source holds the annotations."""
        return self._executable.mod

    @property
    def event_tables(self) -> list[dict[str, Any]]:
        """The events and sites of each device module; `iket-trace --events` reads one of them from a JSON file."""
        return [event_table(one.plan) for one in self.rewrites]

    def jit(self, *arguments: Any, **options: Any) -> Any:
        """Load it, as TIRx's own executable does."""
        with callback.instrumenting(self.runtime_payloads):
            return self._executable.jit(*arguments, **options)

    def export_library(self, *arguments: Any, **options: Any) -> Any:
        """Write it to a file, as TIRx's own executable does."""
        with callback.instrumenting(self.runtime_payloads):
            return self._executable.export_library(*arguments, **options)

    def __getitem__(self, name: str) -> Any:
        """Return a function of the module by its name."""
        return self.jit().get_function(name, query_imports=True)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the module's entry."""
        return self.jit().main(*arguments, **options)


def compile_events(mod: Any, target: Any, pipeline: str, runtime_payloads: bool | None) -> Instrumented:
    """Compile a function or module, with the events of either lowering.

    Raises:
        IketError: the events contradict each other.
        TypeError: `mod` is neither.
    """
    if isinstance(mod, compat.Function):
        mod = compat.IRModule.from_expr(mod)
    if not isinstance(mod, compat.IRModule):
        raise TypeError(f"a TIRx function or IRModule is compiled, not {type(mod).__name__}")
    callback.install()
    with callback.instrumenting(runtime_payloads):
        # TIRx's own events, if there are any, are lowered by TIRx itself.
        executable = compat.compile_module(mod.with_attr(compat.ENABLED, True), target=target, pipeline=pipeline)
        sources = [module.inspect_source() for module in _device_modules(executable.mod)]
        # Without a GPU TIRx compiles nothing yet: faults are told here all the same.
        rewrites = tuple(callback.made_of(source) for source in sources)
    return Instrumented(executable, rewrites, runtime_payloads)


def _device_modules(module: Any) -> list[Any]:
    """Return the CUDA modules that a host module imports, at whatever depth."""
    found = [module] if module.kind == "cuda" else []
    for imported in module.imports:
        found += _device_modules(imported)
    return found
