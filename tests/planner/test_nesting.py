"""What is stored may nest less deep than what only runs, so that it can be used and printed later."""

from __future__ import annotations

import pytest

from planner.base.errors import SqlError
from planner.bind.query import nesting
from planner.parse import parse

LEVELS = 30
DEEP = "abs(" * LEVELS + "1" + ")" * LEVELS
STORED = (
    f"CREATE TABLE t (a int CHECK ({DEEP} > 0))",
    f"CREATE TABLE t (a int DEFAULT {DEEP})",
    f"CREATE TABLE t (a int GENERATED ALWAYS AS ({DEEP}) STORED)",
    f"CREATE TABLE t (a int) PARTITION BY RANGE (({DEEP}))",
    f"ALTER TABLE t ADD CHECK ({DEEP} > 0)",
    f"ALTER TABLE t ALTER a SET DEFAULT {DEEP}",
    f"CREATE VIEW v AS SELECT {DEEP}",
    f"CREATE MATERIALIZED VIEW v AS SELECT {DEEP}",
    f"CREATE SCHEMA s CREATE VIEW v AS SELECT {DEEP}",
    f"CREATE INDEX ON t (({DEEP}))",
    f"CREATE INDEX ON t (a) WHERE {DEEP} > 0",
    f"CREATE DOMAIN d AS int CHECK ({DEEP} > 0)",
    f"ALTER DOMAIN d SET DEFAULT {DEEP}",
    f"CREATE FUNCTION f() RETURNS int RETURN {DEEP}",
    f"CREATE FUNCTION f(a int DEFAULT {DEEP}) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    f"CREATE POLICY p ON t USING ({DEEP} > 0)",
    f"ALTER POLICY p ON t WITH CHECK ({DEEP} > 0)",
    f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW WHEN ({DEEP} > 0) EXECUTE FUNCTION f()",
    f"CREATE SUBSCRIPTION s FOR (SELECT {DEEP})",
)
RUN = (
    f"SELECT {DEEP}",
    f"CREATE TABLE t AS SELECT {DEEP}",
    f"INSERT INTO t VALUES ({DEEP})",
    f"CREATE TABLE t (a int CHECK ({' AND '.join(f'a <> {n}' for n in range(10 * LEVELS))}))",
)


@pytest.mark.parametrize("text", STORED)
def test_a_definition_has_a_bound_of_its_own(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (parsed,) = parse(text)
    nesting.check_nesting(parsed.statement, text)
    monkeypatch.setattr(nesting, "MAX_LEVELS", LEVELS)
    with pytest.raises(SqlError) as refused:
        nesting.check_nesting(parsed.statement, text)
    assert refused.value.sqlstate == "54001"
    assert f"{LEVELS} levels" in str(refused.value.hint)


@pytest.mark.parametrize("text", RUN)
def test_what_is_not_stored_and_what_is_long_but_flat_has_none(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nesting, "MAX_LEVELS", LEVELS)
    (parsed,) = parse(text)
    nesting.check_nesting(parsed.statement, text)
