"""Who may do what, walked: every class of statements by many roles, beside what PostgreSQL 15 answered (``tools/record_rights.py``)."""
