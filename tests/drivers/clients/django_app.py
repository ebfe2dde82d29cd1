"""Django: migrations of its contrib apps and of models of ours, the ORM, inspectdb, loaddata and dumpdata."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import sys
import tempfile
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from steps import ADDRESS, raised, run, same, step

APP = "shelf"
MODELS = """
import uuid
from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

class Colour(models.TextChoices):
    RED = "r", "red"
    BLUE = "b", "blue"

class Author(models.Model):
    name = models.CharField(max_length=50, unique=True)
    user = models.OneToOneField(User, null=True, on_delete=models.SET_NULL)
    joined = models.DateTimeField(db_default=Now())

class Book(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    title = models.CharField(max_length=80, db_index=True)
    slug = models.SlugField()
    price = models.DecimalField(max_digits=8, decimal_places=2)
    day = models.DateField()
    took = models.DurationField(null=True)
    colour = models.CharField(max_length=1, choices=Colour.choices, default=Colour.RED)
    extra = models.JSONField(default=dict)
    tags = ArrayField(models.CharField(max_length=10), default=list)
    data = models.BinaryField(null=True)
    good = models.BooleanField(default=True)
    pages = models.PositiveSmallIntegerField(default=1)
    authors = models.ManyToManyField(Author, related_name="books")

    class Meta:
        ordering = ["title"]
        constraints = [
            models.UniqueConstraint(fields=["title", "day"], name="one_a_day"),
            models.CheckConstraint(condition=models.Q(price__gte=0), name="not_negative"),
            models.UniqueConstraint(fields=["slug"], name="slug_late", deferrable=models.Deferrable.DEFERRED),
        ]
        indexes = [models.Index(fields=["-day", "price"], name="by_day")]
"""
FOLDER = tempfile.mkdtemp(prefix="holdfast-django-")


def set_up() -> None:
    package = Path(FOLDER, APP)
    (package / "migrations").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "migrations" / "__init__.py").write_text("")
    (package / "models.py").write_text(MODELS)
    sys.path.insert(0, FOLDER)
    settings.configure(
        SECRET_KEY="x", USE_TZ=True, DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        DATABASES={"default": {
            "ENGINE": "django.db.backends.postgresql", "NAME": ADDRESS.database, "USER": ADDRESS.user,
            "HOST": ADDRESS.host, "PORT": ADDRESS.port, "OPTIONS": {"options": "-c search_path=django_app"},
        }},
        INSTALLED_APPS=[
            *(f"django.contrib.{app}" for app in
              ("admin", "auth", "contenttypes", "sessions", "messages", "sites", "flatpages", "redirects", "postgres")),
            APP,
        ],
        SITE_ID=1,
    )  # fmt: skip
    django.setup()


set_up()

from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.contenttypes.models import ContentType  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, Max, OuterRef, Q, StdDev, Subquery, Sum, Value, Window  # noqa: E402
from django.db.models.functions import Coalesce, Concat, ExtractYear, Lag, Length, Lower, Rank, TruncMonth  # noqa: E402
from shelf.models import Author, Book  # noqa: E402


@step("migrate the contrib apps and ours")
def migrate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS django_app CASCADE")
        cursor.execute("CREATE SCHEMA django_app")
    call_command("makemigrations", APP, verbosity=0)
    call_command("migrate", verbosity=0)
    plan = io.StringIO()
    call_command("migrate", check_unapplied=True, plan=True, stdout=plan)
    call_command("makemigrations", APP, check_changes=True, dry_run=True, verbosity=0)
    same(Permission.objects.filter(content_type=ContentType.objects.get_for_model(Book)).count(), 4)


@step("users, groups and sessions")
def users() -> None:
    user = User.objects.create_superuser("root", "root@example.com", "sesame")
    group = Group.objects.create(name="editors")
    group.permissions.add(*Permission.objects.filter(codename__endswith="_book"))
    user.groups.add(group)
    same(User.objects.filter(groups__permissions__codename="add_book").get(), user)
    same(group.permissions.count(), 4)
    assert "shelf.add_book" in user.get_group_permissions()
    session = SessionStore()
    session["cart"] = [1, 2]
    session.save()
    same(SessionStore(session.session_key)["cart"], [1, 2])


def _day(n: int) -> dt.date:
    return dt.date(2024, 1 + n % 3, 1 + n)


@step("create and query")
def create() -> None:
    ann, bob = (Author.objects.create(name=name) for name in ("Ann", "Bob"))
    assert ann.joined is not None
    books = Book.objects.bulk_create(
        Book(title=f"Title {n}", slug=f"s{n}", price=decimal.Decimal(n) / 2, day=_day(n), took=dt.timedelta(hours=n),
             extra={"n": n, "deep": {"list": [n, None]}}, tags=["a", f"t{n}"], data=bytes([n]), pages=n)
        for n in range(10)
    )  # fmt: skip
    for n, book in enumerate(books):
        book.authors.add(ann if n % 2 else bob)
    got = Book.objects.get(title="Title 3")
    same(
        (got.price, got.took, bytes(got.data), got.tags),
        (decimal.Decimal("1.50"), dt.timedelta(hours=3), b"\3", ["a", "t3"]),
    )
    same(Book.objects.filter(title__iexact="TITLE 4").count(), 1)
    same(Book.objects.filter(title__icontains="tle 4").count(), 1)
    same(Book.objects.filter(title__iregex=r"^title [2-4]$").count(), 3)
    same(Book.objects.filter(extra__n=5).count(), 1)
    same(Book.objects.filter(extra__deep__list__0=6).count(), 1)
    same(Book.objects.filter(extra__has_key="deep").count(), 10)
    same(Book.objects.filter(extra__contains={"n": 7}).count(), 1)
    same(Book.objects.filter(tags__contains=["t8"]).count(), 1)
    same(Book.objects.filter(tags__overlap=["t8", "t9"]).count(), 2)
    same(Book.objects.filter(tags__len=2, tags__1="t5").count(), 1)
    same(Book.objects.filter(day__year=2024, day__month=2).count(), 3)
    same([b.title for b in Book.objects.prefetch_related("authors")[2:4]], ["Title 2", "Title 3"])
    same(Book.objects.filter(Q(authors=ann) & ~Q(price__lt=1)).count(), 4)
    same(list(Book.objects.dates("day", "month")), [dt.date(2024, m, 1) for m in (1, 2, 3)])
    same(Book.objects.in_bulk([books[0].pk])[books[0].pk].title, "Title 0")


@step("aggregates, windows and subqueries")
def aggregates() -> None:
    rows = Author.objects.annotate(n=Count("books"), s=Sum("books__price"), m=Max("books__day")).order_by(
        "name"
    )
    same(
        [(a.name, a.n, a.s) for a in rows],
        [("Ann", 5, decimal.Decimal("12.50")), ("Bob", 5, decimal.Decimal("10.00"))],
    )
    same(
        Book.objects.aggregate(a=Avg("price"), d=StdDev("pages"), c=Count("id", filter=Q(pages__gt=5)))["c"],
        4,
    )
    by_month = Book.objects.annotate(m=TruncMonth("day")).values("m").annotate(n=Count("id")).order_by("m")
    same([r["n"] for r in by_month], [4, 3, 3])
    ranked = Book.objects.annotate(
        r=Window(Rank(), partition_by=[ExtractYear("day")], order_by=F("price").desc()),
        before=Window(Lag("pages"), order_by=F("pages").asc()),
    )
    same([(b.r, b.before) for b in ranked.order_by("pages")[:3]], [(10, None), (9, 0), (8, 1)])
    same(ranked.filter(r__lte=2).count(), 2)
    latest = Book.objects.filter(authors=OuterRef("pk")).order_by("-pages").values("title")[:1]
    same(
        list(Author.objects.annotate(t=Subquery(latest)).order_by("name").values_list("t", flat=True)),
        ["Title 9", "Title 8"],
    )
    same(
        Author.objects.filter(Exists(Book.objects.filter(authors=OuterRef("pk"), pages=9))).get().name, "Ann"
    )
    named = Author.objects.annotate(
        x=Concat(Lower("name"), Value("-"), Coalesce(F("user__username"), Value("?"))), k=Length("name")
    )
    same([(a.x, a.k) for a in named.order_by("name")], [("ann-?", 3), ("bob-?", 3)])
    union = (
        Book.objects.filter(pages=1)
        .values_list("title")
        .union(Book.objects.filter(pages=2).values_list("title"))
    )
    same(sorted(union), [("Title 1",), ("Title 2",)])
    from django.contrib.postgres.aggregates import ArrayAgg, JSONBAgg, StringAgg

    got = Author.objects.filter(name="Ann").annotate(
        t=StringAgg("books__title", ",", order_by="books__title"), p=ArrayAgg("books__pages", order_by="-books__pages"),
        j=JSONBAgg("books__pages", order_by="books__pages"),
    ).get()  # fmt: skip
    same((got.t[:15], got.p, got.j), ("Title 1,Title 3", [9, 7, 5, 3, 1], [1, 3, 5, 7, 9]))


@step("changes")
def changes() -> None:
    same(Book.objects.filter(pages__gte=8).update(price=F("price") + 1, colour="b"), 2)
    book, made = Book.objects.update_or_create(title="New", day=_day(1), defaults={"slug": "new", "price": 3})
    same((made, book.price), (True, 3))
    same(Book.objects.get_or_create(title="New", day=_day(1))[1], False)
    rows = [Author(name="Ann"), Author(name="Cyd")]
    Author.objects.bulk_create(rows, update_conflicts=True, unique_fields=["name"], update_fields=["name"])
    Author.objects.bulk_create(rows, ignore_conflicts=True)
    same(Author.objects.count(), 3)
    same(Book.objects.filter(title="New").delete()[0], 1)
    books = list(Book.objects.all())
    for b in books:
        b.pages += 100
    same(Book.objects.bulk_update(books, ["pages"]), 10)
    with transaction.atomic():
        locked = Book.objects.select_for_update(of=("self",), skip_locked=True).filter(pages__lt=103)
        same(len(locked), 3)
    same(sum(1 for _ in Book.objects.iterator(chunk_size=3)), 10)


@step("transactions and constraints")
def transactions() -> None:
    with transaction.atomic():
        error = raised(IntegrityError, lambda: transaction.atomic()(Author.objects.create)(name="Ann"))
        assert "duplicate key" in str(error), error
        same(Author.objects.count(), 3)
    with transaction.atomic():  # the unique slug is checked at the end
        Book.objects.filter(slug="s1").update(slug="s2")
        Book.objects.filter(title="Title 2").update(slug="s1")
    same(Book.objects.get(title="Title 2").slug, "s1")
    error = raised(IntegrityError, lambda: Book.objects.update(price=-1))
    assert "not_negative" in str(error), error
    connection.check_constraints()


@step("inspectdb")
def inspectdb() -> None:
    out = io.StringIO()
    call_command("inspectdb", "shelf_book", "shelf_author", stdout=out)
    for expected in (
        "id = models.UUIDField(primary_key=True)",
        "title = models.CharField(max_length=80)",
        "slug = models.CharField(unique=True, max_length=50)",
        "price = models.DecimalField(max_digits=8, decimal_places=2)",
        "day = models.DateField()",
        "took = models.DurationField(blank=True, null=True)",
        "extra = models.JSONField()",
        "data = models.BinaryField(blank=True, null=True)",
        "good = models.BooleanField()",
        "pages = models.SmallIntegerField()",
        "unique_together = (('title', 'day'),)",
        "user = models.OneToOneField('AuthUser', models.DO_NOTHING, blank=True, null=True)",
    ):
        assert f"{expected}\n" in out.getvalue(), (expected, out.getvalue())


@step("dumpdata, flush, loaddata")
def dump() -> None:
    path = Path(FOLDER, "all.json")
    call_command(
        "dumpdata", exclude=["contenttypes", "auth.permission", "sessions"], output=str(path), verbosity=0
    )
    call_command("flush", interactive=False, verbosity=0)
    same(Book.objects.count(), 0)
    call_command("loaddata", str(path), verbosity=0)
    same((Book.objects.count(), Author.objects.count(), User.objects.count()), (10, 3, 1))
    Author.objects.create(name="after loading")  # the sequence stands behind what was loaded
    same(Book.authors.through.objects.count(), 10)


@step("alter by the schema editor")
def alter() -> None:
    with connection.schema_editor() as editor:
        field = models.CharField(max_length=20, unique=True, null=True)
        field.set_attributes_from_name("code")
        editor.add_field(Author, field)
        wider = models.TextField(null=True)
        wider.set_attributes_from_name("code")
        editor.alter_field(Author, field, wider)
        editor.remove_field(Author, wider)
        editor.alter_db_table(Author, "shelf_author", "shelf_writer")
        editor.alter_db_table(Author, "shelf_writer", "shelf_author")


@step("migrate back")
def back() -> None:
    call_command("migrate", APP, "zero", verbosity=0)
    same("shelf_book" in connection.introspection.table_names(), False)
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA django_app CASCADE")


if __name__ == "__main__":
    run()
