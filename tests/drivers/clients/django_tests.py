"""Django's test runner: it makes a test database, migrates it, runs tests in and without transactions, clones it, drops it.

A project as ``startproject`` makes it, and ``manage.py test`` of it in a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
from steps import ADDRESS, run, same, step

FOLDER = Path(tempfile.mkdtemp(prefix="holdfast-django-tests-"))
NAME = "test_bakery"
SETTINGS = f"""
from bakery.basic import *
DATABASES = {{"default": {{
    "ENGINE": "django.db.backends.postgresql", "NAME": "{ADDRESS.database}", "USER": "{ADDRESS.user}",
    "HOST": "{ADDRESS.host}", "PORT": {ADDRESS.port}, "TEST": {{"NAME": "{NAME}"}},
}}}}
INSTALLED_APPS += ["django.contrib.postgres", "oven"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
"""
MODELS = """
from django.db import models

class Cake(models.Model):
    name = models.CharField(max_length=30, unique=True)
    baked = models.DateTimeField(auto_now_add=True)
    parts = models.JSONField(default=list)

class Slice(models.Model):
    cake = models.ForeignKey(Cake, on_delete=models.CASCADE)
    grams = models.PositiveIntegerField()
"""
STARTING_DATA = """
from django.db import migrations

def bake(apps, editor):
    apps.get_model("oven", "Cake").objects.create(name="from a migration")

class Migration(migrations.Migration):
    dependencies = [("oven", "0001_initial")]
    operations = [migrations.RunPython(bake, migrations.RunPython.noop)]
"""
TESTS = """
import threading
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import Sum
from django.test import LiveServerTestCase, TestCase, TransactionTestCase
from urllib.request import urlopen
from oven.models import Cake, Slice

class Rolled(TestCase):
    @classmethod
    def setUpTestData(cls):
        cls.cake = Cake.objects.create(name="apple", parts=["flour", "apples"])
        Slice.objects.bulk_create(Slice(cake=cls.cake, grams=g) for g in (100, 150))

    def test_sum(self):
        self.assertEqual(self.cake.slice_set.aggregate(n=Sum("grams"))["n"], 250)
        self.cake.slice_set.all().delete()

    def test_unchanged_by_others(self):
        self.assertEqual(Slice.objects.count(), 2)
        self.assertEqual(Cake.objects.filter(parts__contains=["apples"]).count(), 1)

    def test_duplicate(self):
        with self.assertRaises(IntegrityError), transaction.atomic():
            Cake.objects.create(name="apple")
        self.assertEqual(Cake.objects.filter(name="apple").count(), 1)

    def test_on_commit(self):
        said = []
        with self.captureOnCommitCallbacks(execute=True):
            transaction.on_commit(lambda: said.append(1))
        self.assertEqual(said, [1])

    def test_queries_are_counted(self):
        with self.assertNumQueries(1):
            list(Slice.objects.select_related("cake"))

class Numbered(TransactionTestCase):
    reset_sequences = True

    def test_counting_begins_anew(self):
        Cake.objects.all().delete()
        self.assertEqual(Cake.objects.create(name="first").pk, 1)

    def test_always(self):
        self.test_counting_begins_anew()

class Committed(TransactionTestCase):
    serialized_rollback = True

    def test_the_migrations_data_is_there_again(self):
        self.assertEqual([c.name for c in Cake.objects.all()], ["from a migration"])
        Cake.objects.all().delete()

    def test_and_again(self):
        self.assertEqual(Cake.objects.count(), 1)
        self.assertGreater(Cake.objects.create(name="next").pk, 0)

    def test_two_threads_count_together(self):
        cake = Cake.objects.create(name="shared")
        row = Slice.objects.create(cake=cake, grams=0)
        def add():
            for _ in range(5):
                with transaction.atomic():
                    locked = Slice.objects.select_for_update().get(pk=row.pk)
                    locked.grams += 1
                    locked.save()
            connection.close()
        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        row.refresh_from_db()
        self.assertEqual(row.grams, 10)

class Served(LiveServerTestCase):
    def test_login_page(self):
        User.objects.create_user("baker", password="sesame")
        with urlopen(self.live_server_url + "/admin/login/") as answer:
            self.assertIn(b"csrfmiddlewaretoken", answer.read())
        self.assertTrue(self.client.login(username="baker", password="sesame"))
"""
COUNT = 11
ROLLED_BACK = "oven.tests.Rolled", 5
"""Tests that run again in a database that was kept: others have emptied its tables, what migrations put there included."""


def manage(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "manage.py"), *words],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return done.stdout + done.stderr


def run_tests(*words: str, count: int = COUNT) -> str:
    told = manage("test", "--noinput", "--settings", "bakery.ours", "-v", "2", *words)
    same(re.findall(r"^Ran (\d+) tests", told, re.MULTILINE), [str(count)])
    return told


def databases() -> list[str]:
    with psycopg.connect(ADDRESS.url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s) ORDER BY 1", [NAME]
        )
        return [name for (name,) in found.fetchall()]


@step("a project and its migrations")
def project() -> None:
    with psycopg.connect(ADDRESS.url, autocommit=True) as connection:
        for name in databases():  # of a run that was cut short
            connection.execute(f"DROP DATABASE {name}")
    subprocess.run([sys.executable, "-m", "django", "startproject", "bakery", str(FOLDER)], check=True)
    (FOLDER / "bakery/settings.py").rename(FOLDER / "bakery/basic.py")
    (FOLDER / "bakery/ours.py").write_text(SETTINGS)
    (FOLDER / "bakery/settings.py").write_text("from bakery.ours import *\n")
    (FOLDER / "oven").mkdir()
    for name, text in (("__init__", ""), ("models", MODELS), ("tests", TESTS)):
        (FOLDER / f"oven/{name}.py").write_text(text)
    manage("makemigrations", "oven")
    (FOLDER / "oven/migrations/0002_data.py").write_text(STARTING_DATA)
    manage("check", "--database", "default")


@step("manage.py test")
def once() -> None:
    told = run_tests()
    assert f"Destroying test database for alias 'default' ('{NAME}')" in told, told
    same(databases(), [])


@step("--keepdb")
def kept() -> None:
    run_tests("--keepdb")
    same(databases(), [NAME])
    label, count = ROLLED_BACK
    told = run_tests("--keepdb", label, count=count)
    assert "Using existing test database" in told, told
    assert "Preserving test database" in told, told
    run_tests()  # the one that is in its way is destroyed first
    same(databases(), [])


@step("--parallel 2: clones")
def parallel() -> None:
    told = run_tests("--parallel", "2")
    assert told.count("Cloning test database") == 2, told
    same(databases(), [])
    run_tests("--parallel", "2", "--keepdb")
    same(databases(), [NAME, f"{NAME}_1", f"{NAME}_2"])
    label, count = ROLLED_BACK
    run_tests("--parallel", "2", "--keepdb", label, count=count)
    run_tests("--parallel", "2", "--shuffle", "5")
    same(databases(), [])


if __name__ == "__main__":
    run()
