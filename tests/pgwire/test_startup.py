"""What a start-up packet's options mean."""

from __future__ import annotations

import pytest

from pgwire.errors import RemoteProtocolError
from pgwire.messages.startup import parse_options, session_parameters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("-c statement_timeout=1234", {"statement_timeout": "1234"}),
        ("-cstatement_timeout=1234", {"statement_timeout": "1234"}),
        ("--statement-timeout=1234", {"statement_timeout": "1234"}),
        (
            r"-c default_transaction_isolation=repeatable\ read  -c search_path=a",
            {"default_transaction_isolation": "repeatable read", "search_path": "a"},
        ),
        (r"-c x=a\\b", {"x": "a\\b"}),
        ("-c x=", {"x": ""}),
        ("-c x=a=b", {"x": "a=b"}),
        ("-c x=1 -c x=2", {"x": "2"}),
    ],
)
def test_options_are_settings(text: str, expected: dict[str, str]) -> None:
    assert parse_options(text) == expected


@pytest.mark.parametrize("text", ["x", "-c", "-c x", "-c =1", "-F", "--x"])
def test_other_switches_are_refused(text: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        parse_options(text)
    assert caught.value.sqlstate == "42601"
    assert caught.value.fatal


def test_direct_parameters_win_over_options() -> None:
    given = {"user": "u", "options": "-c DateStyle=German -c x=1", "datestyle": "ISO", "_pq_.a": "b"}
    assert session_parameters(given) == {"user": "u", "database": "u", "datestyle": "ISO", "x": "1"}


def test_replication_is_refused_unless_it_is_off() -> None:
    assert "replication" not in session_parameters({"user": "u", "replication": "false"})
    with pytest.raises(RemoteProtocolError, match="not supported"):
        session_parameters({"user": "u", "replication": "database"})


def test_a_user_is_required() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        session_parameters({"database": "d", "user": ""})
    assert caught.value.sqlstate == "28000"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("x" * 63, "x" * 63),
        ("x" * 70, "x" * 63),
        ("é" * 40, "é" * 31 + "\ufffd"),
        ("é" * 31 + "x", "é" * 31 + "x"),
    ],
)
def test_names_end_after_63_bytes(given: str, kept: str) -> None:
    assert session_parameters({"user": given, "database": given}) == {"user": kept, "database": kept}
    assert session_parameters({"user": given})["database"] == kept
