"""Options of servers that share their stores: what goes together, where it comes from, what is never shown."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from engine.base.config import Config, ConfigError, add_arguments, load

SECRET = "postgresql://me:s3cret@db/holdfast"


def config(*words: str, **environment: str) -> Config:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return load(parser.parse_args(words), environment)


def test_a_server_has_a_log_of_its_own_unless_told_otherwise(tmp_path: Path) -> None:
    plain = config("--data-dir", str(tmp_path))
    assert (plain.consensus, plain.standby, plain.lease_ms) == ("", False, 5000)
    assert plain.blob_dir == tmp_path


def test_options_come_from_file_environment_and_command_line(tmp_path: Path) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_text(f'consensus = "{SECRET}"\nblob = "/b"\nstandby = true\nlease_ms = 900\n')
    made = config("--config", str(file))
    assert (made.consensus, made.standby, made.lease_ms, made.blob_dir) == (SECRET, True, 900, Path("/b"))
    made = config("--config", str(file), "--standby", "off", HOLDFAST_LEASE_MS="800", HOLDFAST_BLOB="/c")
    assert (made.standby, made.lease_ms, made.blob_dir) == (False, 800, Path("/c"))
    assert config("--consensus", SECRET, "--blob", "/b", "--standby").standby


@pytest.mark.parametrize(
    "words",
    [
        ["--consensus", SECRET],
        ["--blob", "/b"],
        ["--standby"],
        ["--consensus", SECRET.replace("postgresql", "mysql"), "--blob", "/b"],
        ["--consensus", SECRET, "--blob", "/b", "--consensus-schema", "a; DROP"],
        ["--consensus", SECRET, "--blob", "/b", "--lease-ms", "10"],
        ["--consensus", SECRET, "--blob", "/b", "--standby", "perhaps"],
    ],
)
def test_what_does_not_go_together_is_refused_without_showing_the_password(words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        config(*words)
    assert "s3cret" not in str(raised.value)


def test_a_configuration_shows_no_password() -> None:
    assert "s3cret" not in repr(config("--consensus", SECRET, "--blob", "/b"))
