"""The leader's lease: why its reads need not ask anybody whether it still leads (A41, L2, L3, D35, U2).

Where several servers share a consensus store, the epoch inside every append stops a deposed leader's writes. Its
reads would be stale. So a leader holds a lease, kept in a register, and a successor waits until it must be over::

    leader      send            done                 send       (paused)
                  |--- renew --->|                     |
                  |<------------- lease -------------->|  valid() is false from here on
    register    ----------------X------------------------------------------------
                                |<-- pulse unchanged: lease x DRIFT -->|
    successor               looks here                          raises the epoch, if the pulse is still the same

- The leader counts from *before* it sent the renewal, the successor from *after* it saw it; both on a clock that
  goes on while a machine is suspended. No clock is compared with another's; ``DRIFT`` allows for unequal rates.
- The successor raises the epoch only at the pulse it has watched, in one atomic step. So no renewal took
  effect in between, and from then on none can: compare-and-set carries the epoch.
- A leader that ends cleanly marks the lease as released, and nobody waits.
- ``valid()`` is one comparison. It is asked after a statement has arrived, and what is answered is the state
  of that moment or a later one: no successor had begun by then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from txn.base.errors import Fenced, LeaderAlive, TxnError, UnknownFormat
from txn.base.time import Clock
from txn.persist.checksum import seal, unseal
from txn.persist.location import Consensus, Indeterminate, Pulse, register_name

LEASE_KEY: Final = "leader"
DRIFT: Final = 1.02  # a successor's clock may run so much faster than the leader's
RENEWALS: Final = 4  # attempts within one duration
POLLS: Final = 10  # looks of a successor within one duration
_RETRY_S: Final = 0.05
_OLD_FORMAT_BYTE = b"\x01"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOptions:
    """``holder``: shown to whoever finds the lease taken. ``duration_ms``: how long a renewal lasts (> 0)."""

    holder: str
    duration_ms: int = 5000


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """The register: who led at ``epoch``; ``duration_ms`` 0: released. ``count`` makes renewals differ."""

    epoch: int
    duration_ms: int
    holder: str
    count: int


_decoder = msgspec.msgpack.Decoder(_Stored)


def _encode(stored: _Stored) -> bytes:
    return seal(msgspec.msgpack.encode(stored))


def _decode(name: str, data: bytes) -> _Stored:
    """Raises UnknownFormat, DamagedFile."""
    if data[:1] == _OLD_FORMAT_BYTE:  # of a server that wrote no checksum; a sealed lease does not decode so
        try:
            return _decoder.decode(memoryview(data)[1:])
        except msgspec.MsgspecError:
            pass  # a damaged format byte, perhaps
    try:
        return _decoder.decode(unseal(name, data))
    except msgspec.MsgspecError as error:
        raise UnknownFormat(f"{name} cannot be read: {error}") from error


class Lease:
    """A leader's lease under one epoch. Made by ``take_lease``; used from one event loop."""

    def __init__(self, consensus: Consensus, epoch: int, clock: Clock, options: LeaseOptions) -> None:
        """Not valid before the first ``renew``."""
        self.epoch = epoch
        self.options = options
        self.lost: TxnError | None = None
        """Why it will never be valid again (Fenced: somebody else leads, or it cannot be renewed), or None."""
        self.on_lost: Callable[[TxnError], None] | None = None
        self._consensus = consensus
        self._boottime = clock.boottime
        self._expires = float("-inf")
        self._seq: int | None = None
        self._count = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    def valid(self) -> bool:
        """Tell whether nobody else can lead yet. Ask after the request has arrived; costs next to nothing."""
        return self._boottime() < self._expires

    def remaining_s(self) -> float:
        """Return seconds until it runs out, negative if it has."""
        return self._expires - self._boottime()

    async def wait_valid(self) -> None:
        """Return once it is valid. Raises Fenced when it never will be; a released lease counts as that."""
        while not self.valid():
            if self.lost is not None:
                raise self.lost
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future

    async def renew(self) -> None:
        """Extend it, counted from now.

        Raises:
            Fenced: somebody else leads; ``lost`` says so from now on.
            Indeterminate: it may or may not have been stored; it does not count.
        """
        sent = self._boottime()
        try:
            await self._store(self.options.duration_ms)
        except Fenced as error:
            self._lose(error)
            raise
        if self.lost is not None:
            raise self.lost
        self._expires = max(self._expires, sent + self.options.duration_ms / 1000)
        self._wake()

    async def _store(self, duration_ms: int) -> None:
        self._count += 1
        data = _encode(_Stored(self.epoch, duration_ms, self.options.holder, self._count))
        for _ in range(2):
            seq = await self._consensus.compare_and_set(LEASE_KEY, self._seq, data, epoch=self.epoch)
            if seq is None:
                # Another value than expected, under our epoch still: our predecessor's at the first time, or
                # an attempt of ours whose outcome was never learnt.
                head = await self._consensus.head(LEASE_KEY)
                self._seq = None if head is None else head.seq
            else:
                self._seq = seq
                return
        raise Indeterminate("the lease register keeps changing")

    def _lose(self, error: TxnError) -> None:
        if self.lost is not None:
            return
        self.lost = error
        self._expires = float("-inf")
        self._wake()
        if self.on_lost is not None:
            self.on_lost(error)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def start(self) -> None:
        """Renew in the background until ``release`` or until it is lost."""
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="holdfast-lease")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Nobody renews any more: whatever the reason, the server must not wait for it in silence."""
        if task is self._task and self.lost is None:
            why = "it was cancelled" if task.cancelled() else repr(task.exception())
            self._lose(Fenced(f"the lease at epoch {self.epoch} is not renewed any more: {why}"))

    async def _keep(self) -> None:
        duration = self.options.duration_ms / 1000
        trouble = False
        while True:
            await asyncio.sleep(_RETRY_S if trouble else duration / RENEWALS)
            try:
                await self.renew()
                if trouble:
                    _log.warning("the lease is renewed again")
                trouble = False
            except Fenced:
                return
            except TxnError as error:
                if not trouble:
                    _log.warning(
                        "could not renew the lease, %.1f s of it are left: %s", self.remaining_s(), error
                    )
                trouble = True
            except Exception as error:
                # A bug. It may pass; if the lease has run out meanwhile, a standby does better than waiting clients.
                _log.error("could not renew the lease", exc_info=None if trouble else error)
                trouble = True
                if not self.valid():
                    self._lose(Fenced(f"the lease at epoch {self.epoch} could not be kept: {error!r}"))
                    return

    async def release(self) -> None:
        """End it: nothing is answered under it any more, and a successor need not wait. Idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if self.lost is not None:
            return
        self.on_lost = None
        self._lose(Fenced("the lease was released"))
        try:
            await self._store(0)
        except TxnError as error:
            _log.info("the lease was not released, a successor will wait it out: %s", error)


