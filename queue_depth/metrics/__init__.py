"""Prometheus: the numbers of the last snapshot and the exporter's own state, as series."""
