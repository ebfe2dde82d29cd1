"""The functions of the extension unaccent (manual F.48): characters without their diacritics, by a dictionary's rules.

Its dictionaries are in ``planner.textsearch.dictionaries``.
"""

from __future__ import annotations

from planner.functions.registry import REGISTRY
from planner.functions.search.functions import found_dictionary
from planner.functions.session import EvalSession
from planner.textsearch.unaccent import without_accents


def _by_dictionary(session: EvalSession | None, oid: int, text: str) -> str:
    """SQL's ``unaccent(regdictionary, text)``, of a dictionary of any template. SqlError XX000 for none."""
    found = found_dictionary(session, oid).lexize(text)
    return found[0] if found else text


def _register() -> None:
    REGISTRY.python("unaccent.unaccent(text)", without_accents)
    REGISTRY.python("unaccent.unaccent(regdictionary,text)", _by_dictionary, needs_session=True)


_register()
