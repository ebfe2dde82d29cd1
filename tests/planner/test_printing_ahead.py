"""Dialects are loaded by a thread at start: a statement that needs one meanwhile waits until it is whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import threading
import sqlglot.dialects.dialect as dialect
from sqlglot import exp
from planner.lower.kit import build

registered, goes_on, make = threading.Event(), threading.Event(), dialect.new_trie

def held(words):  # the class is registered by then, and has no printer of its own yet
    if threading.current_thread() is loading and "duckdb" in dialect.Dialect._classes:
        registered.set()
        goes_on.wait(10)
    return make(words)

def generator(self, **options):  # what the thread makes of the dialect is whole before the statement prints by it
    printer = made(self, **options)
    if threading.current_thread() is not loading:
        goes_on.set()
        loading.join()
    return printer

made = dialect.Dialect.generator
if %(late)s:
    dialect.Dialect.generator = generator
dialect.new_trie = held
loading = threading.Thread(target=build.preload)
loading.start()
assert registered.wait(10)
threading.Timer(0.2, goes_on.set).start()
print(build.text_of(exp.Array(expressions=[exp.cast(exp.Star(), "BIGINT")]), "duckdb"))
loading.join()
"""


@pytest.mark.parametrize("late", [False, True])
def test_a_dialect_that_a_thread_is_loading_is_not_taken_half_made(late: bool) -> None:
    """``late``: the statement goes on once it is whole. With the half-made printer and its functions SELECT count(*) was XX000, a TypeError."""
    script = SCRIPT % {"late": late}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[CAST(* AS BIGINT)]", done.stdout + done.stderr
