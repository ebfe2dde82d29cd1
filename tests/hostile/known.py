"""Rows that fail at present, with what was measured. ``python -m tests.hostile --short --known`` writes them anew: what is mended goes."""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {
    "string_agg": "the longest turn took 82.0, 82.7, 70.4 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "factorial (EXPLAIN)": "the longest turn took 64.8, 72.9, 65.9 ms of processor time, over 25: data_received",
    "a variance of long numbers": "the longest turn took 44.1, 38.4, 41.3 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "array_to_string": "the longest turn took 69.1, 65.9, 56.7 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "concatenation": "the longest turn took 186.5, 191.6, 185.0 ms of processor time, over 25: data_received",
    "concat": "the longest turn took 45.6, 46.3, 46.2 ms of processor time, over 25: data_received",
    "concat_ws": "the longest turn took 48.7, 40.4, 39.6 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "format": "the longest turn took 48.4, 51.4, 46.5 ms of processor time, over 25: data_received",
    "replace": "the longest turn took 95.1, 105.3, 89.5 ms of processor time, over 25: data_received",
    "replace, twice": "the longest turn took 112.9, 109.2, 93.2 ms of processor time, over 25: data_received",
    "overlay": "the longest turn took 155.7, 164.1, 152.2 ms of processor time, over 25: data_received",
    "convert_to": "the longest turn took 78.4, 73.6, 77.9 ms of processor time, over 25: data_received",
    "convert_from": "the longest turn took 54.9, 54.6, 58.5 ms of processor time, over 25: data_received",
    "encode": "the longest turn took 105.5, 108.3, 116.3 ms of processor time, over 25: data_received",
    "to_json of a long text": "the longest turn took 38.3, 25.7, 27.4 ms of processor time, over 25: data_received",
    "eight large rows": "the longest turn took 49.5, 49.9, 56.2 ms of processor time, over 25: data_received",
    "large values gathered": "the longest turn took 47.0, 43.6, 35.8 ms of processor time, over 25: data_received",
    "a chain that doubles": "the longest turn took 94.9, 83.6, 91.6 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "a variable that doubles": "the longest turn took 107.2, 86.9, 118.7 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at ",
    "an array variable that doubles": "the longest turn took 54.7, 56.1, 54.5 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "a large error message": "the longest turn took 293.0, 287.8, 272.5 ms of processor time, over 25: data_received",
    "a large value that is no number": "the longest turn took 326.1, 330.3, 365.9 ms of processor time, over 25: data_received",
    "a prepared statement's large value": "the longest turn took 63.6, 59.8, 59.5 ms of processor time, over 25: task Session._run at Interrupts._interruptible",
    "WITH within WITH": "one turn took over 2000 ms of processor time: the server was killed",
    "IN of texts": "the longest turn took 62.1, 57.9, 84.6 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "EXPLAIN of a large statement": "the longest turn took 46.1, 58.8, 69.2 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "UPDATE of many columns": "the longest turn took 87.6, 45.7, 50.5 ms of processor time, over 25: task Interrupts._interruptible.<locals>.body at In",
    "COPY TO of large values": "the longest turn took 182.4, 161.0, 190.4 ms of processor time, over 25: data_received",
    "COPY FROM of one long line": "one turn of more than two seconds, in python3.11/asyncio/runners.py: run",
    "COPY FROM without a line end": "a turn of 800 ms, in pgwire/codecs/copy_lines.py: _find_eol",
    "COPY FROM of too many columns": "a turn of 90 ms, in pgwire/codecs/copy_lines.py: _find_eol",
    "COPY FROM of one large jsonb": "a turn of 113 ms, in pgwire/codecs/copy_lines.py: _find_eol",
    "portals that keep their queries": "a turn of 43 ms, in engine/local/instance.py: open_instance",
    "a numeric of 30,000 digits in binary": "a turn of 642 ms, in pgwire/codecs/numeric.py: _join",
}
"""Reasons by the names of rows."""
