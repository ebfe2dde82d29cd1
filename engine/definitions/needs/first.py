"""What is asked of a role before the rest of a statement is looked at: of a stranger PostgreSQL tells that,
not what else is wrong.

    ALTER TABLE t DROP COLUMN nosuch      42501 for who does not own t, 42703 for who does
    CREATE TABLE s.t (a nosuch)           42501 for who may not create in s, 42704 for who may

Statements are bound before rights are asked (``engine.definitions.needs.rights``). So this is asked when one
could not be bound, and costs nothing else. What has "nothing" in its row (``planner.statements.parsed``) says
what is wrong first in PostgreSQL, too, or names nothing that could be asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from engine.definitions.needs.rights import Asked
from engine.session.ports import Bind
from planner import ast
from planner.base.errors import SqlError
from planner.base.total import members, total
from planner.catalog import RelationDef, TypeDef
from planner.facts import REGCONFIG, REGDICTIONARY
from planner.statements.parsed import PARSED, First
from planner.textsearch.names import find

if TYPE_CHECKING:
    from engine.session.session import Session

_EXECUTE_PROGRAMS: Final = 4571  # the role pg_execute_server_program


class FirstNeeds(Asked):
    """What a statement that could not be bound asks first of a role."""

    def __init__(self, session: Session, bind: Bind) -> None:
        """Ask it of the session's role. ``bind``: for statements about some of what one names."""
        super().__init__(session, session.role, session.rights_catalog)
        self.path = session.bind_path
        self.bind = bind

    def _named(self, schema: str, name: str) -> RelationDef | None:
        for place in (schema,) if schema else self.path:
            found = self.session.catalog.relation(place, name)
            if found is not None:
                return found
        return None

    def _referred(self, reference: ast.TableRef | None) -> RelationDef | None:
        found = None if reference is None else self._named(reference.schema, reference.name)
        return None if found is None or found.virtual else found

    def _place(self, schema: str) -> str:
        """Return where something would be made, "" for nowhere."""
        if schema:
            return schema
        return next((s for s in self.path if s != "pg_catalog" and not s.startswith("pg_temp")), "")

    # -- what may be asked first --------------------------------------------------------------------

    def owner(self, node: Any) -> None:
        """To own the relation that is named."""
        relation = self._referred(node.relation)
        if relation is None:
            return
        if relation.kind != "c":
            self._own(relation)
        elif not self.rights.owns(relation.owner):
            raise SqlError("42501", f"must be owner of table {relation.name}")  # as PostgreSQL calls it there

    def _type(self, schema: str, name: str) -> TypeDef | None:
        for place in (schema,) if schema else self.path:
            oid = self.session.catalog.type_oid(place, name)
            if oid is not None:
                return self.session.catalog.type_by_oid(oid)
        return None

    def maker(self, node: Any) -> None:
        """CREATE on the schema, and to own what it is to be a partition of."""
        if isinstance(node, ast.CreateTable | ast.CreateSequence):
            if node.relation.persistence == "t":
                return
            schema = node.relation.schema
        else:
            schema = node.name[-2] if len(node.name) > 1 else ""
        try:
            self._create_in(self._place(schema))
        except SqlError as error:
            if isinstance(node, ast.CreateTable):
                error.span = node.relation.span
            raise
        parent = self._referred(node.parent) if isinstance(node, ast.CreateTable) else None
        if parent is not None:
            self._own(parent)

    def trigger(self, node: ast.CreateTrigger) -> None:
        """TRIGGER on the table, and on what a constraint trigger is from."""
        for reference in (node.relation, node.from_table):
            relation = self._referred(reference)
            if relation is not None:
                self._have(relation, "t")

    def domain(self, node: ast.AlterDomain) -> None:
        """To own the domain."""
        made = self._type(node.name[-2] if len(node.name) > 1 else "", node.name[-1])
        if made is not None and made.is_domain:
            self._own_type(made)

    def mapping(self, node: ast.AlterMapping) -> None:
        """To own the configuration."""
        self._searching(REGCONFIG, node.configuration)

    def dictionary(self, node: ast.AlterDictionary) -> None:
        """To own the dictionary."""
        self._searching(REGDICTIONARY, node.dictionary)

    def _searching(self, named_by: int, name: ast.Name) -> None:
        found = find(self.session.catalog, self.path, named_by, name)
        if found is not None:
            self._own_text_search(found.oid, ".".join(name))

    def cluster(self, node: ast.Maintenance) -> None:
        """CLUSTER: to own the table."""
        if node.what == "cluster":
            for reference, _columns in node.relations:
                relation = self._referred(reference)
                if relation is not None:
                    self._own(relation)

    def wrapper(self, node: ast.DefineWrapper) -> None:
        """To be a superuser."""
        verb = "create" if node.create else "alter"
        self._be_superuser(
            f'permission denied to {verb} foreign-data wrapper "{node.name}"',
            hint=f"Must be superuser to {verb} a foreign-data wrapper.",
        )

    def opclass(self, node: ast.CreateOpclass) -> None:
        """CREATE on the schema, where there is one; to be a superuser."""
        if self.catalog.schema(self._place(node.name[-2] if len(node.name) > 1 else "")) is None:
            return
        self.maker(node)
        self._be_superuser("must be superuser to create an operator class")

    def copy_options(self, node: ast.Copy) -> None:
        """What it asks without its options, which are looked at later, as are conditions; of a program to be
        of those who may run one.
        """
        if node.program:
            self._run_programs()
        elif node.relation is not None and (node.options or node.where is not None):
            self.statement(self.bind(replace(node, options=(), where=None)))

    def _run_programs(self) -> None:
        if not self.rights.owns(_EXECUTE_PROGRAMS):
            raise SqlError(
                "42501",
                "must be superuser or have privileges of the pg_execute_server_program role to COPY to or from an external "
                "program",
                hint="Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
            )

    def one_by_one(self, node: ast.Truncate | ast.LockTable | ast.DropFunction) -> None:
        """What each of the objects asks, up to the one that is not there."""
        if isinstance(node, ast.DropFunction):
            single: list[ast.StatementNode] = [replace(node, functions=(one,)) for one in node.functions]
        else:
            single = [replace(node, relations=(one,)) for one in node.relations]
        if len(single) > 1:
            for one in single:
                self.statement(self.bind(one))


_ASKS: Final[Mapping[First, Callable[[FirstNeeds, Any], None] | None]] = total(
    "what is asked first",
    members(First),
    {
        "nothing": None,
        "owner": FirstNeeds.owner,
        "maker": FirstNeeds.maker,
        "trigger": FirstNeeds.trigger,
        "domain": FirstNeeds.domain,
        "mapping": FirstNeeds.mapping,
        "dictionary": FirstNeeds.dictionary,
        "cluster": FirstNeeds.cluster,
        "wrapper": FirstNeeds.wrapper,
        "opclass": FirstNeeds.opclass,
        "copy": FirstNeeds.copy_options,
        "one by one": FirstNeeds.one_by_one,
    },
)


def refuse_strangers(session: Session, node: ast.StatementNode, error: SqlError, bind: Bind) -> None:
    """Raise SqlError 42501 in place of ``error``, with which a statement could not be bound, where PostgreSQL
    asks for a right first.
    """
    ask = _ASKS[PARSED[type(node)].first]
    if ask is None or error.sqlstate == "42501" or error.ends_statement:
        return
    try:
        ask(FirstNeeds(session, bind), node)
    except SqlError as denied:
        if denied.sqlstate == "42501":
            raise denied from None
