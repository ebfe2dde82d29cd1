"""Inverted indexes (gin): conditions on arrays and documents, turned into entries to look up.

    tags @> '{red,blue}'        all       rows under the rarer of red and blue
    tags && '{red,blue}'        any       rows under either
    tags <@ '{red,blue}'        within    rows under either, and empty arrays
    'red' = ANY (tags)          all       rows under red
    doc @> '{"a": 1}'           all       as of an array; doc ? 'a', ?& and ?| by keys alone
    words @@ 'fat & (rat|cat)'  match     rows under fat, or under rat and cat, whichever are fewer
    name LIKE '%red%'           pattern   rows under the rarest trigram of the pattern (gin_trgm_ops); ILIKE, =
    attributes @> 'a=>1'        pairs     rows under the rarest key of the hstore; ?, ?& and ?| as of an array of keys
    name % 'red'                alike     rows under any of so many of its trigrams that every similar text has one of them

What is found are candidates: the condition is tested again on each. Where a value says nothing about the
entries of the rows wanted (``@> '{}'``), or has too many, and for prefixes (``'fa':*``), the table is
scanned, which others' changes are compared with as of any scan.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from functools import cache
from math import ceil
from typing import Any, Final, NamedTuple

from engine.catalog.index_parts import index_parts
from engine.executors.index.access.candidates import FEW_ROWS, CandidateScan, Request, index_key, is_key
from engine.executors.index.access.choice import Access, EntryMode, is_ready
from engine.executors.index.access.computed_keys import holds_rows_of
from pgwire.codecs.json import hstore
from pgwire.codecs.numeric import NAN
from pgwire.codecs.text.tsquery import Word, unpack
from pgwire.give_way import give_way, paced, paced_iter
from planner.catalog import Catalog, IndexDef, RelationDef
from planner.evaluate import flat
from planner.facts import JSONB, facts
from planner.functions.extensions.trigrams import DEFAULTS, SIMILARITY, threshold
from planner.functions.session import EvalSession
from planner.functions.text.trigrams import of_pattern, trigrams
from planner.indexing.comparisons import key_operators
from planner.indexing.opclass_extensions import TRIGRAM_CLASS
from planner.query import Expr, FuncExpr, OpExpr, ScalarArrayOp
from planner.textsearch.match import required
from txn.api import Transaction
from txn.base.types import Key
from txn.values.entries import document_entries, key_entry, lexeme_entry

_ORDER: Final = (
    "equal",
    "text",
    "all",
    "one",
    "match",
    "pattern",
    "alike",
    "pairs",
    "any",
    "within",
    "all keys",
    "key",
    "any keys",
)
"""Which condition is served where several could be: few rows have all of some values, many have a key."""
_ONE: Final = ("all", "equal", "all keys", "text", "pattern", "pairs")

COUNTED: Final = 32
"""Entries whose rows are counted between two looks at the clock."""
MAX_ENTRIES: Final = 500
"""A value with more entries than this is looked for by a scan."""


_BEFORE_ROUNDING: Final = 1 - 1e-6
"""A similarity is rounded to single precision before it is compared."""


class Use(NamedTuple):
    """A condition that an index serves: how, with which value, and the condition itself."""

    mode: EntryMode
    value: Expr
    conjunct: Expr


@cache
def _modes() -> dict[int, tuple[EntryMode | None, EntryMode | None]]:
    """Return for each function (pg_proc oid) what ``column op value`` and ``value op column`` ask for; None:
    nothing.
    """
    procs = facts().proc_by_signature
    return {
        procs["arraycontains(anyarray,anyarray)"]: ("all", "within"),
        procs["arraycontained(anyarray,anyarray)"]: ("within", "all"),
        procs["arrayoverlap(anyarray,anyarray)"]: ("any", "any"),
        procs["array_eq(anyarray,anyarray)"]: ("equal", "equal"),
        procs["jsonb_contains(jsonb,jsonb)"]: ("all", None),
        procs["jsonb_contained(jsonb,jsonb)"]: (None, "all"),
        procs["jsonb_exists(jsonb,text)"]: ("key", None),
        procs["jsonb_exists_all(jsonb,_text)"]: ("all keys", None),
        procs["jsonb_exists_any(jsonb,_text)"]: ("any keys", None),
        procs["hstore.hs_contains(hstore,hstore)"]: ("pairs", None),
        procs["hstore.hs_contained(hstore,hstore)"]: (None, "pairs"),
        procs["hstore.exist(hstore,text)"]: ("one", None),
        procs["hstore.exists_all(hstore,_text)"]: ("all", None),
        procs["hstore.exists_any(hstore,_text)"]: ("any", None),
        procs["ts_match_vq(tsvector,tsquery)"]: ("match", None),
        procs["ts_match_qv(tsquery,tsvector)"]: (None, "match"),
    }


@cache
def _trigram_modes() -> dict[int, tuple[EntryMode | None, EntryMode | None]]:
    """Return the same for indexes of trigrams."""
    procs = facts().proc_by_signature
    return {
        procs["texteq(text,text)"]: ("text", "text"),
        procs["textlike(text,text)"]: ("pattern", None),
        procs["texticlike(text,text)"]: ("pattern", None),
        procs["pg_trgm.similarity_op(text,text)"]: ("alike", "alike"),
    }


def find_inverted(
    range_: int,
    table: RelationDef,
    catalog: Catalog,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
) -> Access | None:
    """Return an access of a base table by a gin index, or None."""
    best: tuple[Use, IndexDef] | None = None
    for index in (part for whole in table.indexes for part in index_parts(whole, table)):
        if index.method != "gin" or not holds_rows_of(index, table, catalog, range_, conjuncts):
            continue
        use = _use(range_, index, table, catalog, conjuncts, available)
        if use is not None and (best is None or _ORDER.index(use.mode) < _ORDER.index(best[0].mode)):
            best = use, index
    if best is None:
        return None
    use, index = best
    return Access(
        "entries",
        index,
        index.attnums,
        (use.value,),
        (False,),
        served=(use.conjunct,),
        entry=use.mode,
        score=3,
    )


def _use(
    range_: int,
    index: IndexDef,
    table: RelationDef,
    catalog: Catalog,
    conjuncts: Sequence[Expr],
    available: AbstractSet[int],
) -> Use | None:
    key = index_key(index, table, catalog, range_)
    paths = index.opclasses == ("jsonb_path_ops",)
    by_trigrams = index.opclasses == (TRIGRAM_CLASS,)
    modes = _trigram_modes() if by_trigrams else _modes()
    found: list[Use] = []
    for conjunct in conjuncts:
        if isinstance(conjunct, ScalarArrayOp):
            if (
                not by_trigrams
                and conjunct.use_any
                and key_operators().get(conjunct.proc) == "="
                and is_key(conjunct.array, range_, key)
                and is_ready(conjunct.scalar, available)
            ):
                found.append(Use("one", conjunct.scalar, conjunct))
        elif isinstance(conjunct, OpExpr | FuncExpr) and len(conjunct.args) == 2:
            left, right = conjunct.args
            forth, back = modes.get(conjunct.proc, (None, None))
            for mode, column, value in ((forth, left, right), (back, right, left)):
                if mode is None or (paths and mode != "all"):
                    continue
                if is_key(column, range_, key) and is_ready(value, available):
                    found.append(Use(mode, value, conjunct))
    return min(found, key=lambda use: _ORDER.index(use.mode), default=None)


def wanted_entries(mode: EntryMode, kind: str, value: Any) -> list[Key] | None:
    """Return the keys to look up: one that each row wanted has (all), or all that they may have; None: that
    cannot be told.

    ``kind`` as of txn's indexes; ``value`` is not NULL. An empty list: no row can be meant.
    """
    if mode == "key":
        return [(key_entry(value),)]
    if mode in ("all keys", "any keys"):
        found = [(key_entry(v),) for v in dict.fromkeys(flat(value)) if v is not None]
        return found or None
    if mode in ("text", "pattern"):
        return [(entry,) for entry in (of_pattern(value) if mode == "pattern" else trigrams(value))] or None
    if mode == "pairs":
        return [(key,) for key in hstore.unpack(value)] or None
    if mode == "one":
        return [(value,)]
    if kind != "elements":
        return [(entry,) for entry in document_entries(kind, value)] or None
    met: dict[Any, None] = {}
    empty = True
    for v in paced_iter(flat(value)):
        empty = False
        if v is not None:
            met[NAN if isinstance(v, Decimal) and v.is_nan() else v] = None
            if len(met) >= MAX_ENTRIES and mode in _ONE:
                break  # any of them will do
    keys: list[Key] = [(v,) for v in paced_iter(met)]
    if mode == "within" or (mode == "equal" and empty):
        keys.append((None,))
    if mode == "any":
        return keys  # none: nothing overlaps with it
    return keys or None


class EntriesScan(CandidateScan):
    """Rows of a stored table by the entries of an inverted index."""

    def prepare(self, access: Access, index: IndexDef) -> None:
        """See CandidateScan."""
        if access.entry is None:
            raise LookupError("it does not say what is compared")
        self.mode: EntryMode = access.entry
        paths = index.opclasses == ("jsonb_path_ops",)
        self.kind = "elements" if self.key_type != JSONB else "json_paths" if paths else "json"

    def requests(self, value: Any) -> list[Request] | None:
        """See CandidateScan."""
        if self.mode == "match":
            return None  # ``chosen``
        keys = wanted_entries(self.mode, self.kind, value)
        if keys is None or (len(keys) > MAX_ENTRIES and self.mode not in _ONE):
            return None
        return [keys] if keys else []

    def chosen(
        self, value: Any, txn: Transaction, session: EvalSession | None = None
    ) -> list[Request] | None:
        """See CandidateScan. Where each row wanted has all of the entries, the rarest one is looked up."""
        if self.mode == "match":
            return self._matching(value, txn)
        if self.mode == "alike":
            return self._alike(value, txn, session)
        if self.mode not in _ONE:
            return super().chosen(value, txn, session)
        keys = wanted_entries(self.mode, self.kind, value)
        if not keys:
            return None if keys is None else []
        keys = keys[:MAX_ENTRIES]
        counts: list[int] = []
        for start in range(0, len(keys), COUNTED):
            counts += txn.count_entries(self.shard, self.index, keys[start : start + COUNTED])
            give_way()
        rows = min(counts)
        if rows > max(FEW_ROWS, txn.stats(self.shard).rows // 4):
            return None
        return [[keys[counts.index(rows)]]]

    def _matching(self, query: bytes, txn: Transaction) -> list[Request] | None:
        """Return the rows under lexemes one of which every match of a tsquery has: of several such sets the
        one with the fewest rows.
        """
        words = {item.text for item in paced(unpack(query)) if isinstance(item, Word)}
        if not words:
            return []
        if len(words) > MAX_ENTRIES:
            return None
        entries = {word: (lexeme_entry(word),) for word in words}
        keys: list[Key] = list(dict.fromkeys(entries.values()))
        counts = dict(zip(keys, txn.count_entries(self.shard, self.index, keys), strict=True))
        most = max(FEW_ROWS, txn.stats(self.shard).rows // 4)
        # of a prefix, rows are not counted: such a set is taken for one that has too many
        found = required(query, lambda word: most + 1 if word.prefix else counts[entries[word.text]])
        if found is None or any(word.prefix for word in found):
            return None
        chosen = list(dict.fromkeys(entries[word.text] for word in found))
        return [chosen] if sum(counts[key] for key in chosen) <= most else None

    def _alike(self, value: str, txn: Transaction, session: EvalSession | None) -> list[Request] | None:
        """Return the rows under the rarest trigrams of a text, of which every similar text has one.

        Two texts with a share s of common trigrams have at least s times those of either in common, so a
        similar one can lack only so many: one more of the trigrams are looked up.
        """
        wanted = trigrams(value)
        if not wanted:
            return None
        limit = DEFAULTS[SIMILARITY] if session is None else threshold(session, SIMILARITY)
        common = ceil(limit * len(wanted) * _BEFORE_ROUNDING)
        if common < 1 or len(wanted) > MAX_ENTRIES:
            return None
        keys: list[Key] = [(entry,) for entry in wanted]
        counted = sorted(zip(txn.count_entries(self.shard, self.index, keys), keys, strict=True))
        counted = counted[: len(wanted) - common + 1]
        if sum(count for count, _ in counted) > max(FEW_ROWS, txn.stats(self.shard).rows // 4):
            return None
        return [[key for _, key in counted]]
