"""Functions of the extension pg_trgm (manual F.35): how similar texts are, by the trigrams that they share.

Its operators are calls of these functions (``planner.bind.define.extension_operators``), its operator class
for gin is an index of ``show_trgm`` of a column (``planner.bind.define.table.index``); for gist there is
none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from pgwire.codecs.float import show_float4
from pgwire.long.values import in_order
from planner.base.errors import SqlError
from planner.functions.numbers.floating import single
from planner.functions.registry import REGISTRY, PythonForm
from planner.functions.session import EvalSession
from planner.functions.text.trigrams import similarity, trigrams, word_similarity

SIMILARITY, WORD, STRICT = (
    f"pg_trgm.{name}_threshold" for name in ("similarity", "word_similarity", "strict_word_similarity")
)
"""Settings: at which similarity operators say yes; 0 to 1."""
DEFAULTS: Final = {SIMILARITY: 0.3, WORD: 0.6, STRICT: 0.5}

_R = TypeVar("_R")


def threshold(session: EvalSession, name: str) -> float:
    """Return a setting. Raises SqlError 22023 for one that is no number from 0 to 1."""
    try:
        text = session.setting(name)
    except SqlError as error:
        if error.sqlstate != "42704":
            raise
        return DEFAULTS[name]
    if not text:
        return DEFAULTS[name]  # of a transaction that set it and was rolled back
    try:
        value = float(text)
    except ValueError:
        raise SqlError("22023", f'invalid value for parameter "{name}": "{text}"') from None
    return _checked(name, value)


def _checked(name: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise SqlError("22023", f'{value:g} is outside the valid range for parameter "{name}" (0 .. 1)')
    return value


def show_trgm(text: str) -> list[str]:
    """Return the trigrams of a text in PostgreSQL's order: by their bytes, taken as signed."""
    return in_order(list(trigrams(text)), _bytes)


def _bytes(trigram: str) -> tuple[int, ...]:
    raw = bytes.fromhex(trigram[2:]) if len(trigram) > 3 else trigram.encode("ascii")
    return tuple(byte - 256 if byte > 127 else byte for byte in raw)


def set_limit(session: EvalSession, limit: float) -> float:
    """Set what ``%`` takes for similar. Raises SqlError 22023."""
    session.set_setting(SIMILARITY, show_float4(_checked(SIMILARITY, limit)), local=False)
    return limit


def _turned(function: Callable[[str, str], _R]) -> Callable[[str, str], _R]:
    return lambda a, b: function(b, a)


def _strict(words: str, text: str) -> float:
    return single(word_similarity(words, text, strict=True))


def _word(words: str, text: str) -> float:
    return single(word_similarity(words, text))


def _similarity(a: str, b: str) -> float:
    return single(similarity(a, b))


def _distance(function: Callable[[str, str], float]) -> Callable[[str, str], float]:
    return lambda a, b: single(1 - function(a, b))


def _reaches(function: Callable[[str, str], float], name: str) -> Callable[[EvalSession, str, str], bool]:
    return lambda session, a, b: function(a, b) >= threshold(session, name)


def _register() -> None:
    def python(signature: str, form: PythonForm, *, needs_session: bool = False) -> None:
        REGISTRY.python(f"pg_trgm.{signature}", form, needs_session=needs_session)

    python("show_trgm(text)", show_trgm)
    python("show_limit()", lambda session: single(threshold(session, SIMILARITY)), needs_session=True)
    python("set_limit(float4)", set_limit, needs_session=True)
    python("similarity(text,text)", _similarity)
    python("similarity_dist(text,text)", _distance(_similarity))
    python("similarity_op(text,text)", _reaches(_similarity, SIMILARITY), needs_session=True)
    for family, function, setting in (
        ("word_similarity", _word, WORD),
        ("strict_word_similarity", _strict, STRICT),
    ):
        back = _turned(function)
        python(f"{family}(text,text)", function)
        python(f"{family}_op(text,text)", _reaches(function, setting), needs_session=True)
        python(f"{family}_commutator_op(text,text)", _reaches(back, setting), needs_session=True)
        python(f"{family}_dist_op(text,text)", _distance(function))
        python(f"{family}_dist_commutator_op(text,text)", _distance(back))


_register()
