-- The clock, the replication lag, the shape of the schema, the queues and the latest versions.
-- $1 schema.
-- Lag: none on a primary, nor on a standby that is connected and has replayed all it received; otherwise the age of
-- the last replayed commit. NULL when a standby cannot tell.
SELECT
    (extract(EPOCH FROM now()) * 1000)::bigint AS now_ms,
    CASE
        WHEN NOT pg_is_in_recovery() THEN 0
        WHEN
            EXISTS (SELECT FROM pg_catalog.pg_stat_wal_receiver WHERE pid IS NOT NULL)
            AND pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn()
            THEN 0
        ELSE greatest(0, extract(EPOCH FROM now() - pg_last_xact_replay_timestamp()))
    END::float8 AS lag_seconds,
    (
        SELECT coalesce(string_agg(relname || ':' || relnatts, ',' ORDER BY relname), '')
        FROM pg_catalog.pg_class
        WHERE
            relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
            AND relname IN ('workflow_status', 'queues', 'application_versions', 'workflow_input')
    ) AS shape,
    {queues} AS queues,
    {latest_versions} AS latest_versions
