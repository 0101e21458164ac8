"""queue-depth: true backlog and in-flight numbers of DBOS queues, for KEDA and Prometheus."""

__version__ = "0.1.0"
