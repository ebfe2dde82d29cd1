"""``python -m tests.hostile.observer PORT``: a client that runs SELECT 1 all the time, and says how long it waited at most.

    reset   ->  ok                          counts anew from the next statement on
    report  ->  {"longest_ms": .., "statements": ..}   the one under way is part of it

A process of its own, so that nothing the test does is taken for a wait.
"""

from __future__ import annotations

import json
import select
import sys
import time

from tests.support.fields import connect

PAUSE_S = 0.0005


def main() -> int:
    client = connect(int(sys.argv[1]), timeout_s=600.0)
    longest, statements = 0.0, 0
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], PAUSE_S)
        if ready:
            word = sys.stdin.readline().strip()
            if not word:
                return 0
            if word == "reset":
                longest, statements = 0.0, 0
                print("ok", flush=True)
            else:
                print(json.dumps({"longest_ms": longest * 1000, "statements": statements}), flush=True)
        began = time.perf_counter()
        client.run("SELECT 1")
        longest = max(longest, time.perf_counter() - began)
        statements += 1


if __name__ == "__main__":
    sys.exit(main())
