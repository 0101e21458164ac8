"""`queue-depth demo`: a real DBOS application on an embedded PostgreSQL, scaled by the exporter's numbers."""
