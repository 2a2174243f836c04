# SPDX-License-Identifier: Apache-2.0
"""Fuzz every reader: `make fuzz`.

python tests/fuzzing/run.py [--inputs 10000] [--start SEED] [--target NAME ...]
python tests/fuzzing/run.py --atheris NAME [-runs=100000 ...]

An input that finds a fault is kept in tests/fuzzing/seeds, which `test_fuzzing.py` reads; the exit status is 1 then.
With `--atheris` that fuzzer, which follows the coverage, draws the bytes itself (requirements/fuzz.txt).
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from fuzzing.scanning import PIECES  # noqa: E402
from fuzzing.targets import TARGETS, faults  # noqa: E402

SEEDS = Path(__file__).parent / "seeds"
#: Bytes that the process may take, whatever an input says about sizes.
MEMORY = 4 << 30


def keep(name: str, data: bytes) -> Path:
    """Keep an input that found a fault."""
    SEEDS.mkdir(exist_ok=True)
    path = SEEDS / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"
    path.write_bytes(data)
    return path


def fuzz(name: str, start: int, count: int) -> int:
    """Read as many inputs; return how many found a fault."""
    found, read, begun, slowest = 0, 0, time.process_time(), 0.0
    for seed in range(start, start + count):
        data = TARGETS[name].draw(random.Random(f"{name} {seed}"))
        before = time.process_time()
        fault = faults(name, data)
        slowest, read = max(slowest, time.process_time() - before), read + 1
        if fault:
            found += 1
            print(f"{name} {seed}: {fault}\n  kept: {keep(name, data)}", flush=True)
            if found == 20:
                break
    used = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{name}: {read} inputs, {found} faults, {used:.0f} s, slowest {slowest:.2f} s, peak {peak} MiB", flush=True)
    return found


def with_atheris(name: str, arguments: list[str]) -> None:
    """Let atheris draw the inputs of a target; it ends the process."""
    import atheris

    def one(data: bytes) -> None:
        if name == "scanner":
            # A byte chooses a piece of text: bytes alone would hardly ever spell an annotation.
            data = "".join(PIECES[byte % len(PIECES)] for byte in data[:60]).encode()
        fault = faults(name, data)
        if fault:
            print(f"kept: {keep(name, data)}", flush=True)
            raise RuntimeError(fault)

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz every reader.")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--target", action="append", choices=TARGETS)
    parser.add_argument("--atheris", choices=TARGETS)
    options, rest = parser.parse_known_args()
    if options.atheris:
        with_atheris(options.atheris, rest)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = sum(fuzz(name, options.start, options.inputs) for name in options.target or TARGETS)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
