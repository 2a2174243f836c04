# SPDX-License-Identifier: Apache-2.0
"""What the site has beside the pages in docs/: measured results, the changes, and the commands' help.

The pages are read in the repository too, so their links name files of the repository.  Those that the site holds as
pages are turned into links to them; any other becomes plain text, for a site has no folder of sources to show.  A link
to what is not there ends the build.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
#: Files of the repository that are pages of the site, by their path in it.
OUTSIDE = {
    "CHANGELOG.md": "results/changes.md",
    "tests/gpu/README.md": "results/gpu_tests.md",
    **{f"benchmarks/results/{path.name}": f"results/{path.name}" for path in ROOT.glob("benchmarks/results/*.md")},
}
_HOME = {page: path for path, page in OUTSIDE.items()}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_HELP = re.compile(r"^<!-- help: iket-(\w+) ?([\w-]*) -->$", re.MULTILINE)
_log = logging.getLogger("mkdocs.hooks.iket")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose files lie elsewhere."""
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links of the site, and fill in the commands' help."""
    # The text may stand elsewhere than the page: its links count from where it is written.
    home = PurePosixPath(_HOME.get(page.file.src_uri, f"docs/{page.file.src_uri}"))
    pieces = _FENCE.split(markdown)
    pieces[::2] = [_LINK.sub(lambda link: _linked(link, home, page.file.src_uri), text) for text in pieces[::2]]
    return _HELP.sub(lambda marker: _help(*marker.groups()), "".join(pieces))


def _linked(link: re.Match[str], home: PurePosixPath, page: str) -> str:
    text, path, anchor = link.groups()
    if re.match(r"\w+:", path):
        return link.group()
    target = posixpath.normpath(str(home.parent / path))
    if not (ROOT / target).exists():
        _log.warning("%s: a link to %s, which is not there", home, path)
        return link.group()
    if target.startswith("docs/"):
        target = target.removeprefix("docs/")
    elif target in OUTSIDE:
        target = OUTSIDE[target]
    else:
        return text if text == target else f"{text} (`{target}`)"
    return f"[{text}]({posixpath.relpath(target, posixpath.dirname(page) or '.')}{anchor or ''})"


def _help(command: str, subcommand: str) -> str:
    """Return what a command prints about itself."""
    os.environ["COLUMNS"] = "100"
    main = importlib.import_module(f"iket_rewrite.cli.{command}_command").main
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([*([subcommand] if subcommand else []), "--help"])
    if not printed.getvalue():
        _log.warning("iket-%s %s prints no help", command, subcommand)
    return f"```text\n{printed.getvalue().rstrip()}\n```"
