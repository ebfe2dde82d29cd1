"""INSERT, UPDATE, DELETE and COPY: rows checked, staged and returned."""
