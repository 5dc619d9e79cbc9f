"""The time of every regular expression of the package on hostile texts of 100 kB: 50 ms at most.

Run by hand::

    python -m benchmarks.patterns

Prints the ten slowest patterns, each with the beginning of its hardest text, and fails if one takes longer.
`tests/test_patterns.py` counts their steps without a clock.
"""

from __future__ import annotations

import re
import sys
import time
from typing import Any

from tests.support.patterns import hard_text, hard_units, patterns

SIZE = 100_000
MOST_SECONDS = 0.05


def main() -> int:
    """Time all patterns."""
    times: list[tuple[float, str, str]] = []
    for found in patterns():
        pattern: re.Pattern[Any] = re.compile(found.pattern, found.flags)
        for unit in hard_units(found):
            text = hard_text(found, unit, SIZE)
            began = time.process_time()
            if found.searches:
                pattern.sub(text[:0], text)
            else:
                pattern.match(text)
            times.append((time.process_time() - began, found.place, repr(unit)))
    times.sort(reverse=True)
    for seconds, place, text in times[:10]:
        print(f"{1000 * seconds:8.1f} ms  {place}  {text}")
    return int(times[0][0] > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
