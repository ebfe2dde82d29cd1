"""A server with the objects that these tests look at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.postgres import postgres
from tests.support.server import ServerProcess

__all__ = ["postgres", "server"]

# The same statements make the objects on PostgreSQL, so that what clients are shown can be compared.
OBJECTS = """
CREATE TABLE emp (
    id int PRIMARY KEY,
    name varchar(20) NOT NULL DEFAULT 'x',
    salary numeric(10,2) DEFAULT 1 + 2,
    hired timestamptz DEFAULT now(),
    tags text[],
    CONSTRAINT salary_positive CHECK (salary > 0 AND name <> '')
);
CREATE TABLE "Odd Name" (a int UNIQUE, "B c" text, u uuid);
CREATE INDEX emp_name ON emp (name DESC, salary);
CREATE VIEW rich AS SELECT id, name FROM emp WHERE salary > 10;
CREATE SCHEMA sales;
CREATE TABLE sales.orders (id bigint PRIMARY KEY, emp_id int NOT NULL, note text);
CREATE UNIQUE INDEX orders_by_emp ON sales.orders (emp_id, id);
CREATE VIEW sales.notes AS SELECT o.note, e.name FROM sales.orders o JOIN emp e ON e.id = o.emp_id;
CREATE TABLE shift (
    emp int REFERENCES emp ON DELETE CASCADE ON UPDATE RESTRICT,
    day date,
    swapped_with int CONSTRAINT swap REFERENCES emp (id) MATCH FULL DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT one_a_day UNIQUE (emp, day) DEFERRABLE,
    CONSTRAINT not_alone CHECK (emp <> swapped_with)
);
ALTER TABLE sales.orders ADD CONSTRAINT seller FOREIGN KEY (emp_id) REFERENCES emp ON DELETE SET DEFAULT NOT VALID;
COMMENT ON TABLE emp IS 'who works here';
COMMENT ON COLUMN emp.name IS 'family name';
COMMENT ON SCHEMA sales IS 'what is sold';
COMMENT ON VIEW rich IS 'who earns more';
COMMENT ON INDEX emp_name IS 'by name';
CREATE TEXT SEARCH DICTIONARY few (TEMPLATE = simple, STOPWORDS = french, ACCEPT = false);
CREATE TEXT SEARCH CONFIGURATION seeking (COPY = french);
ALTER TEXT SEARCH CONFIGURATION seeking ALTER MAPPING FOR word, asciiword WITH few, simple;
COMMENT ON TEXT SEARCH CONFIGURATION seeking IS 'French by a few words';
CREATE ROLE bob LOGIN;
"""


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("catalog"))
    client = running.connect()
    for statement in OBJECTS.split(";\n"):
        if statement.strip():
            client.run(statement)
    client.close()
    yield running
    assert running.stop() == 0
