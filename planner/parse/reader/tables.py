"""What the raw parse tree encodes: words for its codes, bits of its masks, and what is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

_Word = TypeVar("_Word", bound=str)

JSON_SYNTAX = {
    "JsonObjectConstructor": "JSON_OBJECT",
    "JsonArrayConstructor": "JSON_ARRAY",
    "JsonArrayQueryConstructor": "JSON_ARRAY",
    "JsonObjectAgg": "JSON_OBJECTAGG",
    "JsonArrayAgg": "JSON_ARRAYAGG",
    "JsonIsPredicate": "IS JSON",
    "JsonParseExpr": "JSON",
    "JsonScalarExpr": "JSON_SCALAR",
    "JsonSerializeExpr": "JSON_SERIALIZE",
    "JsonFuncExpr": "SQL/JSON query functions",
    "JsonTable": "JSON_TABLE",
    "MergeSupportFunc": "MERGE_ACTION",
}

# Bits of WindowDef.frameOptions: a frame was written, with BETWEEN, and the words each other bit stands for.
FRAME_NONDEFAULT, FRAME_BETWEEN = 0x1, 0x10
FrameMode: TypeAlias = Literal["range", "rows", "groups"]
FrameEnd: TypeAlias = Literal[
    "unbounded_preceding", "preceding", "current", "following", "unbounded_following"
]
FrameExclusion: TypeAlias = Literal["none", "current", "group", "ties"]
_MODES: tuple[tuple[int, FrameMode], ...] = ((0x4, "rows"), (0x8, "groups"), (0, "range"))
_STARTS: tuple[tuple[int, FrameEnd], ...] = (
    (0x20, "unbounded_preceding"),
    (0x80, "unbounded_following"),
    (0x200, "current"),
    (0x800, "preceding"),
    (0x2000, "following"),
)
_ENDS: tuple[tuple[int, FrameEnd], ...] = (
    (0x40, "unbounded_preceding"),
    (0x100, "unbounded_following"),
    (0x400, "current"),
    (0x1000, "preceding"),
    (0x4000, "following"),
)
_EXCLUSIONS: tuple[tuple[int, FrameExclusion], ...] = (
    (0x8000, "current"),
    (0x10000, "group"),
    (0x20000, "ties"),
    (0, "none"),
)


def frame_words(options: int) -> tuple[FrameMode, FrameEnd, FrameEnd, FrameExclusion]:
    """Return (mode, start, end, exclude) of a window frame's mask, in the words of ``ast.Frame``."""

    def of(table: tuple[tuple[int, _Word], ...]) -> _Word:
        return next(word for bit, word in table if options & bit or not bit)

    return of(_MODES), of(_STARTS), of(_ENDS), of(_EXCLUSIONS)


# Statements that are refused altogether, by the name the error gives them.
REFUSED = {
    "AlterTypeStmt": "ALTER TYPE",
    "CreateEventTrigStmt": "CREATE EVENT TRIGGER",
    "AlterEventTrigStmt": "ALTER EVENT TRIGGER",
    "RuleStmt": "CREATE RULE",
    "CreatePolicyStmt": "CREATE POLICY",
    "AlterPolicyStmt": "ALTER POLICY",
    "CreateTableSpaceStmt": "CREATE TABLESPACE",
    "DropTableSpaceStmt": "DROP TABLESPACE",
    "AlterTableSpaceOptionsStmt": "ALTER TABLESPACE",
    "AlterTableMoveAllStmt": "ALTER TABLE ALL IN TABLESPACE",
    "CreatePublicationStmt": "CREATE PUBLICATION",
    "AlterPublicationStmt": "ALTER PUBLICATION",
    "CreateSubscriptionStmt": "CREATE SUBSCRIPTION",
    "AlterSubscriptionStmt": "ALTER SUBSCRIPTION",
    "DropSubscriptionStmt": "DROP SUBSCRIPTION",
    "CreateCastStmt": "CREATE CAST",
    "CreateTransformStmt": "CREATE TRANSFORM",
    "CreatePLangStmt": "CREATE LANGUAGE",
    "CreateAmStmt": "CREATE ACCESS METHOD",
    "AlterOperatorStmt": "ALTER OPERATOR",
    "AlterObjectDependsStmt": "ALTER ... DEPENDS ON EXTENSION",
    "AlterSystemStmt": "ALTER SYSTEM",
    "ReplicaIdentityStmt": "REPLICA IDENTITY",
}

DEFINE = {
    "OBJECT_OPERATOR": "CREATE OPERATOR",
    "OBJECT_TYPE": "CREATE TYPE",
}

