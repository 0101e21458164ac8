"""HTTP: the numbers of the last snapshot as JSON, and the probes. Nothing here waits for the database."""
