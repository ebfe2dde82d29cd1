"""PL/pgSQL as a language: the text of a function's body to a tree of statements, names to variables. Runs nothing."""
