-- The clock, the replication lag, the shape of the schema, the queues and the latest versions.
-- $1 schema.
-- A table that is dropped and made again, or rewritten by ALTER TABLE, looks empty to a snapshot from before. Such a
-- table is told by its file: the function knows the present one, the row of pg_class that of the snapshot.
-- Lag: none on a primary, nor on a standby that is connected and has replayed all it received; otherwise the age of
-- the last replayed commit. NULL when a standby cannot tell.
-- A connection may be dead and not yet known as such. After half of wal_receiver_timeout a standby asks a silent primary
-- for an answer; a primary that is silent for longer was last heard so long ago. Only some roles may see when that was.
SELECT
    (extract(EPOCH FROM now()) * 1000)::bigint AS now_ms,
    coalesce(
        CASE WHEN NOT pg_is_in_recovery() THEN 0 END,
        (
            SELECT CASE WHEN silence > 0.6 * nullif(patience, '0') THEN extract(EPOCH FROM silence) ELSE 0 END
            FROM
                pg_catalog.pg_stat_wal_receiver,
                LATERAL (SELECT now() - last_msg_receipt_time) AS heard (silence),
                LATERAL (SELECT current_setting('wal_receiver_timeout')::interval) AS setting (patience)
            WHERE pid IS NOT NULL AND pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn()
        ),
        (
            SELECT greatest(0, extract(EPOCH FROM now() - replayed_at))
            FROM pg_last_xact_replay_timestamp() AS replayed_at
            WHERE replayed_at IS NOT NULL
        )
    )::float8 AS lag_seconds,
    (
        SELECT coalesce(string_agg(relname || ':' || relnatts, ',' ORDER BY relname), '')
        FROM pg_catalog.pg_class
        WHERE
            relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
            AND relname IN ('workflow_status', 'queues', 'application_versions', 'workflow_input')
    ) AS shape,
    EXISTS (
        SELECT
        FROM pg_catalog.pg_class
        WHERE
            relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = $1)
            AND relname IN ('workflow_status', 'queues', 'application_versions')
            AND relkind = 'r'
            AND relfilenode IS DISTINCT FROM pg_catalog.pg_relation_filenode(oid)
    ) AS replaced,
    {queues} AS queues,
    {latest_versions} AS latest_versions
