-- The valid indexes of workflow_status: their key columns in order, and the predicate of partial ones.
-- $1 schema.
SELECT
    ic.relname AS index_name,
    ARRAY(
        SELECT a.attname
        FROM unnest(i.indkey::int2 []) WITH ORDINALITY AS k (attnum, position)
        INNER JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE k.position <= i.indnkeyatts
        ORDER BY k.position
    )::text [] AS key_columns,
    coalesce(pg_get_expr(i.indpred, i.indrelid), '') AS predicate
FROM pg_catalog.pg_namespace AS n
INNER JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'workflow_status'
INNER JOIN pg_catalog.pg_index AS i ON i.indrelid = c.oid
INNER JOIN pg_catalog.pg_class AS ic ON ic.oid = i.indexrelid
WHERE n.nspname = $1 AND i.indisvalid
