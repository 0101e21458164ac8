-- Which columns the DBOS tables have, and which of them the role may read.
-- $1 schema, $2 table names. From the catalog, since information_schema hides what the role may not read.
SELECT
    c.relname AS table_name,
    a.attname AS column_name,
    has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT') AS readable
FROM pg_catalog.pg_namespace AS n
INNER JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
INNER JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
WHERE
    n.nspname = $1
    AND c.relname = ANY($2::text [])
    AND a.attnum > 0
    AND NOT a.attisdropped
