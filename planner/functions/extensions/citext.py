"""Functions of the extension citext (manual F.10): texts that compare without regard to case
(``pgwire.codecs.text.citext``).

Comparison is one of keys on every executor. What patterns do they do with small letters, or by the flag i, on
the row executor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from pgwire.codecs.text.citext import key, pack, unpack
from pgwire.long.values import decoded, find
from planner.base.letters import lower, upper
from planner.facts import facts
from planner.functions.registry import REGISTRY, PythonForm
from planner.functions.text.regex import regexp_match, regexp_matches, regexp_replace, regexp_split
from planner.functions.values.compare import register_comparisons
from planner.functions.values.range import comparisons

_PUNCTUATION: Final = r"([^a-zA-Z_0-9])"


@cache
def _of_text(signature: str) -> Callable[..., Any]:
    """Return the Python form of a built-in function; they are all there when the first value comes."""
    form = REGISTRY.functions[facts().proc_by_signature[signature]].python
    if form is None:
        raise AssertionError(f"{signature} is not computed here")
    return form


def _flags(flags: str) -> str:
    """Return flags of a regular expression such that case does not count, unless they say that it does."""
    return flags if "c" in flags else flags + "i"


def _quoted(text: str) -> str:
    """Return a regular expression for a text."""
    return regexp_replace(text, _PUNCTUATION, r"\\\1", "g")


def replace(text: bytes, old: bytes, new: bytes) -> str:
    """SQL's ``replace``."""
    return regexp_replace(unpack(text), _quoted(unpack(old)), unpack(new), "gi")


def split_part(text: bytes, delimiter: bytes, number: int) -> str | None:
    """SQL's ``split_part``: part ``number``, NULL where there is none."""
    parts = regexp_split(unpack(text), _quoted(unpack(delimiter)), "i")
    return parts[number - 1] if 0 < number <= len(parts) else None


def translate(text: bytes, old: bytes, new: str) -> str:
    """SQL's ``translate``: small and capital letters of ``old`` alike."""
    change, letters = _of_text("translate(text,text,text)"), unpack(old)
    return str(change(change(unpack(text), lower(letters), new), upper(letters), new))


def strpos(text: bytes, part: bytes) -> int:
    """SQL's ``strpos``."""
    return find(decoded(key(text)), decoded(key(part))) + 1


def _folded(signature: str) -> PythonForm:
    """Return a built-in function of two texts for a citext and what is, or is read as, one."""

    def apply(value: bytes, other: bytes | str) -> Any:
        second = other if isinstance(other, str) else unpack(other)
        return _of_text(signature)(unpack(value), second)

    return apply


def _hash(signature: str) -> PythonForm:
    return lambda value, *seed: _of_text(signature)(decoded(key(value)), *seed)


_FUNCTIONS: Final[dict[str, PythonForm]] = {
    "citextin(cstring)": pack,
    "citextout(citext)": unpack,
    "citext(bpchar)": lambda text: pack(text.rstrip(" ")),
    "citext(bool)": lambda value: pack("true" if value else "false"),
    "citext(inet)": lambda value: pack(_of_text("text(inet)")(value)),
    "citext_hash(citext)": _hash("hashtext(text)"),
    "citext_hash_extended(citext,int8)": _hash("hashtextextended(text,int8)"),
    "citext_larger(citext,citext)": lambda a, b: a if key(a) > key(b) else b,
    "citext_smaller(citext,citext)": lambda a, b: a if key(a) < key(b) else b,
    "regexp_match(citext,citext)": lambda s, p: regexp_match(unpack(s), unpack(p), "i"),
    "regexp_match(citext,citext,text)": lambda s, p, f: regexp_match(unpack(s), unpack(p), _flags(f)),
    "regexp_matches(citext,citext)": lambda s, p: regexp_matches(unpack(s), unpack(p), "i"),
    "regexp_matches(citext,citext,text)": lambda s, p, f: regexp_matches(unpack(s), unpack(p), _flags(f)),
    "regexp_replace(citext,citext,text)": lambda s, p, n: regexp_replace(unpack(s), unpack(p), n, "i"),
    "regexp_replace(citext,citext,text,text)": lambda s, p, n, f: regexp_replace(
        unpack(s), unpack(p), n, _flags(f)
    ),
    "strpos(citext,citext)": strpos,
    "replace(citext,citext,citext)": replace,
    "split_part(citext,citext,int4)": split_part,
    "translate(citext,citext,text)": translate,
}


def _register() -> None:
    for signature, form in _FUNCTIONS.items():
        REGISTRY.python(f"citext.{signature}", form)
    for name in ("regexp_split_to_array", "regexp_split_to_table"):
        REGISTRY.python(
            f"citext.{name}(citext,citext)", lambda s, p, n=name: regexp_split(unpack(s), unpack(p), "i", n)
        )
        REGISTRY.python(
            f"citext.{name}(citext,citext,text)",
            lambda s, p, f, n=name: regexp_split(unpack(s), unpack(p), _flags(f), n),
        )
    for stem in ("citext", "citext_pattern"):
        register_comparisons(comparisons(key), f"citext.{stem}_%s", "citext", "citext", f"citext.{stem}_cmp")
    for name in ("texticlike", "texticnlike", "texticregexeq", "texticregexne"):
        for other in ("citext", "text"):
            REGISTRY.python(f"citext.{name}(citext,{other})", _folded(f"{name}(text,text)"))


_register()
