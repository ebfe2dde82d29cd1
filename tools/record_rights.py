"""Write down what a PostgreSQL 15 answers in the walk of rights: ``tests/rights/expected.json``.

    python tools/record_rights.py "host=127.0.0.1 port=5432 user=postgres dbname=postgres"

The server has to be fresh: roles, a schema and a database are made in it, and stay. For every case, role and way of running there is
a SQLSTATE; a role that is not there is answered as the one under "", which has no right at all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.rights.cases import CASES  # noqa: E402
from tests.rights.play import MODES, Outcomes, Walk, applies, folded, may_run_alone  # noqa: E402
from tests.rights.world import ACTORS, STRANGER  # noqa: E402

EXPECTED = ROOT / "tests" / "rights" / "expected.json"


def record(dsn: str) -> dict[str, dict[str, Outcomes]]:
    """Return SQLSTATEs by statement, way of running and role."""
    found: dict[str, dict[str, Outcomes]] = {}
    with Walk(dsn) as walk:
        walk.set_up()
        for case in CASES:
            entry: dict[str, Outcomes] = {}
            in_block = walk.outcomes(case, "block", ACTORS)
            entry["block"] = folded(in_block, STRANGER)
            alone = [actor for actor in ACTORS if may_run_alone(case, in_block[actor])]
            outcomes = walk.outcomes(case, "alone", alone)
            if STRANGER in outcomes:
                entry["alone"] = folded(outcomes, STRANGER)
                for actor in ACTORS:
                    if actor not in outcomes:
                        entry["alone"][actor] = ""
            if applies(case, MODES[2]):
                entry["prepared"] = folded(walk.outcomes(case, "prepared", ACTORS), STRANGER)
            found[case.sql] = entry
    return found


def main() -> int:
    """Record, and write the file."""
    found = record(sys.argv[1])
    lines = [f"{json.dumps(sql)}: {json.dumps(entry)}" for sql, entry in found.items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
