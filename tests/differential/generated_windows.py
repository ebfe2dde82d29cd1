"""Random windows over keys of all types that have an order: a function of a seed (``compare_generated.Source``).

Frames of all three modes with offsets of each type that RANGE takes, exclusions, named windows and windows over windows, filters,
windows above groups. A frame of ROWS or a function of rows is ordered by a key without ties; others may meet ties, and then
nothing is asked that shows their order.
"""

from __future__ import annotations

import random

__all__ = ["Windows"]

SCHEMA = """
DROP TABLE IF EXISTS win;
CREATE TABLE win (id int PRIMARY KEY, i int, s smallint, b bigint, n numeric, f float8, r real, d date, ts timestamp, tz timestamptz,
 tm time, tt timetz, iv interval, t text, o boolean, u uuid, a int[], j jsonb, rg int4range, m money);
INSERT INTO win SELECT g, nullif(g % 5, 3), (g % 7)::smallint, nullif(g % 3, 1) * 4000000000::bigint,
 (array['1.5', '-2', 'NaN', '0.25', null, '1.50', 'Infinity'])[g % 7 + 1]::numeric,
 (array['1.5', '-Infinity', 'NaN', '0.25', null, '2'])[g % 6 + 1]::float8, nullif(g % 4, 2) * 0.5,
 (array['2024-02-28', '2024-02-29', 'infinity', '2024-03-05', null])[g % 5 + 1]::date,
 timestamp '2024-01-30 12:00' + nullif(g % 6, 4) * interval '20 hours',
 timestamptz '2024-03-30 12:00+00' + nullif(g % 5, 2) * interval '9 hours',
 time '00:10' + nullif(g % 5, 1) * interval '5 hours 30 minutes', (array['12:00+02', '10:00+00', '23:00-01', null])[g % 4 + 1]::timetz,
 (array['1 day', '24:00', '-1 mon', null, '1 mon 00:30'])[g % 5 + 1]::interval, (array['a', 'B', '', null, 'é'])[g % 5 + 1],
 nullif(g % 3, 2) = 1, ('00000000-0000-0000-0000-00000000000' || g % 4)::uuid, (array['{}', '{1,2}', null, '{1}'])[g % 4 + 1]::int[],
 (array['1', '[1]', '"x"', null, '{}'])[g % 5 + 1]::jsonb, (array['empty', '[1,3)', '(,2)', null])[g % 4 + 1]::int4range,
 (g % 3)::numeric::money FROM generate_series(1, 26) g;
"""

OFFSETS = {
    "i": ("1", "2::bigint", "0"), "s": ("1", "30000", "2::bigint"), "b": ("1", "4000000000", "9223372036854775807"),
    "n": ("0.5", "1", "'NaN'", "'Infinity'::numeric"), "f": ("0.5", "'Infinity'::float8", "0"), "r": ("0.5::float8", "1"),
    "d": ("interval '1 day'", "interval '1 month'"), "ts": ("interval '1 day'", "interval '21 hours'"),
    "tz": ("interval '1 day'", "interval '9 hours'"), "tm": ("interval '6 hours'", "interval '90 minutes'"),
    "tt": ("interval '2 hours'", "interval '0'"), "iv": ("interval '1 day'", "interval '1 month'"),
}  # fmt: skip
"""Columns that RANGE takes offsets over, with offsets."""

