-- How far a standby is behind its primary, in seconds; NULL when it cannot tell. Empty on a primary.
-- None while it is connected and has replayed all it received; otherwise the age of the last replayed commit.
-- A connection may be dead and not yet known as such. After half of wal_receiver_timeout a standby asks a silent primary
-- for an answer; a primary that is silent for longer was last heard so long ago. Only some roles may see when that was.
SELECT
    coalesce(
        (
            SELECT CASE WHEN silence > 0.6 * nullif(patience, '0') THEN extract(EPOCH FROM silence) ELSE 0 END
            FROM
                pg_catalog.pg_stat_wal_receiver,
                LATERAL (SELECT now() - last_msg_receipt_time) AS heard (silence),
                LATERAL (SELECT current_setting('wal_receiver_timeout')::interval) AS setting (patience)
            WHERE pid IS NOT NULL AND pg_last_wal_receive_lsn() <= pg_last_wal_replay_lsn()
        ),
        replayed.seconds_ago
    )::float8 AS lag_seconds,
    replayed.seconds_ago::float8 AS replayed_seconds_ago
FROM (
    SELECT
        CASE WHEN replayed_at IS NOT NULL THEN greatest(0, extract(EPOCH FROM now() - replayed_at)) END AS seconds_ago
    FROM pg_last_xact_replay_timestamp() AS replayed_at
) AS replayed
WHERE pg_is_in_recovery()
