"""The AST: frozen nodes with spans, one namespace over queries and the other statements.

    text --parse--> AST --bind--> Query tree

``planner.parse`` makes these and nothing else does; ``planner.bind`` reads them. They say what was written:
no name is looked up, no type known. ``planner.ast.query`` has expressions and queries,
``planner.ast.changes`` what modifies data, ``planner.ast.definitions`` definitions, ``planner.ast.type``
those of types, ``planner.ast.function`` those of functions, ``planner.ast.owned`` of what roles own,
``planner.ast.trigger`` triggers, ``planner.ast.policy`` policies, ``planner.ast.text_search`` text search,
``planner.ast.statistics`` extended statistics, ``planner.ast.foreign`` foreign data, ``planner.ast.opclass``
operator classes, ``planner.ast.conversion`` conversions, ``planner.ast.server`` databases,
``planner.ast.session`` the rest.
"""

from __future__ import annotations

from planner.ast.absent import *  # noqa: F403
from planner.ast.changes import *  # noqa: F403
from planner.ast.collation import *  # noqa: F403
from planner.ast.conversion import *  # noqa: F403
from planner.ast.definitions import *  # noqa: F403
from planner.ast.domain import *  # noqa: F403
from planner.ast.foreign import *  # noqa: F403
from planner.ast.function import *  # noqa: F403
from planner.ast.opclass import *  # noqa: F403
from planner.ast.option import *  # noqa: F403
from planner.ast.owned import *  # noqa: F403
from planner.ast.policy import *  # noqa: F403
from planner.ast.query import *  # noqa: F403
from planner.ast.server import *  # noqa: F403
from planner.ast.session import *  # noqa: F403
from planner.ast.statistics import *  # noqa: F403
from planner.ast.text_search import *  # noqa: F403
from planner.ast.trigger import *  # noqa: F403
from planner.ast.type import *  # noqa: F403
