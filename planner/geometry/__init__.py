"""Plane geometry as PostgreSQL computes it (manual 8.8, 9.11; its geo_ops.c): pure functions over tuples of floats.

    lines.py      points, lines, segments: slopes, where they meet, the nearest point of one to another
    areas.py      boxes and circles
    polygons.py   paths and polygons: what is inside, what meets

Shapes are those of ``pgwire.codecs.geometric``. Numbers that are not farther apart than EPSILON are *near*,
and most tests ask for no more; so equality is not transitive, and nothing here can be hashed or sorted. The
order of operations is PostgreSQL's, since it decides the last digits. Results that overflow or vanish are
22003, NaN is passed on.
"""
