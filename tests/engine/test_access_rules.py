"""Access rules: how a file is read, which rule fits, and what a client is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from engine.base.access_rules import AccessRulesError, Peer, find, read
from tests.support.server import ServerProcess


def rules_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rules"
    path.write_text(text, encoding="utf-8")
    return path


def decided(path: Path, user: str, database: str, peer: str, *, tls: bool = False, roles: str = "") -> str:
    """Return the method, or the line's number for a rejection, or nothing."""
    rule = find(
        read(str(path)), user, database, Peer.of(peer, tls), lambda role: role in (user, *roles.split())
    )
    return "nobody" if rule is None else rule.method


def test_the_first_rule_that_fits_decides(tmp_path: Path) -> None:
    path = rules_of(
        tmp_path,
        """# comment
local   all              all                                trust   # sockets
hostssl shop,"all"       alice, "+x", +staff  10.0.0.0/8   scram-sha-256
host    sameuser         all       10.1.0.0  255.255.0.0    trust
host    samerole         all       ::1/128                  trust
host    replication      all       all                      trust
host    all              mallory   all                      reject
hostnossl other          all       all                      scram-sha-256
""",
    )
    assert decided(path, "anybody", "shop", "local") == "trust"
    assert decided(path, "alice", "shop", "10.9.9.9:4711", tls=True) == "scram-sha-256"
    assert decided(path, "alice", "shop", "10.9.9.9:4711") == "nobody", "hostssl asks for TLS"
    assert decided(path, "alice", "shop", "11.0.0.1:4711", tls=True) == "nobody"
    assert decided(path, "alice", "all", "10.9.9.9:4711", tls=True) == "scram-sha-256", (
        "a quoted word is a name"
    )
    assert decided(path, "bob", "shop", "10.9.9.9:1", tls=True) == "nobody"
    assert decided(path, "bob", "shop", "10.9.9.9:1", tls=True, roles="staff") == "scram-sha-256"
    assert decided(path, "+x", "shop", "10.9.9.9:1", tls=True) == "scram-sha-256"
    assert decided(path, "bob", "bob", "10.1.2.3:1") == "trust"
    assert decided(path, "bob", "bob", "[::ffff:10.1.2.3]:1") == "trust", "IPv4 in IPv6's form"
    assert decided(path, "bob", "bob", "10.2.2.3:1") == "nobody"
    assert decided(path, "bob", "team", "[::1]:1", roles="team") == "trust"
    assert decided(path, "bob", "team", "[::1]:1") == "nobody"
    assert decided(path, "bob", "replication", "10.2.2.3:1") == "nobody"
    assert decided(path, "mallory", "x", "192.0.2.1:1") == "reject"
    assert decided(path, "bob", "other", "192.0.2.1:1") == "scram-sha-256"
    assert decided(path, "bob", "other", "192.0.2.1:1", tls=True) == "nobody"


