"""Constraints that look beyond one row: foreign keys, and keys that are checked late.

    values        values on their way between a referencing column and the one it refers to
    foreign_key   one FOREIGN KEY compiled: keys of rows, look-ups on both sides
    effects       what a statement's changes cause: checks and referential actions, until nothing is left
    timing        SET CONSTRAINTS, and the checks that wait for the commit
    checks        making the checks
    setwise       checking a whole table with one query: ADD CONSTRAINT, VALIDATE, bulk loads
    define        adding, dropping and altering foreign keys; what depends on them

Foreign keys are the engine's: ``txn`` sees look-ups, locks and writes like any others.
"""
