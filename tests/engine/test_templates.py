"""Extracting literals the short way finds what looking at every token finds, or leaves the text to that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.session.plans.by_text import BYTES, CHARACTERS, ByText
from engine.session.plans.caches import OWN_CHARACTERS, PlanCaches
from engine.session.plans.plan import Plan
from engine.session.plans.template_slots import Kept, Template, may_be_tried
from engine.session.plans.templates import (
    TemplateCache,
    _extract_any,
    _extract_literals,
    _extract_plain,
    _shapes,
    decode_values,
    extract,
)
from pgwire.codecs.registry import text_decoder
from pgwire.codecs.settings import DEFAULT
from planner.facts import INT4, INT8, TEXT, UNKNOWN, VARCHAR

PIECES = st.sampled_from(
    ["a", "t1", "E", "é", "x$y", "select", "and", "-", "+", "=", "*", "/", "%", "(", ")", "[", "]", ",", ".", ":", "::", "--",
     "/*", "*/", "$", "$1", "\\", '"', '"q"', "'", "''", "'s'", "'it''s'", "0", "7", "1.5", ".5", "1e3", "2147483647",
     "2147483648", "9223372036854775808", "٣", " ", "  ", "\n", ";"]
)  # fmt: skip


def parts(template: Template | None) -> object:
    return None if template is None else (template.text, template.oids, template.values)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("a = -5")
@example("a -5")
@example("a = - 5")
@example("'a' -5")
@example("x = E'1'")
@example("1-1")
def test_the_short_way_agrees_with_the_long_one(text: str) -> None:
    short = _extract_plain(text)
    if short is not None:
        assert parts(short) == parts(_extract_any(text))


@pytest.mark.parametrize(
    ("sql", "template", "values"),
    [
        ("UPDATE t SET n = n + -5 WHERE id = 17", "UPDATE t SET n = n + $1 WHERE id = $2", ("-5", "17")),
        ("INSERT INTO t VALUES (1, 'it''s', .5)", "INSERT INTO t VALUES ($1, $2, $3)", ("1", "it's", ".5")),
    ],
)
def test_everyday_statements_take_the_short_way(sql: str, template: str, values: tuple[str, ...]) -> None:
    found = _extract_plain(sql)
    assert found is not None
    assert (found.text, found.values) == (template, values)
    assert parts(extract(sql)) == parts(found)


MUCH = 1 << 40
NUMBERS = st.sampled_from(["0", "7", "12", "999999999", "2147483648", "99999999999999999999"])


TEXTS = st.sampled_from(["''", "'a'", "'12'", "'-5'", "'--'", "'$1'", "'\n'", "'it''s'", "''''", "'é'"])


@given(
    st.lists(
        st.one_of(PIECES, st.sampled_from(["#", "?"]), st.sampled_from(["1and", "a1", "1e-", "= ", ", "])),
        max_size=12,
    ),
    st.data(),
)
@example(["#", "e-", "#"], None)
@example(['"', "#", '"', "1and"], None)
@example(['"', "'", '"', "?", '"', "'", '"'], None)
@example(["#", ".", "#"], None)
@example(["'", "?"], None)
@example(["--", "?", "\n", "?"], None)
@example(["?", "?", ", 1.5"], None)
def test_a_text_that_differs_in_literals_alone_is_cut_as_one_that_was_seen(
    pieces: list[str], data: st.DataObject | None
) -> None:
    _shapes.clear()
    for _ in range(3):
        number, text = ("12", "'12'") if data is None else (data.draw(NUMBERS), data.draw(TEXTS))
        sql = "SELECT " + "".join([{"#": number, "?": text}.get(piece, piece) for piece in pieces])
        assert parts(extract(sql)) == parts(_extract_literals(sql))


def test_an_everyday_statement_is_cut_once() -> None:
    _shapes.clear()
    for delta in (5, -5, 17):
        found = extract(f"UPDATE t SET n = n + {delta} WHERE id = {delta + 100}")
        assert parts(found) == (
            "UPDATE t SET n = n + $1 WHERE id = $2",
            (INT4, INT4),
            (str(delta), str(delta + 100)),
        )
    assert len(_shapes) == 2, "with a sign and without"


def test_a_statement_with_quoted_names_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _shapes.clear()
    text = 'SELECT "a"."id" FROM "t" AS "a" WHERE "a"."n" = {} AND "a"."2nd" = {}'
    template = 'SELECT "a"."id" FROM "t" AS "a" WHERE "a"."n" = $1 AND "a"."2nd" = $2'
    assert parts(extract(text.format(5, "'x'"))) == (template, (INT4, 0), ("5", "x"))
    numbered = 'SELECT "7" FROM "t" WHERE "it\'s" = {}'
    for number in ("1", "2"):
        assert parts(extract(numbered.format(number))) == (numbered.format("$1"), (INT4,), (number,))
    for literal in ("'x'", "'a\"b'"):  # the second one ends the name
        unended = f'SELECT "+ {literal}'
        assert parts(extract(unended)) == parts(_extract_literals(unended))
    monkeypatch.setattr("engine.session.plans.templates._extract_literals", lambda sql: None)
    assert parts(extract(text.format(-6, "'y\"'"))) is None
    assert parts(extract(text.format(6, "'y\"'"))) == (template, (INT4, 0), ("6", 'y"'))
    assert extract(numbered.format("3")) is None, "what is a name here may look like a number"


def test_an_everyday_statement_with_strings_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _shapes.clear()
    template, types = "INSERT INTO t VALUES ($1, $2)", (INT4, 0)
    values = [("7", "a"), ("-8", ""), ("9", "-1; --"), ("-10", "/* $1 5 */")]
    found = [parts(extract(f"INSERT INTO t VALUES ({number}, '{text}')")) for number, text in values]
    assert found == [(template, types, pair) for pair in values]
    assert len(_shapes) == 2, "with a sign and without"
    monkeypatch.setattr("engine.session.plans.templates._extract_literals", lambda sql: None)
    assert parts(extract("INSERT INTO t VALUES (11, 'b')")) == (template, types, ("11", "b"))
    assert extract("INSERT INTO t VALUES ('11', 'b')") is None, "a string is no number"
    assert extract("INSERT INTO t VALUES (2147483648, 'b')") is None, "a bigint is no integer"
    assert extract("INSERT INTO t VALUES (11, 'b''c')") is None, "a quote within is no end"


@given(st.lists(st.integers(-(2**31) + 1, 2**31 - 1).map(str), min_size=1, max_size=5))
def test_whole_numbers_are_read_as_their_codec_reads_them(numbers: list[str]) -> None:
    template = extract("SELECT " + " = ".join(numbers))
    assert template is not None
    assert template.oids == (INT4,) * len(numbers)
    values = decode_values(None, template.oids, template)  # type: ignore[arg-type]  # no setting is looked at
    assert values == tuple(text_decoder(INT4)(value) for value in numbers)


def test_numbers_of_different_types_are_cut_as_different_statements() -> None:
    _shapes.clear()
    for _ in range(2):
        for number, oid in (("12", INT4), ("2147483647", INT4), ("2147483648", INT8), ("9" * 18, INT8)):
            found = extract(f"SELECT * FROM t WHERE a = {number} AND b = -1")
            assert parts(found) == ("SELECT * FROM t WHERE a = $1 AND b = $2", (oid, INT4), (number, "-1"))


@pytest.mark.parametrize(
    ("kind", "oids"), [(INT4, (INT4, INT8, TEXT)), (INT8, (INT8, TEXT)), (0, (TEXT, VARCHAR, UNKNOWN, INT4))]
)
@pytest.mark.parametrize("value", ["0", "-5", "2147483647"])
def test_values_are_read_as_their_codecs_read_them(kind: int, oids: tuple[int, ...], value: str) -> None:
    template = Template("", (kind,) * len(oids), (value,) * len(oids))
    decoded = decode_values(cast(Any, SimpleNamespace(codec_settings=DEFAULT)), oids, template)
    assert decoded == tuple(text_decoder(oid)(value) for oid in oids)


def test_other_digits_are_no_whole_number() -> None:
    template = extract("SELECT 1\u0663")
    assert template is not None
    assert INT4 not in template.oids


@given(st.lists(PIECES, max_size=14).map("".join), st.data())
@example("SELECT 'it''s' LIMIT 21", None)
@example("SELECT a$1 + 1 LIMIT 21", None)
def test_literals_that_are_kept_are_written_as_they_were(text: str, data: st.DataObject | None) -> None:
    sql = "SELECT " + text
    template = extract(sql)
    if template is None or not may_be_tried(template, sql):
        return
    slots = range(len(template.oids))
    free = frozenset(slots[:1] if data is None else data.draw(st.sets(st.sampled_from(slots))))
    narrow = Kept(template.text, free).narrow(template)
    assert narrow.values == tuple(template.values[i] for i in sorted(free))
    whole = Kept(narrow.text, frozenset()).narrow(narrow) if free else narrow
    assert whole.text == sql


@pytest.mark.parametrize("sql", ["SELECT -5::int2, 1", "SELECT - 5 ::int2, 1", "SELECT (-5::int2), 1"])
def test_a_sign_before_a_cast_is_no_part_of_the_number(sql: str) -> None:
    found = extract(sql)
    assert found is not None
    assert found.values == ("5", "1")


def test_a_literal_that_decides_something_stays_and_the_others_are_parameters() -> None:
    cache, tried = TemplateCache(ByText(), ByText()), []
    shape = "SELECT a, b FROM t WHERE a > {} ORDER BY {} LIMIT {}"
    plan = object.__new__(Plan)
    plan.weight = 0

    def prove(template: Template) -> Plan | None:
        tried.append(template.text)
        return plan if "ORDER BY 2" in template.text else None

    for value in range(7):
        sql = shape.format(value, 2, value)
        template = extract(sql)
        assert template is not None
        assert cache.find(template, ()) is None
        cache.learn(template, sql, (), prove)
    assert tried == [
        shape.format("$1", "$2", "$3"),
        shape.format("$1", 2, 2),
        shape.format(3, "$1", 3),
        shape.format(4, 2, "$1"),
        shape.format("$1", 2, "$2"),
    ]
    template = extract(shape.format(70, 2, 80))
    assert template is not None
    found = cache.find(template, ())
    assert found is not None
    assert (found[0], found[1].values) == (plan, ("70", "80"))
    other = extract(shape.format(70, 1, 80))
    assert other is not None
    assert cache.find(other, ()) is None, "another ordinal is another statement"


def test_a_template_of_which_nothing_may_be_a_parameter_is_given_up() -> None:
    cache, tried = TemplateCache(ByText(), ByText()), []

    def prove(template: Template) -> Plan | None:
        tried.append(template.text)
        return None

    sql = "SELECT a FROM t ORDER BY 1, 2"
    template = extract(sql)
    assert template is not None
    for _ in range(9):
        cache.learn(template, sql, (), prove)
    assert len(tried) == 3


def _kept(cache: ByText[int], *texts: str) -> list[str]:
    return [text for text in texts if (text, (), None) in cache]


def test_what_is_kept_by_text_is_bounded_by_its_characters() -> None:
    cache: ByText[int] = ByText(entries=3, characters=100)
    long, other, short = "l" * 60, "o" * 40, "s"
    cache.put((long, (), None), 1)
    cache.put((other, (), None), 2)
    assert cache.get((long, (), None)) == 1, "100 characters are within the bound"
    cache.put((short, (), None), 3)
    assert _kept(cache, long, other, short) == [long, short], "the least recently used one goes"
    cache.put((long, (), None), 4)
    cache.put((other[1:], (), None), 5)
    assert _kept(cache, long, other[1:], short) == [long, other[1:], short], "put again, it counts once"
    assert cache.drop((long, (), None))
    assert not cache.drop((long, (), None))
    cache.put(("x" * 60, (), None), 6)
    assert _kept(cache, "x" * 60, other[1:], short) == ["x" * 60, other[1:], short], (
        "what was dropped takes no room"
    )
    cache.put(("h" * 500, (), None), 7)
    assert _kept(cache, "x" * 60, other[1:], short, "h" * 500) == ["h" * 500], (
        "the latest stays, and is alone if it is long"
    )


def test_what_is_kept_by_text_is_bounded_by_entries() -> None:
    cache: ByText[int] = ByText(entries=3)
    for text in "abcd":
        cache.put((text, (), None), 1)
    assert _kept(cache, *"abcd") == ["b", "c", "d"]
    assert cache.peek(("b", (), None)) == 1
    cache.put(("e", (), None), 1)
    assert _kept(cache, *"bcde") == ["c", "d", "e"], "a peek is no use"


@pytest.mark.parametrize("own", [False, True])
def test_long_statements_do_not_fill_the_memory_with_plans(
    monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    monkeypatch.setattr(Plan, "fresh", lambda plan, catalog: True)
    monkeypatch.setattr(Plan, "fixed_names", False)
    caches = PlanCaches(MUCH, PlanCaches(MUCH)) if own else PlanCaches(MUCH)
    catalog, plan, size = cast(Any, None), object.__new__(Plan), 30_000
    plan.weight = 0
    keys = [(f"{number:0{size}}", (), None) for number in range(50)]
    for key in keys:
        caches.put(key, plan)
    kept = [key for key in keys if caches.get(key, catalog) is not None]
    assert kept == keys[-((OWN_CHARACTERS if own else CHARACTERS) // size) :]
    small = PlanCaches(2 * BYTES * 5 * size, PlanCaches(MUCH) if own else None)
    for key in keys:
        small.put(key, plan)
    assert [key for key in keys if small.get(key, catalog) is not None] == keys[-5:]
    small.clear()
    assert [key for key in keys if small.get(key, catalog) is not None] == []
