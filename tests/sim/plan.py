"""What a seed is about: drawn before anything happens."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.sim import limits
from tests.sim.tables import Sizes
from tests.sim.workloads import BODIES
from txn.locks.policy import POLICIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a seed is about."""

    connections: int
    policy: str
    lock_timeout_ms: int
    retention_ms: int
    lease_ms: int
    impatient: bool
    hot_rows: int
    tides: bool
    subscribers: int
    subscription_versions: int
    disorder: float
    sizes: Sizes
    weights: tuple[int, ...]
    pk_hash: int
    v_hash: int
    rates: tuple[float, ...]
    limits: tuple[tuple[str, int], ...]
    events: tuple[tuple[int, str], ...]

    @classmethod
    def draw(cls, rng: random.Random, transactions: int) -> Plan:
        """Choose everything; at least one kill is among the events."""
        policy = rng.choice(["detect"] * 4 + sorted(POLICIES))
        kinds = [
            "kill",
            "take_over",
            "close",
            "pause",
            "storm",
            "full",
            "clock",
            "flush",
            "flush",
            "tidy",
            "tidy",
        ]
        events = [(rng.randrange(transactions), rng.choice(kinds)) for _ in range(rng.randrange(4, 14))]
        events.append((rng.randrange(10, transactions * 4 // 5), "kill"))
        lease_ms = rng.choice((0, 100, 400))
        if lease_ms and rng.random() < 0.6:
            events.append((rng.randrange(transactions // 2), "take_over"))
        weights = [weight * rng.choice((0, 1, 1, 2, 4)) for _body, weight, _reads in BODIES.values()]
        tides = rng.random() < 0.4
        if not tides:
            weights[list(BODIES).index("tide")] = 0
        subscribers = rng.choice((0, 1, 2, 3))
        # Who follows changes goes on after a crash only where history is kept.
        retention_ms = rng.choice(
            (500, 3000, 60_000) if subscribers and rng.random() < 0.7 else (0, 0, 50, 1000)
        )
        return cls(
            connections=rng.randrange(4, 9),
            policy=policy,
            lock_timeout_ms=50 if policy == "timeout" or rng.random() < 0.2 else 0,
            retention_ms=retention_ms,
            tides=tides,
            subscribers=subscribers,
            subscription_versions=rng.choice((3, 40, 5_000_000)),
            impatient=lease_ms > 0 or rng.random() < 0.3,
            lease_ms=lease_ms,
            hot_rows=rng.choice((5, 20, 60, 50_000)),
            disorder=rng.choice((0.0, 0.2, 1.0)),
            sizes=Sizes.draw(rng),
            weights=tuple(weights if any(weights) else [int(name != "tide") for name in BODIES]),
            pk_hash=rng.getrandbits(6) & ~(rng.getrandbits(1) << 3),
            v_hash=rng.getrandbits(6),
            rates=tuple(rng.choice((0.0, 0.02, 0.1)) for _ in range(3)),
            limits=limits.draw(rng),
            events=tuple(sorted(events)),
        )
