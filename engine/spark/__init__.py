"""The Spark executor.

``gateway.py`` (JVM), ``session.py`` and ``executor.py`` are in the works, together with ``planner/lower/spark.py``;
whoever works on the lowering leaves these to them.
"""
