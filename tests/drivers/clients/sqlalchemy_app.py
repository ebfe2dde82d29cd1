"""SQLAlchemy 2: an application's schema, ORM and reflection by psycopg, the same by asyncpg, alembic's autogenerate."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import tempfile
import textwrap
import uuid
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from steps import ADDRESS, raised, run, same, step

SCHEMA = "sqlalchemy_app"
ENGINE = sa.create_engine(ADDRESS.with_scheme("postgresql+psycopg"))


class Base(orm.DeclarativeBase):
    metadata = sa.MetaData(
        schema=SCHEMA,
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        },
    )


class Author(Base):
    __tablename__ = "author"
    __table_args__ = (sa.CheckConstraint("length(name) > 1", name="named"), {"comment": "who writes"})
    id: orm.Mapped[int] = orm.mapped_column(sa.Identity(start=10), primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(60), unique=True, comment="as printed")
    born: orm.Mapped[dt.date | None]
    extra: orm.Mapped[dict[str, object]] = orm.mapped_column(pg.JSONB, server_default=sa.text("'{}'::jsonb"))
    books: orm.Mapped[list[Book]] = orm.relationship(back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "book"
    __table_args__ = (
        sa.UniqueConstraint("author_id", "title"),
        sa.Index(None, "published", sa.desc("price")),
    )
    id: orm.Mapped[uuid.UUID] = orm.mapped_column(
        primary_key=True, server_default=sa.text("gen_random_uuid()")
    )
    title: orm.Mapped[str] = orm.mapped_column(sa.Text)
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2), server_default="0")
    published: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True))
    tags: orm.Mapped[list[str]] = orm.mapped_column(pg.ARRAY(sa.Text), default=list)
    version: orm.Mapped[int] = orm.mapped_column(default=1)
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey(Author.id, ondelete="CASCADE"))
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")
    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012


@step("create")
def create() -> None:
    with ENGINE.begin() as connection:
        connection.execute(sa.schema.DropSchema(SCHEMA, cascade=True, if_exists=True))
        connection.execute(sa.schema.CreateSchema(SCHEMA))
    Base.metadata.create_all(ENGINE)
    Base.metadata.create_all(ENGINE)  # it finds what is there


@step("unit of work")
def unit_of_work() -> None:
    with orm.Session(ENGINE) as session:
        ann = Author(name="Ann", born=dt.date(1970, 5, 6), extra={"langs": ["en", "fr"]})
        ann.books = [
            Book(title=f"t{i}", price=decimal.Decimal(i), tags=["x", f"n{i}"], published=dt.datetime(2020, 1, i + 1, tzinfo=dt.UTC))
            for i in range(5)
        ]  # fmt: skip
        session.add_all([ann, Author(name="Bob")])
        session.commit()
        same(ann.id, 10)
        same(len({b.id for b in ann.books}), 5)
    with orm.Session(ENGINE) as session:
        found = session.scalars(
            sa.select(Author).options(orm.selectinload(Author.books)).order_by(Author.name)
        ).all()
        same(
            [(a.name, len(a.books), a.extra) for a in found],
            [("Ann", 5, {"langs": ["en", "fr"]}), ("Bob", 0, {})],
        )
        rows = session.execute(
            sa.select(Author.name, sa.func.count(Book.id), sa.func.sum(Book.price).filter(Book.price > 1))
            .outerjoin(Book).group_by(Author.name).order_by(Author.name)
        ).all()  # fmt: skip
        same([tuple(r) for r in rows], [("Ann", 5, decimal.Decimal("9.00")), ("Bob", 0, None)])


@step("stale data")
def stale() -> None:
    with orm.Session(ENGINE) as one, orm.Session(ENGINE, expire_on_commit=False) as two:
        old = two.scalars(sa.select(Book).where(Book.title == "t1")).one()
        two.commit()
        book = one.scalars(sa.select(Book).where(Book.title == "t1")).one()
        book.price = decimal.Decimal("11.50")
        one.commit()
        same(book.version, 2)
        old.price = decimal.Decimal(3)
        raised(orm.exc.StaleDataError, two.commit)
        two.rollback()
        same(two.get(Book, old.id, populate_existing=True).price, decimal.Decimal("11.50"))


@step("queries")
def queries() -> None:
    rank = sa.func.row_number().over(partition_by=Book.author_id, order_by=Book.price.desc())
    inner = sa.select(Book.title, rank.label("n")).subquery()
    with orm.Session(ENGINE) as session:
        same(session.execute(sa.select(inner.c.title).where(inner.c.n <= 2)).scalars().all(), ["t1", "t4"])
        same(session.scalar(sa.select(Author.extra["langs"][1].astext).where(Author.name == "Ann")), "fr")
        same(session.scalars(sa.select(Book.title).where(Book.tags.contains(["n3"]))).all(), ["t3"])
        same(session.scalars(sa.select(Book.title).where(sa.any_(Book.tags) == "n2")).all(), ["t2"])
        lateral = (
            sa.select(Book.title).where(Book.author_id == Author.id).order_by(Book.title).limit(1).lateral()
        )
        same(
            session.execute(sa.select(Author.name, lateral.c.title).join(lateral, sa.true())).all(),
            [("Ann", "t0")],
        )
        tree = sa.select(sa.literal(1).label("n")).cte("tree", recursive=True)
        tree = tree.union_all(sa.select(tree.c.n + 1).where(tree.c.n < 4))
        same(session.scalars(sa.select(tree.c.n)).all(), [1, 2, 3, 4])
        same(
            session.scalar(sa.select(sa.func.string_agg(Book.title, pg.aggregate_order_by(",", Book.title)))),
            "t0,t1,t2,t3,t4",
        )
        same(session.scalar(sa.select(sa.exists().where(Author.name == "Eve"))), False)
        titles = session.scalars(
            sa.select(Book.title).order_by(Book.title).with_for_update(of=Book).limit(2)
        ).all()
        same(titles, ["t0", "t1"])


@step("upsert and returning")
def upsert() -> None:
    table = Author.__table__
    insert = pg.insert(table).values([{"name": "Ann"}, {"name": "Cyd"}])
    insert = insert.on_conflict_do_update(index_elements=["name"], set_={"born": dt.date(2001, 2, 3)})
    with ENGINE.begin() as connection:
        rows = connection.execute(insert.returning(table.c.name, table.c.born)).all()
        same(sorted(map(tuple, rows)), [("Ann", dt.date(2001, 2, 3)), ("Cyd", None)])
        same(
            connection.execute(
                sa.delete(table).where(table.c.name == "Cyd").returning(table.c.name)
            ).scalar(),
            "Cyd",
        )
        many = [{"name": f"bulk{i}"} for i in range(2500)]
        got = (
            connection.execute(sa.insert(table).returning(table.c.name, sort_by_parameter_order=True), many)
            .scalars()
            .all()
        )
        same(got, [m["name"] for m in many])
        same(connection.execute(sa.delete(table).where(table.c.name.like("bulk%"))).rowcount, 2500)


def add_dee(session: orm.Session) -> None:
    with session.begin_nested():
        session.add(Author(name="Dee"))
        session.flush()


@step("savepoints and errors")
def savepoints() -> None:
    with orm.Session(ENGINE) as session:
        session.add(Author(name="Dee"))
        session.flush()
        error = raised(sa.exc.IntegrityError, lambda: add_dee(session))
        same(error.orig.diag.constraint_name, "uq_author_name")
        session.commit()
        session.delete(session.scalars(sa.select(Author).where(Author.name == "Dee")).one())
        session.commit()


@step("stream")
def stream() -> None:
    with ENGINE.connect().execution_options(yield_per=100) as connection:
        same(sum(1 for _ in connection.execute(sa.text("SELECT * FROM generate_series(1, 1050)"))), 1050)


@step("reflection")
def reflection() -> None:
    inspector = sa.inspect(ENGINE)
    same(sorted(inspector.get_table_names(SCHEMA)), ["author", "book"])
    same(inspector.get_pk_constraint("author", SCHEMA)["name"], "pk_author")
    same(inspector.get_table_comment("author", SCHEMA), {"text": "who writes"})
    same(inspector.get_check_constraints("author", SCHEMA)[0]["sqltext"], "length(name::text) > 1")
    key = inspector.get_foreign_keys("book", SCHEMA)[0]
    same((key["referred_table"], key["options"]), ("author", {"ondelete": "CASCADE"}))
    columns = {c["name"]: c for c in inspector.get_columns("book", SCHEMA)}
    same(repr(columns["price"]["type"]), "NUMERIC(precision=10, scale=2)")
    same(repr(columns["tags"]["type"]), "ARRAY(TEXT())")
    same(columns["id"]["default"], "gen_random_uuid()")
    same(inspector.get_columns("author", SCHEMA)[0]["identity"]["start"], 10)
    index = next(i for i in inspector.get_indexes("book", SCHEMA) if not i["unique"])
    same((index["column_names"], index["column_sorting"]), (["published", "price"], {"price": ("desc",)}))
    again = sa.MetaData()
    again.reflect(ENGINE, schema=SCHEMA)
    same(sorted(again.tables), [f"{SCHEMA}.author", f"{SCHEMA}.book"])


@step("autogenerate finds no difference")
def autogenerate() -> None:
    options = {
        "include_schemas": True, "compare_type": True, "compare_server_default": True,
        "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
    }  # fmt: skip
    with ENGINE.connect() as connection:
        same(compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata), [])


ENV = """
from alembic import context
import sqlalchemy as sa
engine = sa.create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=None, version_table="alembic_app_version")
    with context.begin_transaction():
        context.run_migrations()
