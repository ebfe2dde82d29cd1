"""``holdfast sql``: one statement against a running server, printed as a plain table."""

from __future__ import annotations

import sys

from sqllogictest.client import Client, ServerError, Target

TIMEOUT_S = 600.0


def run_sql(url: str, statement: str) -> int:
    """Run ``statement`` and print its rows, tab-separated; returns 0, or 1 after an error."""
    try:
        client = Client(Target.from_url(url), timeout_s=TIMEOUT_S)
    except (OSError, ValueError, ServerError) as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return 1
    try:
        result = client.run(statement)
    except (OSError, ServerError) as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    finally:
        client.close()
    for row in result.rows:
        print("\t".join("" if cell is None else cell for cell in row))
    print(result.tag, file=sys.stderr)
    return 0
