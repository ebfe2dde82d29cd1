"""Full-text search (manual 12): texts cut into tokens, dictionaries that make lexemes of them, queries,
ranks, headlines.
"""
