"""Reading DBOS's tables. The only package that imports asyncpg."""
