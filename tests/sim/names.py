"""Bodies about unique names and what refers to them: unique races, foreign keys.

claim    insert a row with a name               rename   give a row another name
upsert   INSERT ... ON CONFLICT DO UPDATE       swap     two rows exchange theirs, at once or with a deferred check
release  delete a row; RESTRICT or CASCADE      refer    insert a row that refers to one: FOR KEY SHARE
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.sim.checker.history import Op
from tests.sim.session import Session, now
from tests.sim.tables import BY_V, NAMES, PK, REFS, content
from txn.base.errors import DuplicateKey
from txn.base.types import KeyRange, StoredRow


async def names(s: Session) -> None:
    rng = s.rng
    if s.txn.read_only or rng.random() < 0.15:
        await s.statement()
        await list_names(s)
        return
    draw = rng.random()
    u = rng.randrange(s.sizes.names)
    if draw < 0.35:
        await claim(s, u)
    elif draw < 0.5:
        await upsert(s, u)
    else:
        await s.statement(NAMES)
        held = await now(s.txn.lookup(NAMES, BY_V, [(u,)], for_update=rng.random() < 0.6))
        note_holder(s, u, held)
        if not held:
            await claim(s, u)
        elif draw < 0.7:
            await release(s, held[0])
        elif draw < 0.9:
            await rename(s, held[0], rng.randrange(s.sizes.names))
        else:
            await swap(s, held[0], rng.randrange(s.sizes.names))


def note_holder(s: Session, u: int, rows: list[StoredRow], via: str = "key") -> None:
    """Note who holds a name."""
    if len(rows) > 1:
        s.record.ops.append(Op("unique", "names.u", tuple(r.values[1] for r in rows)))
    row = rows[0].values if rows else None
    s.record.read(("u", u), None if row is None else (row[0], int(row[2])), via)
    if row is not None:
        s.record.read(("id", row[0]), (row[1], int(row[2])), via)


def hold(s: Session, row_id: int, u: int, tag: int) -> None:
    """Note that a row holds a name now."""
    s.record.write(("u", u), (row_id, tag))
    s.record.write(("id", row_id), (u, tag))


def born(s: Session, row_id: int, u: int, tag: int) -> None:
    """Note a new row."""
    s.recorder.claimed.append(row_id)
    s.record.read(("alive", row_id), None, "unique")
    s.record.write(("alive", row_id), row_id)
    hold(s, row_id, u, tag)


async def release(s: Session, row: StoredRow) -> None:
    """Remove a name as ON DELETE RESTRICT or CASCADE does it: the row first, then what refers to it is looked for."""
    row_id, u, _ = row.values
    mark, count = s.txn.savepoint(), len(s.record.ops)
    await now(s.txn.delete(NAMES, [row.row_id]))
    s.record.write(("u", u), None)
    s.record.write(("id", row_id), None)
    s.record.read(("alive", row_id), row_id)
    s.record.write(("alive", row_id), None)
    cascade = s.rng.random() < 0.5
    if cascade:
        await now(s.txn.begin_write([REFS]))
    children = await now(s.txn.lookup(REFS, PK, [(row_id,)], for_update=cascade))
    s.record.read(("refs", row_id), content(REFS, children[0].values) if children else None)
    if not children:
        return
    if cascade:
        await now(s.txn.delete(REFS, [children[0].row_id]))
        s.record.write(("refs", row_id), None)
    else:
        s.txn.rollback_to(mark)
        del s.record.ops[count:]


async def refer(s: Session) -> None:
    """Insert or change a row that refers to a name; the name is locked FOR KEY SHARE, as foreign keys do it."""
    if not s.recorder.claimed:
        return
    parent = s.rng.choice(s.recorder.claimed[-4:])
    await s.statement(REFS)
    if s.rng.random() < 0.5:
        found: Sequence[StoredRow | None] = await now(
            s.txn.lookup(NAMES, PK, [(parent,)], for_update="key share")
        )
    else:  # no lock but that of the row
        found = await now(s.txn.lookup(NAMES, PK, [(parent,)], peek=True))
        ids = [row.row_id for row in found if row is not None]
        found = [
            row for row in await now(s.txn.lock_rows(NAMES, ids, "key share", "block")) if row is not None
        ]
        if not found:
            return  # it may have been none that has been committed
    s.record.read(("alive", parent), parent if found else None)
    if not found:
        return
    await s.pause()
    s.txn.next_statement()
    rows = await now(s.txn.lookup(REFS, PK, [(parent,)], for_update=s.rng.random() < 0.5))
    old = rows[0] if rows else None
    s.record.read(("refs", parent), None if old is None else content(REFS, old.values))
    tag = s.recorder.value()
    await s.put(REFS, parent, (parent, tag % 11, str(tag)), old)
    s.record.write(("refs", parent), tag)


async def orphans(s: Session) -> None:
    """Every row that refers to a name has one."""
    children = [row.values[0] async for chunk in s.txn.scan(REFS) for row in chunk]
    parents = {row.values[0] async for chunk in s.txn.scan(NAMES) for row in chunk}
    s.record.ops.append(Op("total", "orphans", ([], [k for k in children if k not in parents])))


async def list_names(s: Session) -> None:
    """Read all names by one of the ways there are."""
    if s.is_sorted(NAMES, BY_V) and s.rng.random() < 0.5:
        rows = await now(s.txn.range(NAMES, BY_V, KeyRange()))
        via = "range"
    else:
        rows = [row async for chunk in s.txn.scan(NAMES) for row in chunk]
        via = "scan"
    s.record.ops.append(Op("unique", "names.u", tuple(r.values[1] for r in rows)))
    s.check_unique(NAMES, rows)
    for u in range(s.sizes.names):
        note_holder(s, u, [r for r in rows if r.values[1] == u], via)


async def claim(s: Session, u: int) -> None:
    """Insert a new row with a name, which somebody may have."""
    await s.statement(NAMES)
    row_id, tag = s.recorder.value(), s.recorder.value()
    mark = s.txn.savepoint()
    deferred = s.rng.random() < 0.2
    s.txn.defer_unique(BY_V, deferred)
    try:
        await now(s.txn.insert(NAMES, [(row_id, u, str(tag))]))
        if deferred:
            await s.pause()
            await now(s.txn.check_unique(NAMES, BY_V))
    except DuplicateKey:
        s.txn.rollback_to(mark)
        return
    finally:
        s.txn.defer_unique(BY_V, False)
    s.record.read(("u", u), None, "unique")
    born(s, row_id, u, tag)


async def upsert(s: Session, u: int) -> None:
    """INSERT ... ON CONFLICT (u) DO UPDATE."""
    await s.statement(NAMES)
    row_id, tag = s.recorder.value(), s.recorder.value()
    row = (row_id, u, str(tag))
    other = await now(s.txn.insert_unless(NAMES, row, [BY_V]))
    if isinstance(other, int):
        note_holder(s, u, [])
        born(s, row_id, u, tag)
    else:
        note_holder(s, u, [other])
        await now(s.txn.update(NAMES, [(other.row_id, (other.values[0], u, str(tag)))]))
        hold(s, other.values[0], u, tag)


async def rename(s: Session, row: StoredRow, u: int) -> None:
    """Give a row another name, which somebody may have."""
    row_id, old, _ = row.values
    if u == old:
        return
    tag = s.recorder.value()
    mark = s.txn.savepoint()
    try:
        done = await now(s.txn.update(NAMES, [(row.row_id, (row_id, u, str(tag)))]))
    except DuplicateKey:
        s.txn.rollback_to(mark)
        return
    if done != [True]:
        raise AssertionError("a locked name has vanished")
    s.record.read(("u", u), None, "unique")
    s.record.write(("u", old), None)
    hold(s, row_id, u, tag)


async def swap(s: Session, row: StoredRow, u: int) -> None:
    """Two rows exchange their names in one statement."""
    row_id, old, _ = row.values
    others = [] if u == old else await now(s.txn.lookup(NAMES, BY_V, [(u,)], for_update=True))
    if not others:
        return
    note_holder(s, u, others)
    other = others[0]
    s.txn.next_statement()
    tag, other_tag = s.recorder.value(), s.recorder.value()
    changes = [(row.row_id, (row_id, u, str(tag))), (other.row_id, (other.values[0], old, str(other_tag)))]
    if s.rng.random() < 0.5:
        await now(s.txn.update(NAMES, changes))
    else:  # one after the other, under a key that is checked in the end
        s.txn.defer_unique(BY_V, True)
        for change in changes:
            await now(s.txn.update(NAMES, [change]))
            s.txn.next_statement()
        await now(s.txn.check_unique(NAMES, BY_V))
        s.txn.defer_unique(BY_V, False)
    hold(s, row_id, u, tag)
    hold(s, other.values[0], old, other_tag)
