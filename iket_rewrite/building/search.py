# SPDX-License-Identifier: Apache-2.0
"""Where an include leads: the compiler's search, over the folders that it was given.

Nothing heavy is imported here: `iket-nvcc` looks for annotations before every compilation.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

#: A folder `include` that holds one of these is a toolkit's, or PyTorch's: large, and never annotated.
_LIBRARY_HEADERS = ("cuda_runtime.h", "cuda_runtime_api.h", "nvrtc.h", "torch/extension.h", "torch/all.h")
_SYSTEM_FOLDERS = ("/usr/include", "/usr/lib/gcc", "/usr/local/include")
_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "include")


class Search:
    """The folders in which includes are looked for.

    Args:
        quoted: those for quoted includes only (-iquote).
        folders: those for all includes (-I, then -isystem), in order.
    """

    def __init__(self, quoted: Sequence[str], folders: Sequence[str]) -> None:
        self.quoted, self.folders = tuple(quoted), tuple(folders)
        self._foreign: dict[str, bool] = {}
        self._real: dict[str, str] = {}
        self._isfile: dict[str, bool] = {}

    def resolve(self, name: str, angled: bool, beside: str) -> str | None:
        """Return the project's file that an include names, as the compiler would spell it.

        None where there is no such file, or where the first one belongs to the system or to a toolkit.
        """
        path = self.resolve_any(name, angled, beside)
        return None if path is None or self.is_foreign(os.path.dirname(path)) else path

    def resolve_any(self, name: str, angled: bool, beside: str) -> str | None:
        """Return the file that an include names, whomever it belongs to; None where the given folders hold none."""
        folders = self.folders if angled else (beside, *self.quoted, *self.folders)
        for folder in ("",) if os.path.isabs(name) else folders:
            path = os.path.join(folder, name)
            if self.is_file(path):
                return path
        return None

    def is_file(self, path: str) -> bool:
        """Say whether there is such a file."""
        if path not in self._isfile:
            self._isfile[path] = os.path.isfile(path)
        return self._isfile[path]

    def place(self, path: str) -> str:
        """Return the absolute path with its folder's links resolved: one for each spelling of one name."""
        return os.path.join(self.real_folder(os.path.dirname(path)), os.path.basename(path))

    def real_folder(self, folder: str) -> str:
        """Return a folder's absolute path without links."""
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return self._real[folder]

    def is_foreign(self, folder: str) -> bool:
        """Say whether the files of a folder are left alone: the system's, a toolkit's, or our own header's."""
        if folder not in self._foreign:
            self._foreign[folder] = self._look(self.real_folder(folder))
        return self._foreign[folder]

    def _look(self, real: str) -> bool:
        if any(real == system or real.startswith(system + "/") for system in _SYSTEM_FOLDERS):
            return True
        while len(real) > 1 and os.path.basename(real) != "include":
            real = os.path.dirname(real)
        return real == _OWN or any(self.is_file(os.path.join(real, name)) for name in _LIBRARY_HEADERS)
