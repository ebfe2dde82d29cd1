"""Options every suite shares."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite golden scripts with what they print now")
    parser.addoption(
        "--against",
        metavar="HOST:PORT",
        help="run golden wire scripts against this PostgreSQL (user postgres, trust) instead of ours",
    )


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))
