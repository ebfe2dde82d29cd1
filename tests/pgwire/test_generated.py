"""Generated files say what the facts say."""

from __future__ import annotations

from pathlib import Path

from pgwire import oids, sqlstate
from tools.gen_pg_tables import oids as generate_oids
from tools.gen_pg_tables import sqlstates as generate_sqlstates

PGWIRE = Path(oids.__file__).parent


def test_oids_and_sqlstates_are_up_to_date() -> None:
    assert (PGWIRE / "oids.py").read_text(encoding="utf-8") == generate_oids()
    assert (PGWIRE / "sqlstate.py").read_text(encoding="utf-8") == generate_sqlstates()


def test_the_numbers_everyone_knows() -> None:
    assert (oids.BOOL, oids.INT4, oids.TEXT, oids.NUMERIC, oids.INT4_ARRAY) == (16, 23, 25, 1700, 1007)
    assert oids.ARRAY_OF[oids.TEXT] == oids.TEXT_ARRAY
    assert oids.ELEMENT_OF[oids.TEXT_ARRAY] == oids.TEXT
    assert oids.INT2VECTOR in oids.ELEMENT_OF
    assert oids.NAME not in oids.ELEMENT_OF
    assert sqlstate.PROTOCOL_VIOLATION == "08P01"
    assert sqlstate.CONDITION_NAME["23505"] == "unique_violation"