CONSTRAINT_KINDS = {
    "CONSTR_NULL": "null",
    "CONSTR_NOTNULL": "not null",
    "CONSTR_DEFAULT": "default",
    "CONSTR_CHECK": "check",
    "CONSTR_PRIMARY": "primary key",
    "CONSTR_UNIQUE": "unique",
    "CONSTR_FOREIGN": "foreign key",
    "CONSTR_EXCLUSION": "exclude",
    "CONSTR_GENERATED": "generated",
    "CONSTR_IDENTITY": "identity",
    "CONSTR_ATTR_DEFERRABLE": "deferrable",
    "CONSTR_ATTR_NOT_DEFERRABLE": "not deferrable",
    "CONSTR_ATTR_DEFERRED": "deferred",
    "CONSTR_ATTR_IMMEDIATE": "immediate",
}

# Bits of TableLikeClause.options.
LIKE_OPTIONS = (
    "comments", "compression", "constraints", "defaults", "generated", "identity", "indexes",
    "statistics", "storage",
)  # fmt: skip

OVERRIDING: Mapping[str, Literal["", "user", "system"]] = {
    "OVERRIDING_USER_VALUE": "user",
    "OVERRIDING_SYSTEM_VALUE": "system",
}

MERGE_ACTIONS: Mapping[str, Literal["update", "delete", "insert", "nothing"]] = {
    "CMD_UPDATE": "update", "CMD_DELETE": "delete", "CMD_INSERT": "insert", "CMD_NOTHING": "nothing",
}  # fmt: skip

ON_COMMIT: Mapping[str, Literal["", "preserve", "delete", "drop"]] = {
    "ONCOMMIT_PRESERVE_ROWS": "preserve",
    "ONCOMMIT_DELETE_ROWS": "delete",
    "ONCOMMIT_DROP": "drop",
}

TRANSACTION: Mapping[
    str,
    Literal[
        "begin",
        "start",
        "commit",
        "rollback",
        "savepoint",
        "release",
        "rollback to",
        "prepare transaction",
        "commit prepared",
        "rollback prepared",
    ],
] = {
    "TRANS_STMT_BEGIN": "begin",
    "TRANS_STMT_START": "start",
    "TRANS_STMT_COMMIT": "commit",
    "TRANS_STMT_ROLLBACK": "rollback",
    "TRANS_STMT_SAVEPOINT": "savepoint",
    "TRANS_STMT_RELEASE": "release",
    "TRANS_STMT_ROLLBACK_TO": "rollback to",
    "TRANS_STMT_PREPARE": "prepare transaction",
    "TRANS_STMT_COMMIT_PREPARED": "commit prepared",
    "TRANS_STMT_ROLLBACK_PREPARED": "rollback prepared",
}

TRUTHS: Mapping[str, Literal["true", "false", "unknown"]] = {
    "TRUE": "true",
    "FALSE": "false",
    "UNKNOWN": "unknown",
}

SUBLINKS: Mapping[str, Literal["exists", "any", "all", "scalar", "array"]] = {
    "EXISTS_SUBLINK": "exists",
    "ANY_SUBLINK": "any",
    "ALL_SUBLINK": "all",
    "EXPR_SUBLINK": "scalar",
    "ARRAY_SUBLINK": "array",
}

LOCK_STRENGTHS: Mapping[str, Literal["update", "no key update", "share", "key share"]] = {
    "LCS_FORUPDATE": "update",
    "LCS_FORNOKEYUPDATE": "no key update",
    "LCS_FORSHARE": "share",
    "LCS_FORKEYSHARE": "key share",
}

LOCK_WAITS: Mapping[str, Literal["block", "skip", "nowait"]] = {
    "LockWaitBlock": "block",
    "LockWaitSkip": "skip",
    "LockWaitError": "nowait",
}

CHECK_OPTIONS: Mapping[str, Literal["", "local", "cascaded"]] = {
    "NO_CHECK_OPTION": "",
    "LOCAL_CHECK_OPTION": "local",
    "CASCADED_CHECK_OPTION": "cascaded",
}

SET_KINDS: Mapping[str, Literal["value", "default", "current", "multi", "reset", "reset all"]] = {
    "VAR_SET_VALUE": "value",
    "VAR_SET_DEFAULT": "default",
    "VAR_SET_CURRENT": "current",
    "VAR_SET_MULTI": "multi",
    "VAR_RESET": "reset",
    "VAR_RESET_ALL": "reset all",
}

CURSOR_BINARY, CURSOR_SCROLL, CURSOR_NO_SCROLL = 0x1, 0x2, 0x4
CURSOR_INSENSITIVE, CURSOR_ASENSITIVE, CURSOR_HOLD = 0x8, 0x10, 0x20
FETCH_ALL = 2**63 - 1
