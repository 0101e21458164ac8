-- All that queue-depth needs: to read some columns of three tables, and nothing of any workflow's inputs or outputs.
-- Run it as the owner of the DBOS tables, again after a DBOS upgrade that adds columns. It is safe to repeat.
DO $queue_depth$
DECLARE
    dbos_schema CONSTANT text := {schema};
    reader CONSTANT text := {role};
    readable CONSTANT text [] := {columns};
    relation record;
BEGIN
    IF pg_catalog.to_regclass(format('%I.workflow_status', dbos_schema)) IS NULL THEN
        RAISE EXCEPTION 'no table workflow_status in schema "%" of database "%"', dbos_schema, current_database()
            USING HINT = 'Connect to the DBOS system database; name another schema with queue-depth grants --schema.';
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', dbos_schema, reader);
    FOR relation IN
        SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
        FROM pg_catalog.pg_namespace AS n
        INNER JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
        INNER JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
        WHERE
            n.nspname = dbos_schema
            AND c.relname || '.' || a.attname = ANY(readable)
            AND NOT a.attisdropped
        GROUP BY c.relname
    LOOP
        EXECUTE format('GRANT SELECT (%s) ON %I.%I TO %I', relation.columns, dbos_schema, relation.name, reader);
    END LOOP;
END
$queue_depth$;
