"""The judge of isolation specs tells equal from stricter from refused from wrong."""

from __future__ import annotations

import pytest

from tests.isolation.compare import Kind, compare

EXPECTED = """Parsed test spec with 2 sessions

starting permutation: a b
step a: UPDATE t SET n = 1;
step b: SELECT n FROM t;
n
-
1
(1 row)

ERROR:  could not serialize access due to concurrent update
"""


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (("n\n-\n1", "n  \n-\n  1"), "equal"),
        (("due to concurrent update", ": t (id = 1) changed since it was read"), "equal"),
        (("SELECT n FROM t;", "SELECT n FROM t; <waiting ...>"), "stricter"),
        (("(1 row)", "(1 row)\nERROR:  deadlock detected"), "stricter"),
        (("n\n-\n1\n(1 row)", "ERROR:  SELECT is not supported"), "refused"),
        (("\n1\n", "\n2\n"), "other"),
        (("ERROR:  could not serialize access due to concurrent update", ""), "kinder"),
        (("starting permutation: a b", "starting permutation: b a"), "lost"),
    ],
)
def test_kinds(change: tuple[str, str], kind: Kind) -> None:
    actual = EXPECTED.replace(*change)
    assert actual != EXPECTED
    assert compare([EXPECTED], actual).kind == kind


def test_a_snapshot_that_is_kept_is_stricter_only_where_read_committed_is_asked_for() -> None:
    actual = EXPECTED.replace("\n1\n", "\n0\n")
    assert compare([EXPECTED], actual, level_kept=True).kind == "stricter"
    assert compare([EXPECTED], actual).kind == "other"


def test_a_step_that_is_done_later_has_waited_longer() -> None:
    head = "starting permutation: a b c\nstep a: SELECT 1 FOR UPDATE; <waiting ...>\n"
    early = head + "step b: ROLLBACK TO s;\nstep a: <... completed>\nstep c: COMMIT;\n"
    late = head + "step b: ROLLBACK TO s;\nstep c: COMMIT;\nstep a: <... completed>\n"
    assert compare([early], late).kind == "stricter"
    assert compare([late], early).kind == "other"


def test_the_alternative_that_fits_counts() -> None:
    other = EXPECTED.replace("\n1\n", "\n2\n")
    assert compare([EXPECTED, other], other).kind == "equal"
    assert compare([other, EXPECTED], other).kind == "equal"


def test_a_spec_is_refused_if_its_set_up_is() -> None:
    verdict = compare([EXPECTED], "setup failed: ERROR:  PARTITION BY is not supported\n")
    assert (verdict.kind, verdict.refused) == ("refused", ("PARTITION BY",))


def test_a_step_that_does_not_have_to_wait_is_kinder() -> None:
    head = "starting permutation: a b\nstep a: SELECT 1;\n1\n"
    waits = head + "step b: TRUNCATE t; <waiting ...>\nstep a: COMMIT;\nstep b: <... completed>\n"
    at_once = head + "step b: TRUNCATE t;\nstep a: COMMIT;\n"
    assert compare([waits], at_once).kind == "kinder"
    assert compare([waits], at_once.replace("\n1\n", "\n2\n")).kind == "other"
