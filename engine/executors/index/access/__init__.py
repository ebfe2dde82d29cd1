"""Ways to the rows of one range: by key, by an index of another method, in order, by ctid."""
