"""Fuzzing guided by coverage: ``python -m tests.fuzz [TARGET ...] --seconds N --seed S`` (``make fuzz SECONDS=n``).

    this process ──► one child per target, in turn: atheris (libFuzzer), which keeps what reaches new code and goes on from there
                        └── new inputs come of those by ``tests.fuzz.mutate``

An input that breaks a promise ends its child, is left in ``.fuzz/TARGET/`` and printed with how to run it again:
``python -m tests.fuzz TARGET --input FILE``. What was worth keeping stays in ``.fuzz/TARGET.corpus`` for the next run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

TARGETS = {
    "wire": ("pgwire.connection", "pgwire.messages.decode", "pgwire.messages.framing", "pgwire.messages.startup"),
    "values": ("pgwire.codecs",),
    "copy": ("pgwire.codecs",),
    "sql": ("planner.parse", "planner.raw", "planner.parse.beyond", "planner.parse.as_of", "planner.bind", "planner.lower", "planner.functions.registry"),
    "server": ("pgwire.connection", "pgwire.session", "pgwire.messages.decode", "engine.connection", "engine.session.transaction", "engine.plans", "engine.changes.writes"),
}  # fmt: skip
"""Each target with the modules whose coverage guides it."""
MIXED = ("wire", "values", "copy", "sql")
"""Those of the target ``mixed``, which spares a short run four starts: an input's first byte says which."""
MODULES = {**TARGETS, "mixed": TARGETS["wire"] + TARGETS["values"]}
"""``mixed`` is guided by the protocol alone: the planner's modules take twenty seconds to be made ready for it."""
FOLDER = Path(".fuzz")
MAX_BYTES = 8192
HANG_S = 120  # for one input; a machine under load is no finding
MEMORY_MB = 4096
_PROGRESS = re.compile(r"^#(\d+)\s.*?\bcov: (\d+) ft: (\d+)", re.MULTILINE)


def seeds(target: str) -> list[bytes]:
    """Return the inputs that a target begins with."""
    from tests.fuzz import corpus

    if target == "mixed":
        return [bytes([n]) + data for n, inner in enumerate(MIXED) for data in seeds(inner)]
    if target == "sql":
        return [text.encode() for text in corpus.statements()]
    if target == "wire":
        return [b"\3" + corpus.EXCHANGES[0] + piece for piece in corpus.EXCHANGES] + [
            b"\0" + corpus.startup(user="a") + corpus.frame(b"p", b"x") + corpus.conversation(text, number)
            for number, text in enumerate(corpus.statements()[::40])
        ]
    if target == "copy":
        return [bytes([n, n * 7, n * 3]) + text for n in range(12) for text in corpus.COPIES]
    if target == "server":
        chosen = corpus.statements()[::7]
        found = [b"\1" + corpus.conversation(text, number) for number, text in enumerate(chosen)]
        return (
            found
            + [b"\1" + piece for piece in corpus.EXCHANGES]
            + [b"\0" + piece for piece in corpus.EXCHANGES]
        )
    texts = (
        "1",
        "-1.5e3",
        "NaN",
        "{1,NULL,{2}}",
        "2020-02-29 12:00:00.5+02",
        "1 day 02:03",
        "10.0.0.0/8",
        '[1,"a"]',
        "$.a ? (@ > 1)",
        "t",
        "B'1'",
    )
    return [bytes([n, n << 7 & 255]) + text.encode() for n in range(0, 250, 9) for text in texts] + [
        bytes([n, 1]) + bytes(range(size)) for n in range(0, 250, 5) for size in (1, 4, 8, 16, 20)
    ]


def mutator(target: str) -> Callable[[bytes, int, int], bytes]:
    """Return libFuzzer's custom mutator: a third of the inputs are changed by bytes, the others in their shape."""
    from tests.fuzz import mutate as shape

    def change(data: bytes, limit: int, seed: int) -> bytes:
        rng = Random(seed)
        if target == "mixed":
            which = data[:1] or b"\0"
            return which + mutator(MIXED[which[0] % len(MIXED)])(data[1:], limit - 1, seed)
        if target in ("values", "copy") or rng.random() < 0.33:
            return shape.octets(data, rng)[:limit]
        if target == "sql":
            return shape.sql(data.decode("utf-8", "replace"), rng).encode("utf-8", "surrogatepass")[:limit]
        head = data[:1] if rng.random() < 0.9 else bytes([rng.randrange(64)])
        return (head + shape.messages(data[1:], rng))[:limit]

    return change


def child(target: str, arguments: list[str]) -> None:
    """Fuzz one target in this process; does not return."""
    import atheris

    with atheris.instrument_imports(include=list(MODULES[target])):
        run = function(target)
    atheris.Setup([sys.argv[0], *arguments], run, custom_mutator=mutator(target))
    atheris.Fuzz()


def function(target: str) -> Callable[[bytes], None]:
    """Return what runs one input."""
    from tests.fuzz import targets

    if target == "mixed":
        parts = [function(inner) for inner in MIXED]
        return lambda data: parts[data[0] % len(parts)](data[1:]) if data else None
    if target != "server":
        found: Callable[[bytes], None] = getattr(targets, target)
        return found
    from tests.fuzz.server import World

    return World().play


def fuzz(target: str, *, seconds: int, runs: int, seed: int, folder: Path, thin: int = 1) -> tuple[int, str]:
    """Run a child, beginning with every ``thin``-th seed; return its exit status and a line about it."""
    start, kept, found = folder / f"{target}.seeds", folder / f"{target}.corpus", folder / target
    for path in (start, kept, found):
        path.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(target)[::thin]):
        (start / f"{number:05}").write_bytes(data[:MAX_BYTES])
    command = [
        sys.executable, "-m", "tests.fuzz", target, "--child", str(kept), str(start), f"-artifact_prefix={found}/",
        f"-max_len={MAX_BYTES}", f"-timeout={HANG_S}", f"-rss_limit_mb={MEMORY_MB}", f"-seed={seed}", "-len_control=0",
        *([f"-runs={runs}"] if runs else []), *([f"-max_total_time={seconds}"] if seconds else []),
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as temporary:
        # libFuzzer ends a child without Python's own end: what it keeps in temporary files is ours to remove
        environment = {**os.environ, "PYTHONHASHSEED": "0", "TMPDIR": temporary}
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    said = _PROGRESS.findall(done.stdout)
    executions, edges, features = said[-1] if said else ("0", "0", "0")
    line = f"{target:8} seed {seed}: {executions} inputs, {edges} branches, {features} features"
    if done.returncode:
        line += f"\n{done.stdout[-6000:]}\nagain: python -m tests.fuzz {target} --input {found}/..."
    return done.returncode, line


def main() -> int:
    """Run what the command line says; 1 if an input broke a promise."""
    if "--child" in sys.argv:
        child(sys.argv[1], sys.argv[sys.argv.index("--child") + 1 :])
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("targets", nargs="*", default=[], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=100, help="for all targets together")
    parser.add_argument("--runs", type=int, default=0, help="inputs of each target, instead of seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--input", type=Path, help="run one input and nothing else")
    options = parser.parse_args()
    chosen = options.targets or list(TARGETS)
    if options.input is not None:
        function(chosen[0])(options.input.read_bytes())
        return 0
    failed = False
    for target in chosen:
        seconds = 0 if options.runs else max(1, options.seconds // len(chosen))
        status, line = fuzz(
            target, seconds=seconds, runs=options.runs, seed=options.seed, folder=options.folder
        )
        print(line, flush=True)
        failed = failed or status != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
