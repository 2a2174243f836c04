# SPDX-License-Identifier: Apache-2.0
"""Reports as SARIF 2.1.0, the format in which CI systems take findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .report import Finding, Report
from .rules import RULES, Severity

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def as_sarif(reports: Iterable[Report], version: str) -> dict[str, Any]:
    """Return reports as one SARIF log; a finding with a source line points there, any other to the binary."""
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "help": {"text": rule.remedy},
            "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        }
        for rule in RULES.values()
    ]
    driver = {"name": "iket-verify", "version": version, "rules": rules}
    results = [_result(finding) for report in reports for finding in report.findings]
    return {
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(finding.source or finding.file)}}}
    if finding.source and finding.line:
        location["physicalLocation"]["region"] = {"startLine": finding.line}
    if finding.kernel:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.kernel, "kind": "function"}]
    properties = {"binary": _text(finding.file), "image": finding.image, "address": finding.address}
    return {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}. Fix: {finding.remedy}."},
        "locations": [location],
        "properties": {key: value for key, value in properties.items() if value not in (None, "")},
    }


def _uri(path: str) -> str:
    """Return a path as SARIF wants it: absolute ones with their scheme, relative ones quoted."""
    return Path(path).as_uri() if os.path.isabs(path) else quote(os.fsencode(path))


def _text(name: str) -> str:
    """Return a name that any reader of JSON takes: a file's name may hold bytes that are no text."""
    return os.fsencode(name).decode("utf-8", "replace")
