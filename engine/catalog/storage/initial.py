"""What the catalog of a new server, and of a new database, holds from the start."""

from __future__ import annotations

from engine.catalog.storage.stored import (
    DATABASE_OID,
    PG_DATABASE_OID,
    PG_NAMESPACE_OID,
    SUPERUSER_OID,
    CommentDef,
    Stored,
)
from planner.catalog import AclDef, DatabaseDef, RoleDef, SchemaDef
from planner.catalog.acl import DATABASE_OWNER, EVERYBODY
from planner.catalog.acl_items import AclItem
from planner.facts import PUBLIC_OID


def new_database_items() -> list[Stored]:
    """Return what a database has of its own from the start: schema public."""
    return [
        SchemaDef(oid=PUBLIC_OID, name="public", owner=DATABASE_OWNER),
        CommentDef(
            class_oid=PG_NAMESPACE_OID, object_oid=PUBLIC_OID, sub_id=0, text="standard public schema"
        ),
    ]


def initial_databases() -> list[Stored]:
    """Return the databases of a new server, and the comments on them: postgres and the two templates."""
    template0, template1 = 4, 1
    texts = {
        DATABASE_OID: "default administrative connection database",
        template0: "unmodifiable empty database",
        template1: "default template for new databases",
    }
    return [
        DatabaseDef(oid=DATABASE_OID, name="postgres", owner=SUPERUSER_OID),
        DatabaseDef(oid=template1, name="template1", owner=SUPERUSER_OID, is_template=True),
        DatabaseDef(
            oid=template0, name="template0", owner=SUPERUSER_OID, is_template=True, allow_connections=False
        ),
        *(
            AclDef(
                class_oid=PG_DATABASE_OID,
                object_oid=oid,
                sub_id=0,
                items=(
                    AclItem(grantee=EVERYBODY, grantor=SUPERUSER_OID, letters="c"),
                    AclItem(grantee=SUPERUSER_OID, grantor=SUPERUSER_OID, letters="CTc"),
                ),
            )
            for oid in (template1, template0)
        ),
        *(
            CommentDef(class_oid=PG_DATABASE_OID, object_oid=oid, sub_id=0, text=text)
            for oid, text in texts.items()
        ),
    ]


def initial_roles() -> list[Stored]:
    """Return the roles of a new server that are not predefined: the superuser postgres."""
    return [
        RoleDef(
            oid=SUPERUSER_OID,
            name="postgres",
            superuser=True,
            create_role=True,
            create_db=True,
            can_login=True,
            replication=True,
            bypass_rls=True,
        )
    ]