Waiting = Callable[[str], None]


async def take_lease(
    consensus: Consensus,
    clock: Clock,
    options: LeaseOptions,
    *,
    standby: bool = False,
    waiting: Waiting | None = None,
) -> Lease:
    """Become the leader: wait until nobody's lease can be valid, raise the epoch, take a lease and keep it.

    ``standby``: wait as long as it takes. Otherwise a leader that renews its lease meanwhile is an error.
    ``waiting(holder)`` is called whenever it turns out that there is another holder to wait for.

    Raises:
        LeaderAlive: another server leads, and ``standby`` is False.
        Indeterminate: the store cannot be reached, and ``standby`` is False.
        UnknownFormat: a newer server wrote the lease.
        DamagedFile: its register is damaged, so it cannot be told for how long another server may answer.
    """
    while True:
        epoch = await _campaign(consensus, clock, options, standby, waiting)
        lease = Lease(consensus, epoch, clock, options)
        try:
            await lease.renew()
        except (Fenced, Indeterminate) as error:
            if not standby:
                raise
            _log.info("leadership at epoch %d was not kept: %s", epoch, error)
            continue
        lease.start()
        return lease


async def _campaign(
    consensus: Consensus, clock: Clock, options: LeaseOptions, standby: bool, waiting: Waiting | None
) -> int:
    """Return a new epoch, raised when no lease was valid."""
    own_s = options.duration_ms / 1000
    watched: Pulse | None = None
    beats = 0
    free_at = 0.0
    told = ""
    trouble = False
    while True:
        try:
            pulse = await consensus.pulse()
            seen = clock.boottime()  # after the answer: whatever renewal it covers was sent before
            if pulse != watched:
                head = await consensus.head(LEASE_KEY)
                stored = None if head is None else _decode(register_name(LEASE_KEY, consensus), head.data)
                beats += watched is not None
                # Once might be the last word of a leader that was killed, still under way when we first looked.
                if beats > 1 and not standby and stored is not None and stored.duration_ms:
                    raise LeaderAlive(stored.holder)
                watched, free_at = pulse, seen + _wait_s(pulse, stored, own_s)
                if stored is not None and free_at > seen and stored.holder != told:
                    told = stored.holder
                    if waiting is not None:
                        waiting(told)
            left = free_at - clock.boottime()
            if left <= 0:
                epoch = await consensus.acquire_epoch(watched)
                if epoch is not None:
                    return epoch
                left = 0.0
            trouble = False
        except Indeterminate as error:
            if not standby:
                raise
            if not trouble:
                _log.warning("the consensus store does not answer: %s", error)
            trouble, left = True, own_s
        poll = own_s / POLLS
        await asyncio.sleep(min(max(left, 0.001), poll))


def _wait_s(pulse: Pulse, stored: _Stored | None, own_s: float) -> float:
    """Return how long the pulse must stay as it is until no lease can be valid."""
    if pulse.epoch == 0:
        return 0.0
    if stored is None:
        return own_s * DRIFT
    if stored.epoch == pulse.epoch:
        return stored.duration_ms / 1000 * DRIFT
    # Somebody has raised the epoch and not taken the lease yet: nothing is valid, but give it the time.
    return max(stored.duration_ms / 1000, own_s) * DRIFT
