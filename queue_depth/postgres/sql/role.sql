-- Who reads, and whether with more rights than needed.
-- $1 schema.
SELECT
    current_user AS name,
    coalesce((SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user), FALSE) AS superuser,
    coalesce(bool_or(has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), FALSE) AS may_write,
    coalesce(bool_or(has_column_privilege(c.oid, a.attnum, 'SELECT')), FALSE) AS may_read_inputs
FROM pg_catalog.pg_namespace AS n
INNER JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname IN ('inputs', 'output')
WHERE n.nspname = $1 AND c.relname IN ('workflow_status', 'workflow_input', 'workflow_output')
