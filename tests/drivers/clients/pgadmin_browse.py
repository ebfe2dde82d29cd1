"""pgAdmin 4: its own web application, asked over HTTP for what its tree, its SQL, dependency and dashboard tabs show.

What the tree has below a schema is walked whole, and the SQL that pgAdmin writes of each object is run in another database.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import sys
import tempfile
import types
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from steps import ADDRESS, run, same, step

SCHEMA = """
    CREATE SCHEMA s;
    CREATE TYPE s.mood AS ENUM ('sad', 'happy');
    CREATE TYPE s.pair AS (a int, b text);
    CREATE DOMAIN s.positive AS int CHECK (VALUE > 0);
    CREATE SEQUENCE s.numbers INCREMENT 5;
    CREATE TABLE s.parent (id serial PRIMARY KEY, m s.mood DEFAULT 'sad', j jsonb, p s.pair, CONSTRAINT small CHECK (id < 1000));
    CREATE TABLE s.child (id int GENERATED ALWAYS AS IDENTITY, of int REFERENCES s.parent ON DELETE CASCADE, n s.positive, UNIQUE (of, n));
    CREATE INDEX by_mood ON s.parent (m DESC, id) WHERE id > 5;
    COMMENT ON TABLE s.parent IS 'everybody';
    CREATE VIEW s.happy AS SELECT id, j FROM s.parent WHERE m = 'happy';
    CREATE MATERIALIZED VIEW s.counted AS SELECT count(*) AS n FROM s.child;
    CREATE FUNCTION s.twice(a int, b text DEFAULT 'x') RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a * 2';
    CREATE PROCEDURE s.forget(k int) LANGUAGE sql AS 'DELETE FROM s.child WHERE id = k';
