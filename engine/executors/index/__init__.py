"""The row executor: Python over version chains, part sidecars and virtual catalog relations."""
