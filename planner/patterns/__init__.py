r"""Patterns: PostgreSQL's regular expressions and LIKE (manual 9.7), in steps that are counted and can be interrupted.

    '(\d+)-(\w*?)'
        │ lexer, parser      AREs, EREs, BREs, literals; options; 2201B with PostgreSQL's words
        ▼
    expression (tree)        what it means: branches of items, each an atom and how often
        │ shape
        ▼
    shape (nodes)            which parts have to be told apart, and whether each prefers to be long or short
        │ nfa, automaton
        ▼
    where it matches         an automaton over classes of characters, its states made as they are met
        │ dissect
        ▼
    where its parts match

The rule is PostgreSQL's: of the matches that begin first, the longest, or the shortest where the first
quantifier with a preference is non-greedy; within it each part, from left to right, is as long, or as short,
as it prefers. Backtracking libraries have another rule. ``shortcut`` hands a pattern to ``re`` where the two
are sure to agree and ``re`` is sure to end soon.
"""