def test_a_file_is_cut_into_lines_and_words_as_postgresql_does_it(tmp_path: Path) -> None:
    path = rules_of(
        tmp_path,
        """# an old one, joined to this comment: \\
host    all          eve                        all                        trust
# no line ends here:\u2028host all eve all trust\x0bhost all eve all trust\x0chost all eve all trust\x85host all eve all trust\rhost all eve all trust\r
host    all \\
        bob                                     10.0.0.1 255.255.255.255   trust\r
host    all          +"the""best"",staff","x#y" \\
                                                ::1/128                    trust
host    "my db"      "ann b"                    fe80:: ffff:ffff:ffff:ffff:0:0:0:0 trust
host    al"l"        "all"                      0.0.0.0 0.0.0.0            reject
host    odd\u00a0db  carl                       all                        trust""",
    )
    assert decided(path, "eve", "shop", "10.0.0.1:1") == "nobody"
    assert decided(path, "bob", "shop", "10.0.0.1:1") == "trust"
    assert decided(path, "bob", "shop", "10.0.0.2:1") == "nobody"
    assert decided(path, "ann", "shop", "[::1]:1", roles='the"best",staff') == "trust", "and the next line"
    assert decided(path, "x#y", "shop", "[::1]:1") == "trust"
    assert decided(path, "x", "shop", "[::1]:1") == "nobody"
    assert decided(path, "ann b", "my db", "[fe80::1]:1") == "trust"
    assert decided(path, "ann b", "my db", "[fe80:0:0:1::1]:1") == "nobody"
    assert decided(path, "all", "shop", "192.0.2.1:1") == "reject", (
        "a keyword is one that begins without a quote"
    )
    assert decided(path, "carl", "odd\u00a0db", "192.0.2.1:1") == "trust"
    assert [rule.line for rule in read(str(path))] == [4, 6, 8, 9, 10]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hosts all all all trust", 'type "hosts" is not one of'),
        ("host all", "database and user are missing"),
        ("host all all", "the address is missing"),
        ("host all all all", "the method is missing"),
        ("local all all", "the method is missing"),
        ("host all all example.org trust", "host names are not supported"),
        ("host all all 127.0.0.1 trust", "needs the length of its mask"),
        ("host all all 127.0.0.1/99 trust", "no address with a mask"),
        ("host all all 127.0.0.1 255.0.255.0 trust", "no address with a mask"),
        ("host all all all md5", 'method "md5" is not supported'),
        ("host all all all scram-sha-256 clientcert=verify-full", "options of a method are not supported"),
        ("host @dbs all all trust", "files and regular expressions"),
        ("host all /^a all trust", "files and regular expressions"),
        ("include other", "include is not supported"),
        ('host "all all all trust', "a quoted name does not end"),
        ("host a, , all trust", "a comma without a name before it"),
        ("host all ann ,bob 127.0.0.1/32 trust", "a comma without a name before it"),
        ("host all ann,bob, # and others", "a comma without a name behind it"),
        ("host all all 10.0.0.0 0.0.0.255 trust", "no address with a mask"),
        ("host all all 10.0.0.0/0.0.0.255 trust", "no address with a mask"),
        ("host all all 10.0.0.0/255.0.0.0 trust", "no address with a mask"),
        ("host all all 10.0.0.0 ffff:: trust", "no address with a mask"),
        ("host all all 10.0.0.0/ trust", "no address with a mask"),
        ("host all all 10.0.0.0/-1 trust", "no address with a mask"),
        ("host all all 10.0.0.0/\u0661 trust", "no address with a mask"),
        ('host all all "all" trust', "host names are not supported"),
        ("host all\u00a0all all trust", "host names are not supported"),
        ("host,local all all all trust", "one type is asked for"),
        ("", "has no rule"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = rules_of(tmp_path, "# first\n" + line + "\n")
    with pytest.raises(AccessRulesError, match=message) as caught:
        read(str(path))
    assert str(path) in str(caught.value)
    assert not line or "line 2" in str(caught.value)


def test_a_server_with_access_rules(tmp_path: Path) -> None:
    path = rules_of(
        tmp_path,
        "host all postgres 127.0.0.1/32 trust\nhost postgres ann all scram-sha-256\nhost all eve all reject\n",
    )
    server = ServerProcess(tmp_path / "data", "--access-rules", str(path))
    where = f"host=127.0.0.1 port={server.port} dbname=postgres sslmode=disable"
    try:
        for role in ("ann PASSWORD 'secret'", "eve", "bob"):
            server.sql(f"CREATE ROLE {role.split()[0]} LOGIN {' '.join(role.split()[1:])}")
        shown = server.sql(
            "SELECT line_number, type, user_name, address, netmask, auth_method FROM pg_hba_file_rules"
        )
        assert shown[0] == ("1", "host", "{postgres}", "127.0.0.1", "255.255.255.255", "trust")
        assert shown[2] == ("3", "host", "{eve}", "all", None, "reject")
        assert server.sql("SELECT count(*) FROM pg_hba_file_rules()") == [("3",)]
        with psycopg.connect(f"{where} user=ann password=secret") as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        server.sql("ALTER ROLE ann VALID UNTIL '2000-01-01'")
        with pytest.raises(psycopg.OperationalError, match='password authentication failed for user "ann"'):
            psycopg.connect(f"{where} user=ann password=secret")
        server.sql("ALTER ROLE ann VALID UNTIL 'infinity'")
        psycopg.connect(f"{where} user=ann password=secret").close()
        for words, message in (
            ("user=ann password=wrong", 'password authentication failed for user "ann"'),
            (
                "user=eve",
                'pg_hba.conf rejects connection for host "127.0.0.1", user "eve", database "postgres", no encryption',
            ),
            (
                "user=bob",
                'no pg_hba.conf entry for host "127.0.0.1", user "bob", database "postgres", no encryption',
            ),
            ("user=nobody", 'no pg_hba.conf entry for host "127.0.0.1", user "nobody"'),
        ):
            with pytest.raises(psycopg.OperationalError, match=message):
                psycopg.connect(f"{where} {words}")
        path.write_text("nonsense\n")
        os.kill(server.process.pid, signal.SIGHUP)
        _until(lambda: "stay as they were" in server.log())
        assert server.sql("SELECT 1") == [("1",)]
        path.write_text("host all postgres,bob all trust\n")
        os.kill(server.process.pid, signal.SIGHUP)
        _until(lambda: "read 1 access rules" in server.log())
        psycopg.connect(f"{where} user=bob").close()
    finally:
        assert server.stop() == 0


def _until(holds: object) -> None:
    assert callable(holds)
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_server_that_others_reach_needs_a_rule_that_asks_for_a_password(tmp_path: Path) -> None:
    path = rules_of(tmp_path, "host all all all trust\n")
    words = ["serve", "--host", "0.0.0.0", "--data-dir", str(tmp_path / "data"), "--access-rules", str(path)]
    done = subprocess.run(
        [sys.executable, "-m", "engine", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "access_rules that only trust are refused" in done.stderr
