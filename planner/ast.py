"""The AST: frozen nodes with spans, one namespace over queries and the other statements.

    text --parse--> AST --bind--> Query tree

``planner.parse`` makes these and nothing else does; ``planner.bind`` reads them. They say what was written: no
name is looked up, no type known. ``planner.ast_query`` has expressions and queries,
``planner.ast_dml`` what modifies data, ``planner.ast_ddl`` definitions, ``planner.ast_type`` those of types,
``planner.ast_function`` those of functions, ``planner.ast_owned`` of what roles own, ``planner.ast_trigger`` triggers,
``planner.ast_policy`` policies, ``planner.ast_text_search`` text search, ``planner.ast_statistics`` extended statistics, ``planner.ast_foreign`` foreign data, ``planner.ast_opclass`` operator classes, ``planner.ast_conversion`` conversions,
``planner.ast_server`` databases, ``planner.ast_statement`` the rest.
"""

from __future__ import annotations

from planner.ast_absent import *  # noqa: F403
from planner.ast_collation import *  # noqa: F403
from planner.ast_conversion import *  # noqa: F403
from planner.ast_ddl import *  # noqa: F403
from planner.ast_dml import *  # noqa: F403
from planner.ast_domain import *  # noqa: F403
from planner.ast_foreign import *  # noqa: F403
from planner.ast_function import *  # noqa: F403
from planner.ast_opclass import *  # noqa: F403
from planner.ast_option import *  # noqa: F403
from planner.ast_owned import *  # noqa: F403
from planner.ast_policy import *  # noqa: F403
from planner.ast_query import *  # noqa: F403
from planner.ast_server import *  # noqa: F403
from planner.ast_statement import *  # noqa: F403
from planner.ast_statistics import *  # noqa: F403
from planner.ast_text_search import *  # noqa: F403
from planner.ast_trigger import *  # noqa: F403
from planner.ast_type import *  # noqa: F403
