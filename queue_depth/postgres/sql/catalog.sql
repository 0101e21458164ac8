-- The clock, the shape of the schema, the queues and the latest versions.
-- $1 schema.
-- A table that is dropped and made again, or rewritten by ALTER TABLE, looks empty to a snapshot from before. Such a
-- table is told by its file: the function knows the present one, the row of pg_class that of the snapshot.
SELECT
    (extract(EPOCH FROM now()) * 1000)::bigint AS now_ms,
    tables.shape,
    tables.replaced,
    {queues} AS queues,
    {latest_versions} AS latest_versions
FROM (
    SELECT
        coalesce(string_agg(relname || ':' || relnatts, ',' ORDER BY relname), '') AS shape,
        coalesce(
            bool_or(relkind = 'r' AND relfilenode IS DISTINCT FROM pg_catalog.pg_relation_filenode(oid))
            FILTER (WHERE relname <> 'workflow_input'),
            FALSE
        ) AS replaced
    FROM pg_catalog.pg_class
    WHERE
        relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
        AND relname IN ('workflow_status', 'queues', 'application_versions', 'workflow_input')
) AS tables
