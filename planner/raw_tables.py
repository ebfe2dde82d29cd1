"""What the raw parse tree encodes: words for its codes, bits of its masks, and what is refused by name."""

from __future__ import annotations

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

# Bits of WindowDef.frameOptions: a frame was written, and the words each other bit stands for.
FRAME_NONDEFAULT = 0x1
_MODES = ((0x4, "rows"), (0x8, "groups"), (0, "range"))
_STARTS = (
    (0x20, "unbounded_preceding"),
    (0x80, "unbounded_following"),
    (0x200, "current"),
    (0x800, "preceding"),
    (0x2000, "following"),
)
_ENDS = (
    (0x40, "unbounded_preceding"),
    (0x100, "unbounded_following"),
    (0x400, "current"),
    (0x1000, "preceding"),
    (0x4000, "following"),
)
_EXCLUSIONS = ((0x8000, "current"), (0x10000, "group"), (0x20000, "ties"), (0, "none"))


def frame_words(options: int) -> tuple[str, str, str, str]:
    """Return (mode, start, end, exclude) of a window frame's mask, in the words of ``ast.Frame``."""
    mode, start, end, exclude = [
        next(word for bit, word in table if options & bit or not bit)
        for table in (_MODES, _STARTS, _ENDS, _EXCLUSIONS)
    ]
    return mode, start, end, exclude


# Statements that are refused altogether, by the name the error gives them.
REFUSED = {
    "AlterTypeStmt": "ALTER TYPE",
    "CreateEventTrigStmt": "CREATE EVENT TRIGGER",
    "AlterEventTrigStmt": "ALTER EVENT TRIGGER",
    "RuleStmt": "CREATE RULE",
    "CreatePolicyStmt": "CREATE POLICY",
    "AlterPolicyStmt": "ALTER POLICY",
    "AlterDatabaseRefreshCollStmt": "ALTER DATABASE",
    "CreateTableSpaceStmt": "CREATE TABLESPACE",
    "DropTableSpaceStmt": "DROP TABLESPACE",
    "AlterTableSpaceOptionsStmt": "ALTER TABLESPACE",
    "AlterTableMoveAllStmt": "ALTER TABLE ALL IN TABLESPACE",
    "CreateForeignTableStmt": "CREATE FOREIGN TABLE",
    "CreateForeignServerStmt": "CREATE SERVER",
    "AlterForeignServerStmt": "ALTER SERVER",
    "CreateFdwStmt": "CREATE FOREIGN DATA WRAPPER",
    "AlterFdwStmt": "ALTER FOREIGN DATA WRAPPER",
    "CreateUserMappingStmt": "CREATE USER MAPPING",
    "AlterUserMappingStmt": "ALTER USER MAPPING",
    "DropUserMappingStmt": "DROP USER MAPPING",
    "ImportForeignSchemaStmt": "IMPORT FOREIGN SCHEMA",
    "CreatePublicationStmt": "CREATE PUBLICATION",
    "AlterPublicationStmt": "ALTER PUBLICATION",
    "CreateSubscriptionStmt": "CREATE SUBSCRIPTION",
    "AlterSubscriptionStmt": "ALTER SUBSCRIPTION",
    "DropSubscriptionStmt": "DROP SUBSCRIPTION",
    "CreateStatsStmt": "CREATE STATISTICS",
    "AlterStatsStmt": "ALTER STATISTICS",
    "CreateCastStmt": "CREATE CAST",
    "CreateConversionStmt": "CREATE CONVERSION",
    "CreateTransformStmt": "CREATE TRANSFORM",
    "CreatePLangStmt": "CREATE LANGUAGE",
    "CreateAmStmt": "CREATE ACCESS METHOD",
    "CreateOpClassStmt": "CREATE OPERATOR CLASS",
    "CreateOpFamilyStmt": "CREATE OPERATOR FAMILY",
    "AlterOpFamilyStmt": "ALTER OPERATOR FAMILY",
    "AlterOperatorStmt": "ALTER OPERATOR",
    "AlterTSConfigurationStmt": "ALTER TEXT SEARCH CONFIGURATION",
    "AlterTSDictionaryStmt": "ALTER TEXT SEARCH DICTIONARY",
    "AlterCollationStmt": "ALTER COLLATION",
    "AlterObjectDependsStmt": "ALTER ... DEPENDS ON EXTENSION",
    "AlterSystemStmt": "ALTER SYSTEM",
    "SecLabelStmt": "SECURITY LABEL",
    "LoadStmt": "LOAD",
    "ReplicaIdentityStmt": "REPLICA IDENTITY",
}

DEFINE = {
    "OBJECT_AGGREGATE": "CREATE AGGREGATE",
    "OBJECT_OPERATOR": "CREATE OPERATOR",
    "OBJECT_TYPE": "CREATE TYPE",
    "OBJECT_COLLATION": "CREATE COLLATION",
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

OVERRIDING = {"OVERRIDING_USER_VALUE": "user", "OVERRIDING_SYSTEM_VALUE": "system"}

MERGE_ACTIONS = {
    "CMD_UPDATE": "update", "CMD_DELETE": "delete", "CMD_INSERT": "insert", "CMD_NOTHING": "nothing",
}  # fmt: skip

ON_COMMIT = {
    "ONCOMMIT_PRESERVE_ROWS": "preserve",
    "ONCOMMIT_DELETE_ROWS": "delete",
    "ONCOMMIT_DROP": "drop",
}

TRANSACTION = {
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

CURSOR_BINARY, CURSOR_SCROLL, CURSOR_NO_SCROLL = 0x1, 0x2, 0x4
CURSOR_INSENSITIVE, CURSOR_ASENSITIVE, CURSOR_HOLD = 0x8, 0x10, 0x20
FETCH_ALL = 2**63 - 1
