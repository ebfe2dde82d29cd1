"""Django's own tests (``tests/runtests.py`` of its source archive), unmodified: the apps that ask most of a database.

``DIFFERS`` names every test that does not pass, by reason; no other may fail, and these must, so that the list stays true.
``model_fields`` and ``inspectdb`` are not among the apps: their tables need a collation of ICU.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.drivers.test_clients import INSTALLED
from tests.support.server import ServerProcess

pytestmark = pytest.mark.long
TIMEOUT_S = 900

APPS: Final = {
    "definitions": (
        "backends constraints indexes introspection migration_test_data_persistence migrations model_indexes postgres_tests schema",
        2101,
    ),
    "queries": (
        "aggregation aggregation_regress annotations composite_pk custom_lookups datatypes dates datetimes db_functions "
        "distinct_on_fields expressions expressions_case expressions_window lookup ordering queries raw_query timezones",
        1999,
    ),
    "rows": (
        "bulk_create delete delete_regress foreign_object get_or_create m2m_through many_to_many model_inheritance prefetch_related "
        "select_for_update select_related transaction_hooks transactions update",
        718,
    ),
}
"""Groups of apps, and how many tests they have at least."""

_SCHEMA: Final = (
    "add_field_db_collation alter_field_db_collation alter_field_type_and_db_collation alter_field_type_preserve_db_collation "
    "alter_primary_key_db_collation ci_cs_db_collation db_collation_arrayfield db_collation_charfield db_collation_textfield "
    "func_index_collate func_index_collate_f_ordered func_unique_constraint_collate relation_to_collation_charfield "
    "unique_with_collation_charfield"
)
DIFFERS: Final = {
    "collations of ICU and CREATE COLLATION are refused": (
        *(f"schema.tests.SchemaTests.test_{name}" for name in _SCHEMA.split()),
        "db_functions.comparison.test_collate.CollateTests.test_language_collation_order_by",
        "migrations.test_operations.OperationTests.test_alter_field_pk_fk_db_collation",
        "migrations.test_operations.OperationTests.test_create_fk_models_to_pk_field_db_collation",
        "postgres_tests.test_indexes.SchemaTests.test_op_class_descending_collation",
        "postgres_tests.test_operations.CreateCollationTests.test_create",
        "postgres_tests.test_operations.CreateCollationTests.test_create_collation_alternate_provider",
        "postgres_tests.test_operations.CreateCollationTests.test_create_non_deterministic_collation",
        "postgres_tests.test_operations.RemoveCollationTests.test_remove",
    ),
    "the extension tablefunc is 0A000": (
        "postgres_tests.test_operations.CreateExtensionTests.test_allow_migrate",
    ),
    "every level is serializable; they fail on PostgreSQL at SERIALIZABLE, too": (
        "delete_regress.tests.DeleteLockingTest.test_concurrent_delete",
        "get_or_create.tests.UpdateOrCreateTransactionTests.test_creation_in_transaction",
    ),
    "order of rows that nobody ordered": ("postgres_tests.test_array.TestQuerying.test_order_by_index",),
}

SETTINGS: Final = """
DATABASES = {{
    alias: {{"ENGINE": "django.db.backends.postgresql", "NAME": name, "USER": "postgres", "HOST": "127.0.0.1", "PORT": "{port}"}}
    for alias, name in (("default", "suite_{group}"), ("other", "suite_{group}_other"))
}}
SECRET_KEY = "nobody knows it"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""


@pytest.mark.timeout(TIMEOUT_S + 60)
@pytest.mark.parametrize("group", APPS)
def test_django_suite(server: ServerProcess, group: str, tmp_path: Path) -> None:
    source = next(INSTALLED.glob("django-*/tests/runtests.py"), None)
    if source is None:
        pytest.skip(f"no source of Django in {INSTALLED}: tools/install_clients.sh fetches it")
    names, at_least = APPS[group]
    apps = names.split()
    (tmp_path / "suite_settings.py").write_text(SETTINGS.format(port=server.port, group=group))
    variables = {
        k: v for k, v in os.environ.items() if not k.startswith(("PG", "PYTHON", "PYTEST", "DJANGO"))
    }
    done = subprocess.run(
        [
            str(INSTALLED / "venv/bin/python"), "-W", "ignore", str(source), "--settings=suite_settings",
            "--parallel=1", "--noinput", *apps,
        ],
        cwd=source.parent, env=variables | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    failed = set(re.findall(r"^(?:FAIL|ERROR): .* \((.+?)\)", done.stderr, re.MULTILINE))
    expected = {name for found in DIFFERS.values() for name in found if name.split(".")[0] in apps}
    assert failed == expected, done.stderr[-5000:]
    ran = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    assert ran is not None, done.stdout[-3000:] + done.stderr[-3000:]
    assert int(ran.group(1)) >= at_least
