"""How fast, how small, how little load: `python -m benchmarks` with `tests` on the path (`make bench`)."""
