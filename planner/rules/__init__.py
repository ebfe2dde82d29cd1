"""Rewrites of the Query tree, one per file.

``fold`` and ``extract_stable`` are applied by ``planner.bind.bind_statement``, in this order; what is stored or
printed as SQL (views, defaults, checks) is taken before them.
"""
