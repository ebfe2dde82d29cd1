"""dbt: seeds, views, tables, incremental models, tests, a snapshot, docs, on a small project."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
from steps import ADDRESS, run, same, step

FOLDER = Path(tempfile.mkdtemp(prefix="holdfast-dbt-"))
FILES = {
    "dbt_project.yml": "name: shop\nversion: '1.0.0'\nprofile: shop\nseeds: {shop: {+column_types: {price: 'numeric(8,2)'}}}\nmodels: {shop: {+materialized: view, +persist_docs: {relation: true, columns: true}}}\n",
    "profiles.yml": f"shop:\n  target: it\n  outputs:\n    it: {{type: postgres, host: {ADDRESS.host}, port: {ADDRESS.port}, user: {ADDRESS.user}, password: '', dbname: {ADDRESS.database}, schema: dbt_shop, threads: 4}}\n",
    "seeds/items.csv": "id,name,price,sold\n1,apple,1.50,2024-01-01\n2,pear,2.25,2024-01-02\n3,plum,,2024-01-03\n",
    "models/cheap.sql": "select id, name, price from {{ ref('items') }} where price < 2",
    "models/totals.sql": "{{ config(materialized='table', indexes=[{'columns': ['month'], 'unique': True}]) }}\nselect date_trunc('month', sold) as month, sum(price) as total, count(*) as n from {{ ref('items') }} group by 1",
    "models/sales.sql": "{{ config(materialized='incremental', unique_key='id') }}\nselect id, name, sold, now() as loaded from {{ ref('items') }}\n{% if is_incremental() %} where sold >= (select max(sold) from {{ this }}) {% endif %}",
    "models/added.sql": "{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge', on_schema_change='append_new_columns') }}\nselect id, name {% if is_incremental() %}, 1 as extra {% endif %} from {{ ref('items') }}",
    "models/kept.sql": "{{ config(materialized='materialized_view') }}\nselect name, price from {{ ref('items') }}",
    "models/hidden.sql": "{{ config(materialized='ephemeral') }}\nselect max(id) as id from {{ ref('items') }}",
    "models/last.sql": "select i.* from {{ ref('items') }} i join {{ ref('hidden') }} h on h.id = i.id",
    "models/schema.yml": """version: 2
models:
  - name: cheap
    description: what costs little
    columns:
      - {name: id, description: the key, data_tests: [unique, not_null]}
      - {name: name, data_tests: [{accepted_values: {arguments: {values: [apple]}}}]}
  - name: sales
    columns:
      - {name: id, data_tests: [{relationships: {arguments: {to: ref('items'), field: id}}}]}
""",
    "tests/none_negative.sql": "select * from {{ ref('items') }} where price < 0",
    "snapshots/history.sql": "{% snapshot history %}{{ config(target_schema='dbt_shop', unique_key='id', strategy='check', check_cols=['price']) }} select * from {{ ref('items') }}{% endsnapshot %}",
    "macros/grants.sql": "{% macro tidy() %}{% do run_query('drop schema if exists dbt_shop cascade') %}{% endmacro %}",
}  # fmt: skip


def dbt(*words: str) -> str:
    program = str(Path(sys.executable).with_name("dbt"))
    done = subprocess.run(
        [program, "--no-use-colors", "--no-send-anonymous-usage-stats", *words, "--project-dir", str(FOLDER), "--profiles-dir", str(FOLDER)],
        capture_output=True, text=True, timeout=250, check=False, cwd=FOLDER,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(ADDRESS.with_scheme("postgresql"), autocommit=True) as connection:
        return connection.execute(text).fetchall()  # type: ignore[arg-type]


@step("build: seeds, models, tests, snapshot")
def build() -> None:
    for name, text in FILES.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    dbt("run-operation", "tidy")
    said = dbt("build")
    assert "ERROR=0" in said, said
    same(rows("SELECT name, price::text FROM dbt_shop.cheap"), [("apple", "1.50")])
    same(rows("SELECT total::text, n FROM dbt_shop.totals"), [("3.75", 3)])
    same(
        rows(
            "SELECT obj_description('dbt_shop.cheap'::regclass), col_description('dbt_shop.cheap'::regclass, 1)"
        ),
        [("what costs little", "the key")],
    )


@step("again: incremental models, the snapshot sees a change")
def again() -> None:
    items = FOLDER / "seeds/items.csv"
    items.write_text(items.read_text().replace("2.25", "2.50") + "4,fig,9.99,2024-02-01\n")
    assert "ERROR=0" in dbt("build")
    same(rows("SELECT count(*) FROM dbt_shop.sales"), [(4,)])
    same(rows("SELECT id, extra FROM dbt_shop.added ORDER BY id"), [(1, 1), (2, 1), (3, 1), (4, 1)])
    same(
        rows(
            "SELECT price::text, dbt_valid_to IS NULL FROM dbt_shop.history WHERE id = 2 ORDER BY dbt_valid_from"
        ),
        [("2.25", False), ("2.50", True)],
    )
    same(rows("SELECT count(*) FROM dbt_shop.kept"), [(4,)])


@step("full refresh, docs")
def refresh() -> None:
    assert "ERROR=0" in dbt("run", "--full-refresh")
    dbt("docs", "generate", "--no-compile")
    assert '"dbt_shop"' in (FOLDER / "target/catalog.json").read_text()
    dbt("run-operation", "tidy")


if __name__ == "__main__":
    run()
