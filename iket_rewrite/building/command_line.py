# SPDX-License-Identifier: Apache-2.0
"""Understand a command line of nvcc: its inputs, its include folders, what it writes.

Options also come from files (`--options-file`) and from the variables NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS.  A word
keeps its origin, so that it can be replaced there and everything else stays to the letter.  Nothing heavy is imported:
this runs before every compilation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .search import Search

#: Where a word stands: the arguments, a variable or an options file, and from where to where in it.
Origin = tuple[str, int, int]

#: Variables by which the host compiler looks for headers: behind -I, and behind -isystem.
SEARCHED = ("CPATH", "CPLUS_INCLUDE_PATH")
PREPEND, APPEND = "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"
ARGUMENTS = ""
#: Options that take the next word as their value, long and short, of nvcc 12.0 to 13.0.
_VALUED = """
output-file o pre-include include library l define-macro D undefine-macro U include-path I system-include
isystem library-path L output-directory odir compiler-bindir ccbin archiver-binary arbin cudart cudadevrt
libdevice-directory ldir target-directory target-dir optimization-info opt-info optimize O Ofast-compile Ofc
dopt ftemplate-backtrace-limit ftemplate-depth x std machine m compiler-options Xcompiler linker-options
Xlinker archive-options Xarchive ptxas-options Xptxas nvlink-options Xnvlink static-global-template-stub
device-entity-has-hidden-visibility threads t split-compile split-compile-extended fdevice-time-trace keep-dir
time run-args input-drive-prefix idp dependency-drive-prefix ddp drive-prefix dp dependency-target-name MT
dependency-output MF gpu-architecture arch gpu-code code generate-code gencode relocatable-device-code rdc
entries e maxrregcount ftz prec-div prec-sqrt fmad default-stream Werror diag-error diag-suppress diag-warn
host-linker-script hls jump-table-density jtd device-stack-protector compress-mode options-file optf
frandom-seed sanitize
"""
_WITH_VALUE = frozenset(_VALUED.split())
#: Their value may follow the letter directly.
_JOINED = ("I", "D", "U", "L", "l", "O", "t", "e", "m")
_SHORT = {
    "output-file": "o",
    "pre-include": "include",
    "define-macro": "D",
    "include-path": "I",
    "system-include": "isystem",
    "output-directory": "odir",
    "compiler-options": "Xcompiler",
    "options-file": "optf",
    "dependency-output": "MF",
    "generate-dependencies": "M",
    "generate-nonsystem-dependencies": "MM",
    "generate-dependencies-with-compile": "MD",
    "generate-nonsystem-dependencies-with-compile": "MMD",
    "preprocess": "E",
}
#: A word of an options file or a variable: double quotes keep blanks together, single ones do not.
_WORD = re.compile(r'(?:"[^"]*"|[^\s"])+')
#: The host compiler's options come apart at commas, and a shell reads them.
_HOST_GAP = re.compile(r"[,\s]")
_HOST_FOLDERS = ("-iquote", "-isystem", "-idirafter", "-I")
_LEAD = re.compile(r"-[\w-]+=|-[IDUL]")


class Word:
    """One word of the command.

    Attributes:
        text: what it says.
        origin: where it stands.
    """

    __slots__ = ("origin", "text")

    def __init__(self, text: str, origin: Origin) -> None:
        self.text, self.origin = text, origin


class Command:
    """A command line of nvcc.

    Attributes:
        sources: the inputs that are compiled as CUDA.
        quoted, include, system: the folders of -iquote (handed on to the host compiler), -I and -isystem, in order.
        folder_words: the words that give the latter two.
        host_folders: the folders that -I, -isystem and -idirafter give to the host compiler alone, with the option.
        forced: the words that give files of -include.
        macros: what -D defines.
        output, output_folder, dependencies: the values of -o, -odir and -MF, or None.
        flags: every other option without a value, without its dashes.

    Args:
        arguments: the arguments.
        environment: the variables.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self.arguments, self.environment = list(arguments), dict(environment)
        self.texts: dict[str, str] = {}
        self.inputs: list[Word] = []
        self.quoted: list[str] = []
        self.include: list[str] = []
        self.system: list[str] = []
        self.folder_words: list[Word] = []
        self.host_folders: list[tuple[str, str]] = []
        self.forced: list[Word] = []
        self.macros: list[str] = []
        self.output: str | None = None
        self.output_folder: str | None = None
        self.dependencies: str | None = None
        self.language: str | None = None
        self.flags: set[str] = set()
        self._references: list[tuple[str, Word]] = []
        self._host_options: list[str] = []
        self._read(self._words())
        for index, option in enumerate(self._host_options):
            lead = next((lead for lead in _HOST_FOLDERS if option.startswith(lead)), None)
            if lead is not None:
                path = option[len(lead) :] or "".join(self._host_options[index + 1 : index + 2])
                self.quoted.append(path) if lead == "-iquote" else self.host_folders.append((lead, path))

    @property
    def sources(self) -> list[Word]:
        """Return the inputs that are compiled as CUDA."""
        if self.language is not None:
            return self.inputs if self.language == "cu" else []
        return [word for word in self.inputs if word.text.lower().endswith(".cu")]

    @property
    def folders(self) -> list[str]:
        """Return the folders for all includes, in the order in which the host compiler looks into them."""
        host = {lead: [path for option, path in self.host_folders if option == lead] for lead in _HOST_FOLDERS}
        behind, last = (self.environment[name].split(":") if self.environment.get(name) else [] for name in SEARCHED)
        first = [*host["-I"], *self.include, *behind]
        return [*first, *host["-isystem"], *self.system, *last, *host["-idirafter"]]

    def _words(self) -> Iterator[Word]:
        yield from self._split(PREPEND, self.environment.get(PREPEND, ""))
        for index, argument in enumerate(self.arguments):
            yield Word(argument, (ARGUMENTS, index, index + 1))
        yield from self._split(APPEND, self.environment.get(APPEND, ""))

    def _split(self, home: str, text: str) -> Iterator[Word]:
        self.texts[home] = text
        for found in _WORD.finditer(text):
            yield Word(found.group().replace('"', ""), (home, found.start(), found.end()))

    def _read(self, words: Iterator[Word]) -> None:
        for word in words:
            text = word.text
            if not text.startswith("-") or text == "-":
                self.inputs.append(word)
                continue
            name, equals, value = text.lstrip("-").partition("=")
            name = _SHORT.get(name, name)
            if name in _WITH_VALUE:
                follower = Word(value, word.origin) if equals else next(words, None)
                if follower is not None:
                    self._option(name, follower, f"{text.partition('=')[0]}=" if equals else "")
            elif text[1:2] in _JOINED and not text.startswith("--"):
                self._option(text[1], Word(text[2:], word.origin), text[:2])
            else:
                self.flags.add(name)

    def _option(self, name: str, value: Word, lead: str) -> None:
        if name == "optf":
            reference = Word(lead + value.text, value.origin)
            for path in value.text.split(","):
                self._references.append((path, reference))
                self._options_file(path)
        elif name in ("I", "isystem"):
            self.folder_words.append(Word(lead + value.text, value.origin))
            (self.include if name == "I" else self.system).extend(filter(None, value.text.split(",")))
        elif name == "include":
            self.forced.append(Word(lead + value.text, value.origin))
        elif name == "D":
            self.macros += value.text.split(",")
        elif name == "Xcompiler":
            self._host_options += filter(None, _HOST_GAP.split(value.text))
        elif name == "o":
            self.output = value.text
        elif name == "odir":
            self.output_folder = value.text
        elif name == "MF":
            self.dependencies = value.text
        elif name == "x":
            self.language = value.text

    def _options_file(self, path: str) -> None:
        if path in self.texts:
            return
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        except OSError:
            return  # nvcc will say so
        self._read(self._split(path, text))

    def forced_files(self, search: Search) -> dict[str, str]:
        """Return the project's files of -include: by the name, where it leads, from the working folder on."""
        names = [name for word in self.forced for name in split_value(word.text)[1] if name]
        found = {name: search.resolve(name, False, "") for name in names}
        return {name: path for name, path in found.items() if path is not None}

    def with_words(
        self, changes: Mapping[Origin, str], save: Callable[[int, str], str]
    ) -> tuple[list[str], dict[str, str]]:
        """Return the arguments and the variables with some words replaced.

        Args:
            changes: the new words by the origins of the old ones.
            save: writes the text of an options file, which it is told the number of, and returns its path.
        """
        by_home: dict[str, dict[Origin, str]] = {}
        for origin, text in changes.items():
            by_home.setdefault(origin[0], {})[origin] = text
        # What names a file was read before it.
        for number, home in reversed(list(enumerate(self.texts))):
            if home not in by_home or home in (PREPEND, APPEND):
                continue
            path = save(number, self._spliced(home, by_home[home]))
            for named, word in self._references:
                if named == home:
                    known = by_home.setdefault(word.origin[0], {})
                    known[word.origin] = _with_path(known.get(word.origin, word.text), home, path)
        arguments, environment = list(self.arguments), dict(self.environment)
        for origin, text in by_home.get(ARGUMENTS, {}).items():
            arguments[origin[1]] = text
        for home in (PREPEND, APPEND):
            if home in by_home:
                environment[home] = self._spliced(home, by_home[home])
        return arguments, environment

    def _spliced(self, home: str, changes: Mapping[Origin, str]) -> str:
        text = self.texts[home]
        for (_, start, end), new in sorted(changes.items(), reverse=True):
            text = f"{text[:start]}{quoted(new)}{text[end:]}"
        return text


def _with_path(word: str, old: str, new: str) -> str:
    """Return the word that names options files with one of them replaced."""
    lead, names = split_value(word)
    return lead + ",".join(new if name == old else name for name in names)


def split_value(word: str) -> tuple[str, list[str]]:
    """Split a word at what leads its value (`-I`, `-include=` or nothing), and the value at its commas."""
    found = _LEAD.match(word)
    lead = found.group() if found else ""
    return lead, word[len(lead) :].split(",")


def quoted(word: str) -> str:
    """Return a word as an options file or a variable spells it."""
    return f'"{word}"' if any(char.isspace() for char in word) else word
