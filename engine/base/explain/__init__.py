"""EXPLAIN: what a statement's route executes, as a tree in PostgreSQL's form.

statement.py  the statement: routes its parts, runs it where asked to, puts the answer together
tree.py       PlanNode, what every executor describes its plan with
texts.py      expressions and names as the reader writes them
logical.py    a query handed to an engine as a whole: what it is asked for
estimate.py   the guess of rows, widths and costs
formats.py    the tree as text, JSON, XML and YAML
"""