"""
IN_SCHEMA = ("table", "view", "mview", "function", "procedure", "sequence", "domain", "type", "trigger_function", "collation",
             "aggregate", "operator", "fts_configuration", "fts_dictionary", "fts_parser", "fts_template", "foreign_table")  # fmt: skip
IN_TABLE = ("column", "index", "primary_key", "unique_constraint", "foreign_key", "exclusion_constraint", "trigger", "rule",
            "row_security_policy", "partition")  # fmt: skip
IN_DATABASE = (
    "schema",
    "catalog",
    "cast",
    "extension",
    "event_trigger",
    "foreign_data_wrapper",
    "language",
    "publication",
    "subscription",
)
DASHBOARD = ("activity/{s}/{d}", "locks/{s}/{d}", "prepared/{s}/{d}", "config/{s}", "replication_slots/{s}",
             "dashboard_stats/{s}/{d}?chart_names=session_stats,tps_stats,ti_stats,to_stats,bio_stats")  # fmt: skip
DATABASE = "pgadmin_browsed"
COPY = "pgadmin_copied"
TABLE_SQL = """CREATE TABLE IF NOT EXISTS s.child
(
    id integer NOT NULL GENERATED ALWAYS AS IDENTITY ( INCREMENT 1 START 1 MINVALUE 1 MAXVALUE 2147483647 CACHE 1 ),
    of integer,
    n s.positive,
    CONSTRAINT child_of_n_key UNIQUE (of, n),
    CONSTRAINT child_of_fkey FOREIGN KEY (of)
        REFERENCES s.parent (id) MATCH SIMPLE
        ON UPDATE NO ACTION
        ON DELETE CASCADE
)"""


def database(name: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=ADDRESS.host, port=ADDRESS.port, user=ADDRESS.user, dbname=name, autocommit=True
    )


def start(folder: Path) -> Any:
    """Start pgAdmin in this process with a directory of its own."""
    package = find_spec("pgadmin4")
    assert package is not None
    assert package.submodule_search_locations is not None
    home = next(iter(package.submodule_search_locations))
    sys.path.insert(0, home)
    os.chdir(home)
    builtins.SERVER_MODE = False  # type: ignore[attr-defined]
    local = types.ModuleType("config_local")
    for name, value in {
        "DATA_DIR": folder, "LOG_FILE": folder / "log", "SQLITE_PATH": folder / "pgadmin.db", "SESSION_DB_PATH": folder / "sessions",
        "STORAGE_DIR": folder / "storage", "AZURE_CREDENTIAL_CACHE_DIR": folder / "azure", "KERBEROS_CCACHE_DIR": folder / "kerberos",
        "MASTER_PASSWORD_REQUIRED": False, "USE_OS_SECRET_STORAGE": False, "UPGRADE_CHECK_ENABLED": False,
    }.items():  # fmt: skip
        setattr(local, name, str(value) if isinstance(value, Path) else value)
    sys.modules["config_local"] = local
    import config  # noqa: F401  # pgAdmin's, which has to come first
    from pgadmin import create_app

    app = create_app()
    app.PGADMIN_RUNTIME, app.PGADMIN_INT_KEY = False, ""
    app.run_before_app_start()
    app.config["WTF_CSRF_ENABLED"] = False
    return app


class Browser:
    """A client of pgAdmin that is connected to the server."""

    def __init__(self) -> None:
        from pgadmin.model import Server, ServerGroup, User, db

        with APP.app_context():
            server = Server(
                user_id=User.query.first().id, servergroup_id=ServerGroup.query.first().id, name="tested",
                host=ADDRESS.host, port=ADDRESS.port, maintenance_db=ADDRESS.database, username=ADDRESS.user,
                connection_params={"sslmode": "prefer", "connect_timeout": 10}, comment="",
            )  # fmt: skip
            db.session.add(server)
            db.session.commit()
            self.group, self.server = server.servergroup_id, server.id
        self.client = APP.test_client()
        self.client.get("/browser/")
        self.database = 0

    def ask(self, path: str, method: str = "get") -> Any:
        """Return what pgAdmin answers; every answer but 200 is a failure."""
        answer = getattr(self.client, method)(path, json={"password": ""} if method == "post" else None)
        said = json.loads(answer.data)
        if answer.status_code != 200:
            raise AssertionError(f"{answer.status_code} {path}: {said}")
        return said["data"] if isinstance(said, dict) and "data" in said else said

    def nodes(self, kind: str, *above: int) -> dict[str, int]:
        """Return label and id of the nodes of a kind below what ``above`` names, whose properties are asked for, too."""
        base = "/".join(
            map(str, (self.group, self.server, *([self.database] if self.database else []), *above))
        )
        found = self.ask(f"/browser/{kind}/nodes/{base}/")
        if kind != "foreign_key":  # whose list of properties pgAdmin 9.18 cannot make
            self.ask(f"/browser/{kind}/obj/{base}/")
        return {node["label"]: node["_id"] for node in found}

    def tab(self, kind: str, tab: str, *path: int) -> Any:
        """Return what a tab shows of a node."""
        return self.ask(
            f"/browser/{kind}/{tab}/{self.group}/{self.server}/{self.database}/{'/'.join(map(str, path))}"
        )


APP = start(Path(tempfile.mkdtemp(prefix="pgadmin-")))
BROWSER = Browser()
OBJECTS: dict[tuple[str, str], str] = {}
"""(kind, label) -> the SQL that pgAdmin writes of it."""


@step("connect, databases and roles")
def connect() -> None:
    with database(ADDRESS.database) as connection:
        for name in (DATABASE, COPY):
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name}")
    with database(DATABASE) as connection:
        connection.execute(SCHEMA)
    told = BROWSER.ask(f"/browser/server/connect/{BROWSER.group}/{BROWSER.server}", "post")
    same((told["connected"], told["in_recovery"], told["user"]["is_superuser"]), (True, False, True))
    databases = BROWSER.nodes("database")
    same({DATABASE, COPY} <= set(databases), True)
    same("postgres" in BROWSER.nodes("role"), True)
    same(set(BROWSER.nodes("tablespace")), {"pg_default", "pg_global"})
    found = databases[DATABASE]
    BROWSER.ask(f"/browser/database/connect/{BROWSER.group}/{BROWSER.server}/{found}", "post")
    for tab in ("obj", "sql", "stats"):
        BROWSER.ask(f"/browser/database/{tab}/{BROWSER.group}/{BROWSER.server}/{found}")
    BROWSER.database = found


@step("what a database has")
def of_database() -> None:
    for kind in IN_DATABASE:
        for label, oid in BROWSER.nodes(kind).items():
            for tab in ("obj", "sql", "dependency", "dependent"):
                BROWSER.tab(kind, tab, oid)
            if kind == "schema":
                OBJECTS[kind, label] = BROWSER.tab(kind, "sql", oid)


def walk(schema: int) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    for kind in IN_SCHEMA:
        for label, oid in BROWSER.nodes(kind, schema).items():
            yield kind, label, (schema, oid)
            if kind in ("table", "view", "mview"):
                for inner in IN_TABLE if kind == "table" else ("column",):
                    for name, number in BROWSER.nodes(inner, schema, oid).items():
                        yield inner, f"{label}.{name}", (schema, oid, number)


@step("every object of a schema, with its SQL and what hangs on it")
def of_schema() -> None:
    for kind, label, path in walk(BROWSER.nodes("schema")["s"]):
        for tab in ("obj", "dependency", "dependent"):
            BROWSER.tab(kind, tab, *path)
        OBJECTS[kind, label] = BROWSER.tab(kind, "sql", *path)
    same(
        sorted(label for kind, label in OBJECTS if kind in ("table", "view", "mview", "sequence", "domain", "type")),
        ["child", "child_id_seq", "counted", "happy", "mood", "numbers", "pair", "parent", "parent_id_seq", "positive"],
    )  # fmt: skip
    same({label for kind, label in OBJECTS if kind == "index"}, {"parent.by_mood"})
    same({label for kind, label in OBJECTS if kind == "foreign_key"}, {"child.child_of_fkey"})
    same(TABLE_SQL in OBJECTS["table", "child"], True)


@step("its SQL makes the same objects")
def sql_runs() -> None:
    order = ("schema", "type", "domain", "sequence", "table", "function", "procedure", "view", "mview")
    with database(COPY) as connection:
        for kind in order:
            for (one, label), text in sorted(OBJECTS.items(), reverse=kind == "table"):  # parent before child
                if (
                    one == kind and label != "public" and not label.endswith("_id_seq")
                ):  # which come with their columns
                    connection.execute(re.sub(r"^--.*$", "", text, flags=re.MULTILINE))
        connection.execute(
            "INSERT INTO s.parent (m) VALUES ('happy'); INSERT INTO s.child (of, n) VALUES (1, 5)"
        )
        same(connection.execute("SELECT (count(*) + s.twice(20))::text FROM s.happy").fetchone(), ("41",))


@step("dashboards")
def dashboards() -> None:
    for path in DASHBOARD:
        BROWSER.ask("/dashboard/" + path.format(s=BROWSER.server, d=BROWSER.database))


run()