ORDERED = (*OFFSETS, "t", "o", "u", "a", "j", "rg", "m")
OF_PEERS = (
    "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "count(*)", "count({})", "sum({n})", "min({})", "max({})", "avg({n})",
    "bool_and(o)", "bool_or(o)", "bit_or(i)", "count(*) FILTER (WHERE o)", "sum({n}) FILTER (WHERE i > 1)", "stddev_pop({n})",
    "var_samp({n})", "sum(iv)", "max(d) FILTER (WHERE i < 3)", "every(o)", "range_agg(rg)",
)  # fmt: skip
OF_ROWS = (
    "row_number()", "ntile({k})", "lag({})", "lead({}, {k})", "lag({}, 2, {})", "lead({}, -1)", "first_value({})", "last_value({})",
    "nth_value({}, {k})", "array_agg({})", "string_agg(t, ',')", "jsonb_agg({})", "json_object_agg(id, {})", "array_agg({}) FILTER (WHERE o)",
    "lag(i + 1, i)", "regr_slope(id, i)", "corr(id, i)",
)  # fmt: skip
NUMBERS = ("i", "s", "b", "n", "i * 1.5", "id", "m", "s + i")
EXCLUDED = ("", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS")


class Windows:
    """Makes queries."""

    schema = SCHEMA
    remove = "DROP TABLE win"
    stateful = False

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def begin(self) -> None:
        """Statements leave nothing that others read."""

    def pick(self, *options: str) -> str:
        """Return one of some texts."""
        return self.random.choice(options)

    def bound(self, offset: str, *, first: bool) -> str:
        """Return a bound of a frame."""
        return self.pick(
            *(("UNBOUNDED PRECEDING",) * 2 if first else ("UNBOUNDED FOLLOWING",) * 2), "CURRENT ROW",
            f"{offset} PRECEDING", f"{offset} FOLLOWING",
        )  # fmt: skip

    def frame(self, mode: str, offset: str) -> str:
        """Return a frame clause; one in a few ends before it begins, which is refused."""
        if self.random.random() < 0.2:
            return f" {mode} {self.pick('UNBOUNDED PRECEDING', f'{offset} PRECEDING', 'CURRENT ROW')}{self.pick(*EXCLUDED)}"
        between = f"{self.bound(offset, first=True)} AND {self.bound(offset, first=False)}"
        return f" {mode} BETWEEN {between}{self.pick(*EXCLUDED)}"

    def window(self) -> tuple[str, bool]:
        """Return what stands in the parentheses, and whether the order is total."""
        part = self.pick("", "", f"PARTITION BY {self.pick(*ORDERED)} ", "PARTITION BY o, i % 2 ")
        direction = self.pick("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST", " USING >")
        shape = self.random.randrange(6)
        if shape == 0:
            key = self.pick(*OFFSETS)
            return f"{part}ORDER BY {key}{direction}{self.frame('RANGE', self.pick(*OFFSETS[key]))}", False
        if shape == 1:
            return (
                f"{part}ORDER BY {self.pick(*ORDERED)}{direction}{self.frame('GROUPS', self.pick('1', '2', '0', 'null'))}",
                False,
            )
        if shape == 2:
            return f"{part}ORDER BY {self.pick(*ORDERED)}{direction}", False
        order = f"{part}ORDER BY {self.pick(*ORDERED)}{direction}, id{self.pick('', ' DESC')}"
        return order + (
            self.frame(self.pick("ROWS", "ROWS", "GROUPS"), self.pick("1", "3", "0")) if shape < 5 else ""
        ), True

    def call(self, *, total: bool) -> str:
        """Return a call without its OVER."""
        form = self.pick(*(OF_ROWS if total and self.random.random() < 0.6 else OF_PEERS))
        while "{}" in form:
            form = form.replace(
                "{}",
                self.random.choice(ORDERED),
                2 if form.startswith("lag({}, 2") and self.random.random() < 0.2 else 1,
            )
        return form.replace("{n}", self.pick(*NUMBERS)).replace("{k}", self.pick("1", "2", "3", "i + 1"))

    def query(self) -> str:
        """Return a query."""
        shape = self.random.randrange(10)
        calls, named = [], []
        for number in range(self.random.randint(1, 3)):
            text, total = self.window()
            if shape < 3:
                named.append(f"w{number} AS ({text})")
                calls.append(f"{self.call(total=total)} OVER w{number}")
            elif shape == 3 and number:
                calls.append(f"{self.call(total=False)} OVER (w ORDER BY {self.pick(*ORDERED)})")
            elif shape == 3:
                named.append(f"w AS ({self.pick('', 'PARTITION BY i % 2')})")
                calls.append("count(*) OVER w")
            else:
                calls.append(f"{self.call(total=total)} OVER ({text})")
        listed = ", ".join(calls)
        windows = f" WINDOW {', '.join(named)}" if named else ""
        where = self.pick("", "", " WHERE o", " WHERE i IS NOT NULL", " WHERE id < 9", " WHERE false")
        if shape == 9:
            return (
                f"SELECT i, count(*), rank() OVER (ORDER BY {self.pick('count(*)', 'sum(s)', 'max(d)')}),"
                f" sum(sum(s)) OVER (ORDER BY i{self.pick('', ' DESC', ' ROWS 1 PRECEDING')}) FROM win{where} GROUP BY i ORDER BY i"
            )
        if shape == 8:
            outer = self.pick("id % 3 = 0", "id < 5", "c1 IS NOT NULL")
            return f"SELECT * FROM (SELECT id, {calls[0]} AS c1 FROM win{where}{windows}) q WHERE {outer} ORDER BY id"
        return f"SELECT id, {listed} FROM win{where}{windows} ORDER BY id{self.pick('', '', ' LIMIT 5', ' DESC')}"
