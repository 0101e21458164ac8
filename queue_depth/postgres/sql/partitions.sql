-- Partitions with waiting workflows, grouped by what they look like, so that a partition per customer is no burden.
-- $1 names of the partitioned queues,
-- $2 names of the queues with a rate limit per partition, $3 beginning of each one's period (ms).
-- Numbers in arrays travel as text: to learn of bigint[], asyncpg would set jit for the session, which a pool shares.
-- One statement for all and no joins: partitions are as many as the customers, and a join of them may be planned badly.
WITH counted AS (
    SELECT
        queue_name,
        queue_partition_key,
        'waiting' AS kind,
        {application_name} AS application_name,
        application_version,
        count(*) AS count
    FROM {schema}.workflow_status
    WHERE status = 'ENQUEUED' AND {searched_queue} = ANY($1::text []) AND queue_partition_key IS NOT NULL
    GROUP BY queue_name, queue_partition_key, {application_name}, application_version
    {delayed}
    UNION ALL
    SELECT
        queue_name,
        queue_partition_key,
        'pending',
        {application_name},
        NULL,
        count(*)
    FROM {schema}.workflow_status
    WHERE status = 'PENDING' AND {searched_queue} = ANY($1::text []) AND queue_partition_key IS NOT NULL
    GROUP BY queue_name, queue_partition_key, {application_name}
    UNION ALL
    SELECT
        q.name,
        queue_partition_key,
        'started',
        {application_name},
        NULL,
        count(*)
    FROM unnest($2::text [], $3::text []::bigint []) AS q (name, since_ms)
    INNER JOIN {schema}.workflow_status
        ON {searched_queue} = q.name AND started_at_epoch_ms > q.since_ms AND {counts_as_start}
    WHERE queue_partition_key IS NOT NULL
    GROUP BY q.name, queue_partition_key, {application_name}
),

looks AS (
    SELECT
        queue_name,
        queue_partition_key,
        kind,
        json_build_array(kind, application_name, application_version, count)::text COLLATE "C" AS look
    FROM counted
),

partitions AS (
    SELECT
        queue_name,
        '[' || string_agg(look, ',' ORDER BY look) || ']' AS looks
    FROM looks
    GROUP BY queue_name, queue_partition_key
    HAVING bool_or(kind = 'waiting')
)

SELECT
    queue_name,
    looks,
    count(*) AS partitions
FROM partitions
GROUP BY queue_name, looks
