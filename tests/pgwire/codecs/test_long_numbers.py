"""Numbers of thousands of digits wherever a value's text holds one: an answer or an error of PostgreSQL's, never Python's."""

from __future__ import annotations

import pytest

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import text_input
from pgwire.codecs.text import BEYOND, int_of
from planner.errors import SqlError
from planner.facts import facts

N = "9" * 5000
FORMS = (
    "N", "-N", "+N", "1.N", "1eN", "(N,N)", "[N:N]={1}", "{N}", "N/N", "[N,N)", "N:N:N", "N-N-N", "2020-01-01 00:00:00.N",
    "2020-01-01 00:00+N", "N days", "PNY", "N:1", "a:N", "'a':NA", "a <N> b", "$.a[N]", "$.**{N}", "10.0.0.1/N", "N.1.1.1",
    "postgres=N/x", "N,N,N", "<(N,N),N>", "$N.N", "JN", "N BC", "now N", "BN", "12:N", "12:00:N", "N:00", "2020-N", "2020-01-N",
    "Jan N", "P1YNM", "PTNS", "1 day N:N", "N.5 days", "@ N ago",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_type_reads_or_refuses(form: str) -> None:
    text = form.replace("N", N)
    for oid in facts().types:
        try:
            text_input(oid, text)
        except (DataError, SqlError):
            pass


def test_numbers_are_read_as_they_are_or_as_beyond_every_bound() -> None:
    assert int_of("-7") == -7
    assert int_of("+" + "0" * 5000 + "7") == 7
    assert int_of("-" + "0" * 5000) == 0
    assert int_of(N) == BEYOND
    assert int_of("-" + N) == -BEYOND
