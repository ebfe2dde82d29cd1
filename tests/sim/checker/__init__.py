"""A checker of transaction histories that knows nothing of the system that made them.

Input is what clients saw: when each transaction was asked for and answered, and what it read and wrote. From that
alone it infers the order of versions, builds the graph of dependencies, and names the anomaly of each cycle
(Adya, Liskov, O'Neil 2000; Elle: Kingsbury, Alvaro 2020).

    history.py    what a history is
    versions.py   order of versions per key; anomalies that need no graph
    graph.py      edges, cycles
    feeds.py      what subscriptions delivered
    check.py      check(): the whole of it, with the names

It needs nothing but the standard library.
"""

from tests.sim.checker.check import check
from tests.sim.checker.feeds import Event, Fact, Stream
from tests.sim.checker.history import Anomaly, Observed, Op

__all__ = ["Anomaly", "Event", "Fact", "Observed", "Op", "Stream", "check"]
