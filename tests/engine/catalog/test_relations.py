"""Every relation of pg_catalog and information_schema can be read, and has PostgreSQL's columns."""

from __future__ import annotations

from collections import defaultdict

import pytest

from engine.catalog.relations.builtin_relations import OWN_RELATIONS, virtual_relations
from engine.catalog.relations.sources import SOURCES
from planner.facts import facts, rows
from tests.support.server import ServerProcess


def _declared() -> dict[str, list[str]]:
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in rows("catalog_columns"):
        if int(row["attnum"]) > 0:
            found[f"{row['schema']}.{row['relation']}"].append((int(row["attnum"]), row["attname"]))
    return {name: [column for _, column in sorted(columns)] for name, columns in found.items()}


def test_relations_have_the_columns_of_the_facts() -> None:
    served = {f"{r.schema}.{r.name}": [c.name for c in r.columns] for r in virtual_relations()}
    own = {
        f"pg_catalog.{name}": [column for column, _ in columns]
        for name, (_, columns) in OWN_RELATIONS.items()
    }
    assert {name: served.pop(name) for name in own} == own
    assert served == _declared()


def test_makers_belong_to_relations() -> None:
    assert set(SOURCES) <= set(_declared()) | {f"pg_catalog.{name}" for name in OWN_RELATIONS}


def test_every_relation_can_be_read(server: ServerProcess) -> None:
    client = server.connect()
    failures: list[str] = []
    for name in _declared():
        schema, relation = name.split(".")
        try:
            client.run(f'SELECT * FROM {schema}."{relation}"')
        except Exception as error:
            failures.append(f"{name}: {error}")
    client.close()
    assert not failures


# References between catalogs: (column, what it refers to); 0 and NULL refer to nothing.
REFERENCES = (
    ("pg_class.relnamespace", "pg_namespace.oid"),
    ("pg_class.relowner", "pg_authid.oid"),
    ("pg_class.reltype", "pg_type.oid"),
    ("pg_class.relam", "pg_am.oid"),
    ("pg_attribute.attrelid", "pg_class.oid"),
    ("pg_attribute.atttypid", "pg_type.oid"),
    ("pg_attrdef.adrelid", "pg_class.oid"),
    ("pg_index.indexrelid", "pg_class.oid"),
    ("pg_index.indrelid", "pg_class.oid"),
    ("pg_constraint.conrelid", "pg_class.oid"),
    ("pg_constraint.conindid", "pg_class.oid"),
    ("pg_type.typnamespace", "pg_namespace.oid"),
    ("pg_type.typbasetype", "pg_type.oid"),
    ("pg_type.typelem", "pg_type.oid"),
    ("pg_type.typarray", "pg_type.oid"),
    ("pg_type.typrelid", "pg_class.oid"),
    ("pg_type.typinput", "pg_proc.oid"),
    ("pg_proc.pronamespace", "pg_namespace.oid"),
    ("pg_proc.prolang", "pg_language.oid"),
    ("pg_proc.prorettype", "pg_type.oid"),
    ("pg_operator.oprcode", "pg_proc.oid"),
    ("pg_amproc.amproc", "pg_proc.oid"),
    ("pg_amop.amopopr", "pg_operator.oid"),
    ("pg_opclass.opcfamily", "pg_opfamily.oid"),
    ("pg_rewrite.ev_class", "pg_class.oid"),
    ("pg_cast.castsource", "pg_type.oid"),
    ("pg_range.rngtypid", "pg_type.oid"),
)


@pytest.mark.parametrize(("column", "target"), REFERENCES)
def test_oids_refer_to_rows_that_are_there(server: ServerProcess, column: str, target: str) -> None:
    table, name = column.split(".")
    other, key = target.split(".")
    dangling = server.sql(
        f"SELECT DISTINCT {name}::oid FROM {table} WHERE {name}::oid <> 0"
        f" AND {name}::oid NOT IN (SELECT {key} FROM {other})"
    )
    assert dangling == []


@pytest.mark.parametrize(
    "table", ["pg_class", "pg_type", "pg_proc", "pg_attrdef", "pg_constraint", "pg_rewrite"]
)
def test_oids_are_unique(server: ServerProcess, table: str) -> None:
    assert server.sql(f"SELECT oid FROM {table} GROUP BY oid HAVING count(*) > 1") == []


def test_sequences_have_no_row_type(server: ServerProcess) -> None:
    client = server.connect()
    client.run("BEGIN")
    client.run("CREATE SEQUENCE counter")
    client.run("CREATE TABLE counted (a int)")
    names = "SELECT typname FROM pg_type WHERE typname ~ 'count' ORDER BY typname COLLATE \"C\""
    assert client.run(names).rows == [("_counted",), ("counted",)]
    assert client.run("SELECT oid FROM pg_type GROUP BY oid HAVING count(*) > 1").rows == []
    assert client.run("SELECT reltype FROM pg_class WHERE relname = 'counter'").rows == [("0",)]
    client.run("ROLLBACK")
    client.close()


def test_information_schema_says_character_without_a_length(server: ServerProcess) -> None:
    client = server.connect()
    client.run("BEGIN")
    client.run("CREATE TABLE padded (a char(8), b varchar(3), c numeric(5,2))")
    kinds = "SELECT data_type, udt_name FROM information_schema.columns WHERE table_name = 'padded' ORDER BY ordinal_position"
    assert client.run(kinds).rows == [
        ("character", "bpchar"), ("character varying", "varchar"), ("numeric", "numeric"),
    ]  # fmt: skip
    client.run("ROLLBACK")
    client.close()


def test_a_transaction_sees_its_own_ddl_in_the_catalog(server: ServerProcess) -> None:
    client, other = server.connect(), server.connect()
    query = "SELECT count(*) FROM pg_class WHERE relname = 'mine'"
    client.run("BEGIN")
    client.run("CREATE TABLE mine (a int)")
    assert client.run(query).rows == [("1",)]
    assert other.run(query).rows == [("0",)]
    client.run("ROLLBACK")
    assert client.run(query).rows == [("0",)]
    client.close()
    other.close()


def test_every_built_in_type_of_a_column_is_a_fact() -> None:
    types = facts().types
    for relation in virtual_relations():
        for column in relation.columns:
            assert column.type.oid in types, f"{relation.name}.{column.name}"
