"""client_min_messages = debug1 tells which indexes constraints bring along (sequences: ``tests/differential/wire/debug.wire``)."""

from __future__ import annotations

import psycopg

from tests.support.server import ServerProcess


def test_indexes_of_constraints_are_told(server: ServerProcess) -> None:
    told: list[tuple[str | None, str | None]] = []
    with psycopg.connect(server.url, autocommit=True, options="-c client_min_messages=debug1") as connection:
        connection.add_notice_handler(
            lambda report: told.append((report.severity_nonlocalized, report.message_primary))
        )
        connection.execute("CREATE TABLE indexed (id int UNIQUE, v int, PRIMARY KEY (v))")
        connection.execute(
            "ALTER TABLE indexed ADD CONSTRAINT both_of UNIQUE (id, v), ADD EXCLUDE (v WITH =)"
        )
        connection.execute("DROP TABLE indexed")
    assert told == [
        (
            "DEBUG",
            'CREATE TABLE / PRIMARY KEY will create implicit index "indexed_pkey" for table "indexed"',
        ),
        ("DEBUG", 'CREATE TABLE / UNIQUE will create implicit index "indexed_id_key" for table "indexed"'),
        ("DEBUG", 'ALTER TABLE / ADD UNIQUE will create implicit index "both_of" for table "indexed"'),
        (
            "DEBUG",
            'ALTER TABLE / ADD EXCLUDE will create implicit index "indexed_v_excl" for table "indexed"',
        ),
    ]