"""
SCRIPT = """
revision, down_revision = {revision!r}, {down!r}
import sqlalchemy as sa
from alembic import op
def upgrade():
    {up}
def downgrade():
    {back}
"""
MIGRATIONS = [
    ("op.create_table('stock', sa.Column('id', sa.Integer, primary_key=True), sa.Column('n', sa.String(5)))", "op.drop_table('stock')"),
    ("op.add_column('stock', sa.Column('made', sa.Date, server_default=sa.func.current_date(), nullable=False))", "op.drop_column('stock', 'made')"),
    ("op.alter_column('stock', 'n', type_=sa.Integer, postgresql_using='n::integer', new_column_name='amount')",
     "op.alter_column('stock', 'amount', type_=sa.String(5), new_column_name='n')"),
    ("op.create_index('stock_amount', 'stock', ['amount']); op.create_unique_constraint('uq_stock', 'stock', ['amount', 'made'])",
     "op.drop_constraint('uq_stock', 'stock'); op.drop_index('stock_amount')"),
    ("op.alter_column('stock', 'amount', nullable=False); op.create_check_constraint('positive', 'stock', 'amount > 0')",
     "op.drop_constraint('positive', 'stock'); op.alter_column('stock', 'amount', nullable=True)"),
    ("op.rename_table('stock', 'store')", "op.rename_table('store', 'stock')"),
]  # fmt: skip


@step("migrations up and down")
def migrations() -> None:
    with tempfile.TemporaryDirectory() as folder:
        versions = Path(folder, "versions")
        versions.mkdir()
        Path(folder, "env.py").write_text(ENV)
        Path(folder, "script.py.mako").write_text("")
        for n, (up, back) in enumerate(MIGRATIONS, 1):
            text = SCRIPT.format(revision=f"r{n}", down=f"r{n - 1}" if n > 1 else None, up=up, back=back)
            Path(versions, f"r{n}.py").write_text(textwrap.dedent(text))
        config = Config()
        config.set_main_option("script_location", folder)
        config.set_main_option("sqlalchemy.url", ADDRESS.with_scheme("postgresql+psycopg"))
        command.upgrade(config, "head")
        columns = {
            c["name"]: (str(c["type"]), c["nullable"]) for c in sa.inspect(ENGINE).get_columns("store")
        }
        same(columns, {"id": ("INTEGER", False), "amount": ("INTEGER", False), "made": ("DATE", False)})
        command.downgrade(config, "base")
        same(sa.inspect(ENGINE).has_table("stock"), False)


async def _in_async() -> None:
    engine = create_async_engine(ADDRESS.with_scheme("postgresql+asyncpg"))
    async with AsyncSession(engine, expire_on_commit=False) as session:
        session.add(
            Author(name="Fay", extra={"a": 1}, books=[Book(title="async", price=decimal.Decimal("1.10"))])
        )
        await session.commit()
        fay = (
            await session.scalars(
                sa.select(Author).where(Author.name == "Fay").options(orm.selectinload(Author.books))
            )
        ).one()
        same((fay.extra, [b.price for b in fay.books]), ({"a": 1}, [decimal.Decimal("1.10")]))
        streamed = await session.stream(sa.text("SELECT g FROM generate_series(1, 300) g"))
        same([row.g async for row in streamed], list(range(1, 301)))
        await session.delete(fay)
        await session.commit()
    async with engine.connect() as connection:
        names = await connection.run_sync(lambda c: sorted(sa.inspect(c).get_table_names(SCHEMA)))
        same(names, ["author", "book"])
    await engine.dispose()


@step("asyncpg")
def with_asyncpg() -> None:
    asyncio.run(_in_async())


@step("ranges")
def ranges() -> None:
    day = dt.date(2020, 1, 1)
    columns = [
        sa.Column("id", sa.Integer, primary_key=True), sa.Column("r", pg.INT4RANGE), sa.Column("n", pg.NUMRANGE),
        sa.Column("d", pg.DATERANGE), sa.Column("t", pg.TSTZRANGE), sa.Column("m", pg.INT4MULTIRANGE),
    ]  # fmt: skip
    table = sa.Table("ranges", sa.MetaData(), *columns, schema=SCHEMA)
    row = (
        1, pg.Range(1, 5), pg.Range(decimal.Decimal("1.5"), None), pg.Range(day, day + dt.timedelta(30)),
        pg.Range(None, dt.datetime(2020, 1, 1, tzinfo=dt.UTC)), [pg.Range(1, 3), pg.Range(5, 7)],
    )  # fmt: skip
    table.create(ENGINE)
    with ENGINE.begin() as connection:
        connection.execute(table.insert().values(row))
        same(tuple(connection.execute(sa.select(table)).one()), row)
        found = sa.select(table.c.id).where(
            table.c.r.overlaps(pg.Range(3, 9)), table.c.r.contains(3), table.c.m.contains([pg.Range(1, 2)]),
            table.c.d.adjacent_to(pg.Range(day + dt.timedelta(30), None)),
        )  # fmt: skip
        same(connection.scalars(found).all(), [1])
        same(connection.scalar(sa.select(table.c.r + pg.Range(5, 9))), pg.Range(1, 9))
        shown = [str(column["type"]) for column in sa.inspect(connection).get_columns("ranges", SCHEMA)]
        same(shown, ["INTEGER", "INT4RANGE", "NUMRANGE", "DATERANGE", "TSTZRANGE", "INT4MULTIRANGE"])
    table.drop(ENGINE)


@step("drop")
def drop() -> None:
    Base.metadata.drop_all(ENGINE)
    with ENGINE.begin() as connection:
        connection.execute(sa.schema.DropSchema(SCHEMA))


if __name__ == "__main__":
    run()
