"""Full-text search beside PostgreSQL 15: random texts through the parser, random queries against random tsvectors, stems."""

from __future__ import annotations

import random

import psycopg
import pytest

from pgwire.codecs.text import tsquery, tsvector
from pgwire.codecs.text.tsquery import Word
from planner.catalog import DictionaryDef
from planner.facts import rows
from planner.functions.search.tsquery import query_tree
from planner.textsearch.dictionaries import dictionary
from planner.textsearch.match import matches
from planner.textsearch.names import built_in
from planner.textsearch.parser import tokens
from planner.textsearch.rank import DEFAULT_WEIGHTS, rank, rank_by_covers, single
from planner.textsearch.rewrite import rewrite
from tests.support.postgres import postgres

__all__ = ["postgres"]

PIECES = ["foo", "bar", "Foo-Bar", "a", "x1", "1", "23", "4.5", "-6", "+7e8", "1e-5", "1.2.3", "v1.2.3.4", "http://", "www.", "example.com", ".org", "/path/x.html", "?q=1&b", "user@", "@host.com", "<b>", "</b>", '<a_href="x">', "<script>", "</script>", "<!--c-->", "&amp;", "&#123;", "&#x1F;", "~/", ".", "..", "/", "-", "_", ":8080", "é", "ü", "ñandú", "中文", "́", "ـ", "и", "ы-мы", "'", '"', "\\", "(", ")", ",", ";", "!", "?", "=", "<", "&", "@", ":", "//", "#", "%", "e", "E", "0x1f", "<?xml", "<!DOCTYPE", "--", "->", "$", "a_b", "A-1", "1-a", "é-a", "a-é1", "192.168.0.1", "foo.bar.baz", "file.txt", "./y", "½", "²", "٣", " ", "  ", "\n", "\t"]  # fmt: skip
LEXEMES = ("a", "b", "c", "d", "ab", "abc", "é")


def test_texts_have_postgresqls_tokens(postgres: str) -> None:
    rng = random.Random(11)
    texts = ["".join(rng.choices(PIECES, k=rng.randint(1, 9))) for _ in range(2500)]
    with psycopg.connect(postgres) as theirs:
        found = theirs.execute(
            "SELECT t, ARRAY(SELECT tokid || ':' || token FROM ts_parse('default', t)) FROM unnest(%s::text[]) t", [texts]
        ).fetchall()  # fmt: skip
    assert len(found) == len(texts)
    for text, expected in found:
        assert [f"{type_}:{token}" for type_, token in tokens(text)] == expected, text


def _vector(rng: random.Random) -> str:
    def places() -> str:
        return ",".join(
            f"{rng.randint(1, 9)}{rng.choice(('', 'A', 'B', 'C'))}" for _ in range(rng.randint(1, 3))
        )

    chosen = [lexeme for lexeme in LEXEMES if rng.random() < 0.6]
    return " ".join(lexeme + (f":{places()}" if rng.random() < 0.85 else "") for lexeme in chosen)


def _query(rng: random.Random, depth: int = 0) -> str:
    kind = rng.random()
    if depth > 2 or kind < 0.35:
        return rng.choice(LEXEMES) + (rng.choice((":*", ":A", ":AB", ":B*")) if rng.random() < 0.25 else "")
    if kind < 0.5:
        return f"!({_query(rng, depth + 1)})"
    operator = rng.choice(("&", "|", "<->", "<2>", "<0>"))
    return f"({_query(rng, depth + 1)} {operator} {_query(rng, depth + 1)})"


def test_queries_match_and_rank_as_in_postgresql(postgres: str) -> None:
    rng = random.Random(12)
    made = [(_vector(rng), _query(rng), _query(rng), _query(rng), rng.randint(0, 63)) for _ in range(1000)]
    with psycopg.connect(postgres) as theirs:
        found = theirs.execute(
            "SELECT v, q, p, s, n, v @@ q, ts_rank(v, q, n)::float8, ts_rank_cd(v, q, n)::float8, querytree(q), ts_rewrite(q, p, s)::text "
            "FROM (SELECT v::tsvector v, q::tsquery q, p::tsquery p, s::tsquery s, n "
            "FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::int[]) t(v, q, p, s, n)) t",
            [list(column) for column in zip(*made, strict=True)],
        ).fetchall()
    assert len(found) == len(made)
    for v, q, p, s, method, matched, ranked, covered, tree, rewritten in found:
        vector, query = tsvector.parse(v), tsquery.parse(q)
        assert tsvector.show(vector) == v
        assert tsquery.show(query) == q
        assert matches(vector, query) == matched, (v, q)
        assert rank_by_covers(DEFAULT_WEIGHTS, vector, query, method) == single(covered), (v, q, method)
        assert query_tree(query) == tree, q
        words = [item for item in tsquery.unpack(query) if isinstance(item, Word)]
        # which of a and a:* stands for both is up to PostgreSQL's sort, which keeps the order of few operands only
        if len({word.text for word in words}) == len(set(words)):
            assert rank(DEFAULT_WEIGHTS, vector, query, method) == pytest.approx(ranked, rel=1e-6), (
                v,
                q,
                method,
            )
            if not {
                word.text
                for item in (p, s)
                for word in tsquery.unpack(tsquery.parse(item))
                if isinstance(word, Word)
            } & {word.text for word in words if word.weights or word.prefix}:
                assert tsquery.show(rewrite(query, tsquery.parse(p), tsquery.parse(s))) == rewritten, (
                    q,
                    p,
                    s,
                )


def test_words_have_postgresqls_stems(postgres: str) -> None:
    """The stop words of all languages, which are real words, and pieces of them joined, through every dictionary."""
    rng = random.Random(13)
    real = sorted({row["word"] for row in rows("ts_stopwords")})
    words = rng.sample(real, 150) + ["".join(rng.sample(real, 2)) for _ in range(150)]
    named = {i.oid: i.name for i in built_in().values() if isinstance(i, DictionaryDef)}
    oids = [oid for oid, name in named.items() if name != "dutch_stem"]
    with psycopg.connect(postgres) as theirs:
        found = theirs.execute(
            "SELECT d, w, ts_lexize(d::oid::regdictionary, w) FROM unnest(%s::int[]) d, unnest(%s::text[]) w", [oids, words]
        ).fetchall()  # fmt: skip
    assert len(found) == len(words) * len(oids)
    for oid, word, expected in found:
        assert list(dictionary(None, oid).lexize(word) or ()) == expected, (named[oid], word)
