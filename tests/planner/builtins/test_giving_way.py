"""Functions that take long over large values let others in, or are handed to a process beside the server."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest

import pgwire.give_way
import pgwire.release
from pgwire.codecs import geometric, system
from pgwire.codecs.json import hstore
from pgwire.codecs.registry import DEFAULT, text_input
from pgwire.codecs.text import tsquery
from pgwire.codecs.text.tsquery import OR, Operator, Word
from pgwire.codecs.users import ranges
from pgwire.long import values as long_values
from planner.facts import facts
from planner.functions.aggregates import states as aggregates
from planner.functions.extensions import crypto as extension_crypto
from planner.functions.json import operators as json
from planner.functions.json import path as json_path
from planner.functions.numbers import numeric
from planner.functions.search import tsquery as tsqueries
from planner.functions.system import misc
from planner.functions.text import bytea, regex, trigrams
from planner.functions.text import strings as text
from planner.functions.values import multirange
from planner.geometry import polygons
from planner.patterns.options import parse_flags
from planner.textsearch import headline, match, parser, rank, rewrite
from planner.textsearch.dictionaries import built_in_configuration
from planner.textsearch.make import plain_query
from planner.textsearch.parser import tokens

Points = tuple[tuple[float, float], ...]


def star(points: int, turned: float = 0.0) -> Points:
    """Return a polygon of two radii by turns, so that its box says little."""
    return tuple(
        (
            math.cos(turned + i / points * math.tau) * (50 + 50 * (i % 2)),
            math.sin(turned + i / points * math.tau) * (50 + 50 * (i % 2)),
        )
        for i in range(points)
    )


def spiral(inner: float) -> Points:
    """Return one that goes around another and does not touch it."""
    out = [(math.cos(i / 30) * (inner + i / 100), math.sin(i / 30) * (inner + i / 100)) for i in range(120)]
    back = [(x * 1.0001, y * 1.0001) for x, y in reversed(out)]
    return (*out, *back)


def value(type_: str, literal: str) -> Any:
    return text_input(facts().types_by_name[type_].oid, literal, -1, DEFAULT)


WORDS = " ".join(f"word{n % 977}" for n in range(4000))
DOCUMENT = f"a:{','.join(map(str, range(1, 400, 2)))} b:{','.join(map(str, range(2, 400, 2)))}"


def of_members(binary: bool) -> str | None:
    state = object.__new__(aggregates.JsonObjectAgg)
    state.binary = binary
    state.items = [(f"k{n}", "1") for n in range(10_000)]
    return state.result()


def spans(literal: str) -> list[ranges.Span]:
    return ranges.unpack_multirange(value("int4multirange", literal))


SPANS = spans("{" + ",".join(f"[{n}0,{n}5)" for n in range(4_000)) + "}")


OPERATORS = (Word("a"), *(item for n in range(1_000) for item in (Word(f"w{n}"), Operator(OR))))
MANY = "|".join(f"w{n}" for n in range(200))
BUILTIN = tsqueries._FUNCTIONS

LONG: list[tuple[str, Callable[[], object], int]] = [
    ("polygons that may meet", lambda: polygons.polygons_overlap(spiral(1), spiral(1.01)), 2_000),
    ("a path and another", lambda: polygons.path_distance((False, star(80)), (False, star(80, 0.1))), 6_000),
    ("a polygon in another", lambda: polygons.contains(star(200), tuple((x / 3, y / 3) for x, y in star(200))), 2_000),
    ("trigrams of a text", lambda: trigrams.trigrams(WORDS), 20),
    ("a run of trigrams", lambda: trigrams.word_similarity(WORDS[:600], WORDS[:1500]), 500),
    ("tokens", lambda: list(tokens("http://a.b/" + "c" * 3000)), 3_000),
    ("many short texts", lambda: long_values.joined(["x"] * 100_000, ","), 55),
    ("json_object_agg", lambda: of_members(False), 300),
    ("jsonb_object_agg", lambda: of_members(True), 600),
    ("a lexeme", lambda: value("tsvector", "x" * 2_000), 20),
    ("a quoted lexeme", lambda: value("tsquery", "'" + "x" * 2_000 + "'"), 20),
    ("marks of an operand", lambda: value("tsquery", "a:" + "*" * 1_000), 1_000),
    ("parentheses", lambda: value("tsquery", "(" * 1_000 + "a" + ")" * 1_000), 2_000),
    ("signs without a word", lambda: tsquery.read_web("a" + "(" * 1_000, tsquery.as_it_stands), 1_000),
    ("operators that end together", lambda: tsquery.unpack(tsquery.pack(OPERATORS)), 2_055),
    ("a query printed", lambda: tsquery.show_items(OPERATORS), 2_000),
    ("phrases of a query", lambda: match.within_phrases(OPERATORS), 30),
    ("lexemes of a query", lambda: BUILTIN["tsq_mcontains(tsquery,tsquery)"](tsquery.pack(OPERATORS), tsquery.pack(OPERATORS)), 60),
    ("ts_rewrite", lambda: rewrite.rewrite(value("tsquery", MANY), value("tsquery", "w1"), value("tsquery", "x")), 1_000),
    ("many entries", lambda: match.matches(value("tsvector", WORDS), value("tsquery", "w:*")), 100),
    ("ts_rank_cd", lambda: rank.rank_by_covers([0.1, 0.2, 0.4, 1.0], value("tsvector", DOCUMENT), value("tsquery", "a & b"), 0), 1_000),
    ("crypt", lambda: extension_crypto.crypt("secret", "$1$saltsalt"), 1_000),
    ("jsonpath", lambda: list(json_path.query("[" + "[[1,2],[3]]," * 500 + "1]", "$.**")), 1_000),
    ("case", lambda: text.upper("é" * 50_000), 10),
    ("initcap", lambda: text.initcap("ab " * 20_000), 10),
    ("translate", lambda: text.translate("abc" * 50_000, "a", "b"), 3),
    ("base64", lambda: bytea.decode("YWFh" * 10_000, "base64"), 30),
    ("options of a headline", lambda: headline.read_options("StartSel=" + "a" * 9_000_000), 9),
    ("many options", lambda: headline.read_options("MinWords=1 " * 1_000), 1_000),
    ("ranges before others", lambda: multirange.spans_contain(SPANS, SPANS[-1:]), 60),
    ("ranges behind others", lambda: multirange.spans_minus(ranges.range_type(3904), SPANS[-1:], SPANS), 60),
    ("ranges in one", lambda: multirange.spans_minus(ranges.range_type(3904), spans("{[0,90000)}"), SPANS), 60),
    ("escaped elements", lambda: value("_text", "{" + "\\a" * 20_000 + "}"), 30),
    ("digits behind a blank", lambda: value("bytea", "\\x " + "00" * 20_000), 30),
    ("blanks between digits", lambda: value("bytea", "\\x00" + " " * 40_000), 30),
    ("a replacement", lambda: regex.replacement("x" + "\\1" * 20_000, 1), 300),
    ("flags of a pattern", lambda: parse_flags("i" * 20_000), 15),
    ("SIMILAR TO", lambda: regex.similar_escape("\\a" * 20_000), 70),
    ("a column of a record", lambda: system.quote_field("a" * 9_000_000), 50),
    ("a quoted column of a record", lambda: system.quote_field("a b" * 3_000_000), 50),
    ("LIKE of bytes", lambda: bytea.like(b"ab" * 5_000, b"%" + b"a_" * 300 + b"c%"), 5),
]  # fmt: skip


@pytest.mark.parametrize(("run", "least"), [row[1:] for row in LONG], ids=[row[0] for row in LONG])
def test_loops_look_at_the_clock(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], object], least: int
) -> None:
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 0.0

    monkeypatch.setattr(pgwire.give_way, "perf_counter", clock)
    run()
    assert looks >= least


def squares(item: Decimal) -> None:
    aggregates.ExactMoments(aggregates._average, True).step(item)


LARGE = Decimal("7" * 90_000)
ELSEWHERE: list[tuple[str, Callable[[], object]]] = [
    ("division", lambda: numeric.div(LARGE, Decimal("3" * 9_000))),
    ("product", lambda: numeric.mul(Decimal("7" * 60_000), Decimal("7" * 60_000))),
    ("square", lambda: squares(LARGE)),
    ("width_bucket", lambda: numeric.width_bucket(Decimal("3" * 90_000), Decimal(0), LARGE, 3)),
    ("remainder", lambda: numeric.mod(LARGE, Decimal("3" * 9_000))),
    ("div", lambda: numeric.div_trunc(LARGE, Decimal("3" * 9_000))),
    ("gcd", lambda: numeric.gcd(LARGE, LARGE)),
    ("lcm", lambda: numeric.lcm(LARGE, LARGE)),
    ("sqrt", lambda: numeric.sqrt(LARGE)),
    ("ln", lambda: numeric.ln(Decimal("2." + "1" * 1_000))),
    ("log", lambda: numeric.log(Decimal("2." + "1" * 1_000), Decimal(3))),
    ("exp", lambda: numeric.exp(Decimal("2." + "1" * 1_000))),
    ("power", lambda: numeric.power(Decimal("2." + "1" * 1_000), Decimal("1.5"))),
    ("a whole power", lambda: numeric.power(Decimal(3), Decimal(100_000))),
    ("factorial", lambda: numeric.factorial(30_000)),
    ("md5", lambda: text._md5("a" * 2_000_000)),
    ("digest", lambda: extension_crypto.digest(b"a" * 2_000_000, "sha512")),
    ("hmac", lambda: extension_crypto.keyed(b"a" * 2_000_000, b"k", "sha512")),
    ("sha256", lambda: bytea.hashed("sha256", b"a" * 2_000_000)),
    ("normalize", lambda: text._normalized("é" * 100_000, "NFD")),
]  # fmt: skip


@pytest.mark.parametrize("run", [row[1] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE])
def test_long_calls_of_c_run_elsewhere(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> None:
    class HandedOver(Exception):
        pass

    def outside(name: str, args: tuple[Any, ...]) -> Any:
        assert name in pgwire.give_way.OUTSIDE
        raise HandedOver

    monkeypatch.setattr(pgwire.give_way, "_run_outside", outside)
    with pytest.raises(HandedOver):
        run()


TEN_THOUSAND = "|".join(f"w{n}" for n in range(10_000))
GATHERED: list[tuple[str, Callable[[], object]]] = [
    ("a query", lambda: value("tsquery", TEN_THOUSAND)),
    ("a query of a text", lambda: plain_query(built_in_configuration(3748), TEN_THOUSAND)),
    ("a query printed", lambda: tsquery.show(value("tsquery", TEN_THOUSAND))),
    ("queries joined", lambda: BUILTIN["tsquery_and(tsquery,tsquery)"](*[value("tsquery", TEN_THOUSAND)] * 2)),
    ("a match", lambda: match.matches(value("tsvector", TEN_THOUSAND.replace("|", " ")), value("tsquery", "w:*"))),
]  # fmt: skip


@pytest.mark.parametrize("run", [row[1] for row in GATHERED], ids=[row[0] for row in GATHERED])
def test_what_is_gathered_is_let_go_in_slices(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]
) -> None:
    held: list[object] = []
    monkeypatch.setattr(pgwire.release, "_queue", Recorder(held))
    run()
    assert held


DOCUMENT_OF_MANY = "[" + ", ".join(['"word"'] * 20_000) + "]"
RANGES = "{" + ",".join(f"[{n}0,{n}5)" for n in range(10_000)) + "}"
MINDED: list[tuple[str, Callable[[], object]]] = [
    ("a document", lambda: json.load(DOCUMENT_OF_MANY)),
    ("texts of a document", lambda: json._object_keys("f")("{" + ", ".join(f'"k{n}": 1' for n in range(70_000)) + "}")),
    ("ranges", lambda: ranges.unpack_multirange(value("int4multirange", RANGES))),
    ("what is left of ranges", lambda: multirange.spans_minus(ranges.range_type(3904), spans(RANGES), spans("{}"))),
    ("pairs", lambda: hstore.parse(",".join(f"k{n}=>1" for n in range(10_000)))),
    ("points", lambda: geometric.unpack_polygon(geometric.pack_polygon([(n, n) for n in range(10_000)]))),
    ("names", lambda: misc.parse_ident("a." * 10_000 + "b")),
    ("fields", lambda: text.fields("a," * 10_000, ",", None)),
]  # fmt: skip


@pytest.mark.parametrize("run", [row[1] for row in MINDED], ids=[row[0] for row in MINDED])
def test_what_nobody_lets_go_of_is_minded(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> None:
    held: list[object] = []
    monkeypatch.setattr(pgwire.release, "_minded", Recorder(held))
    made = run()
    assert any(one is made or len(one) >= 10_000 for one in held)  # type: ignore[arg-type]


def test_ranges_are_subtracted_in_one_pass() -> None:
    class Ordered(list[ranges.Span]):
        def __iter__(self) -> Iterator[ranges.Span]:
            raise AssertionError("from the beginning again")

    type_ = ranges.range_type(3904)
    left = multirange.spans_minus(type_, spans("{[1,9),[20,30)}"), Ordered(spans("{[3,4),[8,22),[29,50)}")))
    assert left == spans("{[1,3),[4,8),[22,29)}")


class Recorder:
    """Stands for what empties containers."""

    def __init__(self, held: list[object]) -> None:
        self.held = held

    def add(self, container: object) -> None:
        self.held.append(container)


def test_a_chain_of_remembered_places_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hyphen of a word leaves a place; they are forgotten one by one, with looks at the clock in between."""
    chain = parser._Place(0, 0)
    for at in range(100):
        chain = parser._Place(at, 0, 0, chain)
    looks: list[None] = []
    monkeypatch.setattr(parser, "give_way", lambda: looks.append(None))
    parser._forget(chain)
    assert chain.under is None
    assert len(looks) == 100


