"""Server configuration: one table of settings with units, defaults and limits.

Every setting can come from three places, the later one winning: a TOML file (``--config``), the environment
(``HOLDFAST_<NAME>``), the command line (``--name``). Names are the same in all three, with ``-`` for ``_`` on the
command line. Unknown names and values out of range are errors that say where they came from.
"""

from __future__ import annotations

import argparse
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.base import access_rules
from engine.base.server_files import roots_of
from engine.base.spark_properties import check_master, check_property
from txn.persist.blobs.object_url import CACHE_FOLDER, is_object_url, parse_object_url

DEFAULT_PORT = 7432


class ConfigError(Exception):
    """A setting that cannot be used; the message says which and where it came from."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: ``kind`` int, str, bool, bytes (1048576, 512MB, 2GB), choice or pairs.

    Pairs are ``key=value``: a table in the file, one per line in the environment, repeated on the command line. Keys of
    all three places add up.
    """

    name: str
    kind: str
    default: Any
    help: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()


OPTIONS: tuple[Option, ...] = (
    Option("host", "str", "127.0.0.1", "address to listen on; anything but loopback needs passwords"),
    Option("port", "int", DEFAULT_PORT, "TCP port; 0 lets the system choose", 0, 65535),
    Option("data_dir", "str", "./data", "data directory, for the server's user alone (0700 or 0750); made if absent"),
    Option("consensus", "str", "", "postgresql://... of the log that servers share; none = a log in data_dir (a password is "
           "best given by the environment or ~/.pgpass)"),
    Option("consensus_schema", "str", "holdfast", "schema of that database which holds the log"),
    Option("blob", "str", "", "where data files are: an object store, s3://bucket/prefix or gs://..., or (with consensus) a "
           "directory that servers share; none = data_dir"),
    Option("disk_reserve", "bytes", 16 << 20, "space kept in data_dir, so that DROP, TRUNCATE, DELETE and CHECKPOINT work on a full disk and the "
           "server starts; 0 = none", 0),
    Option("blob_cache", "bytes", 10 << 30, "space for local copies of files in an object store", 1 << 20),
    Option("lease_ms", "int", 5000, "how long a leader answers without hearing from the consensus, and how long a standby "
           "waits", 200, 600_000),
    Option("standby", "bool", False, "wait until the leader has ended or stalls, then lead; needs consensus"),
    Option("max_connections", "int", 200, "connections served at once, the last three of them for superusers; each needs a file descriptor", 1, 100_000),
    Option("memory", "bytes", 0, "memory for hot rows, caches, DuckDB and the JVM together (engine/base/memory.py); 0 = half of the machine"),
    Option("auth", "choice", "trust", "how clients authenticate: trust (loopback only) or scram-sha-256",
           choices=("trust", "scram-sha-256")),
    Option("access_rules", "str", "", "file in pg_hba.conf's form that decides by database, user and address (engine/base/access_rules.py), "
           "read again at SIGHUP; none = auth for everybody"),
    Option("tls_cert", "str", "", "PEM certificate chain; with tls_key enables TLS"),
    Option("tls_key", "str", "", "PEM private key"),
    Option("spark_master", "str", "local[*]", "Spark master URL: local[*], spark://..., k8s://..., yarn"),
    Option("spark_start", "choice", "background", "when the Spark JVM starts: at once in the background, at first use, never",
           choices=("background", "lazy", "off")),
    Option("spark_conf", "pairs", (), "a Spark property, key=value; may be repeated (docs/guide/cluster.md)"),
    Option("spark_max_queries", "int", 4, "statements that run jobs on Spark at once; others wait", 1, 256),
    Option("spark_nice", "int", 5, "how far the Spark JVM stands back from the server for the processors (nice value)", 0, 19),
    Option("merge_spark_min_bytes", "bytes", 64 << 20, "parts of at least so many bytes together are merged by Spark when it is available"),
    Option("local_threads", "int", 0, "DuckDB threads; 0 = one per core", 0, 1024),
    Option("local_queries", "int", 4, "queries that run on DuckDB at once; others wait", 1, 1024),
    Option("flush_rows", "int", 50_000, "hot rows of a table that make it flush to a part", 100, 100_000_000),
    Option("history_retention", "int", 600, "seconds of history kept readable (AS OF SYSTEM TIME) besides what transactions "
           "hold", 0, 10**7),
    Option("deadlock_policy", "choice", "detect",
           "what is done when a lock has to be waited for: detect ends deadlocks, the others prevent them",
           choices=("detect", "wound_wait", "wait_die", "no_wait", "timeout")),
    Option("shutdown_timeout_s", "int", 10, "seconds that SIGTERM lets running statements finish", 0, 86_400),
    Option("authentication_timeout_s", "int", 60, "seconds a client has to authenticate", 1, 3600),
    Option("max_message_bytes", "bytes", 512 << 20, "largest message a client may send: a statement, or the values of its parameters", 1024),
    Option("server_files", "str", "", "directories and s3:// or gs:// URLs, separated by commas, below which COPY may read and write "
           "files of the server and objects; none = nowhere"),
    Option("setting", "pairs", (), "what a session setting begins with unless role, database or client say otherwise, name=value, such as "
           "log_statement=ddl; may be repeated"),
    Option("log_level", "choice", "info", "what is logged to standard error",
           choices=("debug", "info", "warning", "error")),
    Option("loop_stall_ms", "int", 0, "log event loop stalls longer than this many milliseconds; 0 = off", 0, 60_000),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one server, checked."""

    host: str
    port: int
    data_dir: str
    consensus: str = field(repr=False)
    consensus_schema: str
    blob: str
    disk_reserve: int
    blob_cache: int
    lease_ms: int
    standby: bool
    max_connections: int
    memory: int
    auth: str
    access_rules: str
    tls_cert: str
    tls_key: str
    spark_master: str
    spark_start: str
    spark_max_queries: int
    spark_nice: int
    merge_spark_min_bytes: int
    spark_conf: tuple[tuple[str, str], ...] = field(repr=False)  # there may be secrets in it
    local_threads: int
    local_queries: int
    flush_rows: int
    history_retention: int
    deadlock_policy: str
    shutdown_timeout_s: int
    authentication_timeout_s: int
    max_message_bytes: int
    server_files: str
    setting: tuple[tuple[str, str], ...]
    log_level: str
    loop_stall_ms: int

    @property
    def blob_dir(self) -> Path:
        """The folder below which parts lie, or their local copies."""
        if self.object_store:
            return Path(self.data_dir) / CACHE_FOLDER
        return Path(self.blob) if self.consensus else Path(self.data_dir)

    def relative(self, text: str) -> str:
        """Return a text in which files of the server are called as they are within its folders."""
        places = {str(Path(self.data_dir)), str(Path(self.data_dir).resolve()), str(self.blob_dir)}
        places |= {self.blob.rstrip("/")} if self.object_store else set()
        for place in sorted(places - {"."}, key=len, reverse=True):
            text = text.replace(f"{place}/", "")
        return text

    @property
    def object_store(self) -> bool:
        """Whether data files are in an object store."""
        return is_object_url(self.blob)

    @property
    def loopback(self) -> bool:
        """True when only this machine can connect."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


_BOOLEANS = {
    "on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False,
}  # fmt: skip
_CONSENSUS_SCHEMES = ("postgresql://", "postgres://")


def parse_bytes(text: str) -> int:
    """Read a number of bytes with an optional unit (B, KB, MB, GB, TB: powers of 1024). ValueError, KeyError."""
    units = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
    stripped = text.strip().upper()
    digits = stripped.rstrip("BKMGT")
    return int(digits) * units[stripped[len(digits) :]]


def _convert(option: Option, value: Any, source: str) -> Any:
    """Return ``value`` in the option's type, or raise ConfigError naming ``source``."""
    if option.kind == "pairs":
        return _pairs(option, value, source)
    try:
        if option.kind == "int":
            converted: Any = int(value)
        elif option.kind == "bool":
            converted = value if isinstance(value, bool) else _BOOLEANS[str(value).lower()]
        elif option.kind == "bytes":
            converted = value if isinstance(value, int) else parse_bytes(str(value))
        else:
            converted = str(value)
    except (ValueError, KeyError):
        raise ConfigError(f"{source}: {option.name} cannot be {value!r} ({option.help})") from None
    if option.kind == "choice" and converted not in option.choices:
        raise ConfigError(f"{source}: {option.name} must be one of {', '.join(option.choices)}")
    if option.minimum is not None and converted < option.minimum:
        raise ConfigError(f"{source}: {option.name} must be at least {option.minimum}")
    if option.maximum is not None and converted > option.maximum:
        raise ConfigError(f"{source}: {option.name} must be at most {option.maximum}")
    return converted


def _pairs(option: Option, value: Any, source: str) -> tuple[tuple[str, str], ...]:
    """Return pairs by key; of a key that comes twice the last. The value is not shown: it may be a secret."""
    if isinstance(value, Mapping):
        items: list[Any] = list(value.items())
    else:
        lines = [line.strip() for line in value.splitlines()] if isinstance(value, str) else value
        items = [
            line.partition("=")[::2] if isinstance(line, str) and "=" in line else line
            for line in lines
            if line
        ]
    found: dict[str, str] = {}
    for item in items:
        if not isinstance(item, tuple):
            raise ConfigError(f"{source}: {option.name} has to be key=value")
        key, text = item
        if isinstance(text, bool):
            text = str(text).lower()
        elif not isinstance(text, str | int | float):
            raise ConfigError(f"{source}: {option.name}: the value of {key} has to be a text or a number")
        found[key.strip()] = str(text).strip()
        problem = check_property(key.strip(), found[key.strip()]) if option.name == "spark_conf" else None
        if problem is not None:
            raise ConfigError(f"{source}: {option.name}: {key.strip()}: {problem}")
    return tuple(found.items())


def default_memory() -> int:
    """Return half of what the machine, or the cgroup this process is in, has (bytes)."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit():
            total = min(total, int(limit))
    return total // 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every setting to a command line."""
    parser.add_argument("--config", metavar="FILE", help="TOML file with settings")
    for option in OPTIONS:
        flag = "--" + option.name.replace("_", "-")
        default = ("off", "on")[option.default] if option.kind == "bool" else option.default
        shown = f"{option.help} (default: {default if default != '' else 'none'})"
        metavar = "{" + ",".join(option.choices) + "}" if option.choices else option.kind.upper()
        if option.kind == "bool":
            parser.add_argument(flag, dest=option.name, nargs="?", const="on", help=shown, metavar="{on,off}")
            continue
        if option.kind == "pairs":
            parser.add_argument(
                flag, dest=option.name, action="append", help=option.help, metavar="KEY=VALUE"
            )
            continue
        parser.add_argument(flag, dest=option.name, metavar=metavar, help=shown.replace("%", "%%"))


def load(arguments: argparse.Namespace, environment: Mapping[str, str]) -> Config:
    """Return the settings from file, environment and command line; ConfigError when one is wrong."""
    values: dict[str, Any] = {option.name: option.default for option in OPTIONS}

    def set_value(option: Option, value: Any, source: str) -> None:
        converted = _convert(option, value, source)
        if option.kind == "pairs":
            converted = tuple((dict(values[option.name]) | dict(converted)).items())
        values[option.name] = converted

    by_name = {option.name: option for option in OPTIONS}
    path = arguments.config or environment.get("HOLDFAST_CONFIG")
    if path:
        try:
            with Path(path).open("rb") as handle:
                file = tomllib.load(handle)
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from None
        for name, value in file.items():
            if name not in by_name:
                raise ConfigError(f"{path}: there is no setting {name}")
            set_value(by_name[name], value, path)
    for option in OPTIONS:
        variable = "HOLDFAST_" + option.name.upper()
        if variable in environment:
            set_value(option, environment[variable], variable)
        given = getattr(arguments, option.name, None)
        if given is not None:
            set_value(option, given, "--" + option.name.replace("_", "-"))
    if values["memory"] == 0:
        values["memory"] = default_memory()
    config = Config(**{field.name: values[field.name] for field in fields(Config)})
    try:
        rules = access_rules.read(config.access_rules) if config.access_rules else ()
    except access_rules.AccessRulesError as error:
        raise ConfigError(f"access_rules: {error}") from None
    if not config.loopback and (access_rules.only_trust(rules) if rules else config.auth == "trust"):
        what = "access_rules that only trust are" if rules else "trust authentication is"
        raise ConfigError(
            f"host {config.host} is reachable from other machines, where {what} refused; "
            + ("let a rule ask for scram-sha-256" if rules else "set auth = scram-sha-256")
        )
    if "://" in config.blob:
        try:
            parse_object_url(config.blob)
        except ValueError as error:
            raise ConfigError(f"blob: {error}") from None
    elif bool(config.consensus) != bool(config.blob):
        raise ConfigError("consensus and a blob directory go together: servers share both or neither")
    if config.standby and not config.consensus:
        raise ConfigError("standby needs consensus, which the leader and its standbys share")
    if config.consensus and not config.consensus.startswith(_CONSENSUS_SCHEMES):
        raise ConfigError("consensus must be a postgresql:// URL")  # not shown: there may be a password in it
    if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", config.consensus_schema):
        raise ConfigError("consensus_schema must be a plain name in lower case")
    problem = check_master(config.spark_master, dict(config.spark_conf))
    if problem is not None:
        raise ConfigError(problem)
    if bool(config.tls_cert) != bool(config.tls_key):
        raise ConfigError("tls_cert and tls_key go together")
    try:
        roots_of(config.server_files)
    except ValueError as error:
        raise ConfigError(f"server_files: {error}") from None
    return config
