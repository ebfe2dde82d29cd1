"""A role that tests log in as, and what it finds: made before, gone afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.support.fields import FieldsClient, connect
from tests.support.server import ServerProcess


@contextmanager
def logged_in(
    server: ServerProcess, role: str, *, before: Iterable[str], after: Iterable[str] = ()
) -> Iterator[FieldsClient]:
    """Yield a client of a new role that owns nothing. A superuser runs ``before`` once the role is there, ``after`` before it goes with all that it owns."""
    root = connect(server.port)
    for sql in (f"CREATE ROLE {role} LOGIN", *before):
        root.run(sql)
    client = connect(server.port, user=role)
    yield client
    client.close()
    for sql in (*after, f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}"):
        root.run(sql)
    root.close()