def test_small_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def outside(name: str, args: tuple[Any, ...]) -> Any:
        raise AssertionError(name)

    monkeypatch.setattr(pgwire.give_way, "_run_outside", outside)
    assert numeric.div(Decimal(1), Decimal("3.0")) == Decimal("0.33333333333333333333")
    assert str(numeric.div(Decimal("-0.5"), Decimal(10**30))) == "-5.00000000000000000E-31"
    assert numeric.sqrt(Decimal(2)) == Decimal("1.414213562373095")
    assert numeric.ln(Decimal("1.00001")) == Decimal("0.000009999950000333331")


@pytest.mark.parametrize("zeros", [5, 20, 300])
def test_a_logarithm_near_one_is_as_exact_as_the_contexts(zeros: int) -> None:
    from decimal import Context

    x = Decimal("1." + "0" * zeros + "123456789")
    for signed in (x, 2 - x):
        found, exact = numeric._ln(signed, 60), Context(prec=60).ln(signed)
        assert abs(found - exact) <= abs(exact).scaleb(-58)


@pytest.mark.parametrize(
    "given", ["ab" * 40 + " c", "a" * 64, "a" * 65 + "1", " " * 70 + "x", " " * 70 + ".", "a" * 63 + "-b"]
)
def test_plain_tokens_end_where_they_do_in_one_look(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    whole = list(tokens(given))
    monkeypatch.setattr(parser, "_WINDOW", 16)
    assert list(tokens(given)) == whole


def test_long_separators_split_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_values, "PIECE", 64)
    for given in ("aXYZWVb" * 3, "XYZWV", "a", "aXYZWVXYZWV"):
        assert long_values.split(given * 4, "XYZWV" * 2) == (given * 4).split("XYZWV" * 2)
        assert long_values.replaced(given * 40, "XYZWV", "-") == (given * 40).replace("XYZWV", "-")
        assert long_values.field(given * 4, "XYZWV", 1) == [*(given * 4).split("XYZWV"), ""][1]
