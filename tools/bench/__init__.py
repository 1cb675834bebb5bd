"""
Measure what XCE publishes about itself: `python -m tools.bench [NAME...] [--json]`, `make bench`.

One file of this package is one figure. It defines a constant FIGURE:

    FIGURE = Figure(
        name="submits",
        says="Durable submits per second through the API.",
        measure=measure,        # called once a round with an empty folder on a real disk
        rounds=3,
    )

    def measure(folder: Path) -> list[Reading]:
        alone, together, disk = ...
        return [
            Reading("synced appends of the disk", disk, "1/s"),
            Reading("one client", alone, "1/s", per="synced appends of the disk"),
            Reading("32 clients", together, "1/s", per="synced appends of the disk", goal=1500),
        ]

The frame calls `measure` for each round, shows the median of each reading with its lowest and
highest, and the median of its ratio to the reading named by `per` *in the same round*: machines
differ and are busy, ratios move less. A denominator is therefore measured anew in every round;
`disk.synced_appends_per_s`, `spawn.spawns_per_s` and `bare_loop.bare_jobs_per_s` are made for that.
`goal` is the least value that is wanted, or the greatest with `is_lower_better`.

What can't be measured here raises `NotMeasured` with the reason; the run goes on, says so and ends
with status 1. A figure that fails does the same. Helper modules without FIGURE are passed over.
"""
