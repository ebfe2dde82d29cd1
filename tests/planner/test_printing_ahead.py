"""Dialects are loaded by a thread at start: a statement that needs one meanwhile waits until it is whole."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import threading
import sqlglot.dialects.dialect as dialect
from sqlglot import exp
from planner.lower import build

registered, goes_on, make = threading.Event(), threading.Event(), dialect.new_trie

def held(words):  # the class is registered by then, and has no printer of its own yet
    if threading.current_thread() is loading and "duckdb" in dialect.Dialect._classes:
        registered.set()
        goes_on.wait(10)
    return make(words)

dialect.new_trie = held
loading = threading.Thread(target=build.preload)
loading.start()
assert registered.wait(10)
threading.Timer(0.2, goes_on.set).start()
print(build.text_of(exp.Array(expressions=[exp.Literal.number(1)]), "duckdb"))
loading.join()
"""


def test_a_dialect_that_a_thread_is_loading_is_not_taken_half_made() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[1]", done.stdout + done.stderr
