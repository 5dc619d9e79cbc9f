"""Run the short benchmarks one after the other; `store_throughput`, `call_rate` and `chaos` take minutes each."""

from __future__ import annotations

import asyncio

from benchmarks import command_line, lab_overhead, ratings, sandbox, tournament_speed

if __name__ == "__main__":
    command_line.main()
    ratings.main()
    asyncio.run(lab_overhead.main())
    asyncio.run(sandbox.main())
    asyncio.run(tournament_speed.main())
