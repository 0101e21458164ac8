-- Partitions with waiting workflows, grouped by what they look like, so that a partition per customer is no burden.
-- $1 names of the partitioned queues,
-- $2 names of the queues with a rate limit per partition, $3 beginning of each one's period (ms).
-- Numbers in arrays travel as text: to learn of bigint[], asyncpg would set jit for the session, which a pool shares.
WITH waiting AS (
    SELECT
        queue_name,
        queue_partition_key,
        {application_name} AS application_name,
        application_version,
        count(*) AS count
    FROM {schema}.workflow_status
    WHERE status = 'ENQUEUED' AND {searched_queue} = ANY($1::text []) AND queue_partition_key IS NOT NULL
    GROUP BY queue_name, queue_partition_key, {application_name}, application_version
    {delayed}
),

partitions AS (
    SELECT
        queue_name,
        queue_partition_key,
        array_agg(application_name ORDER BY application_name, application_version, count) AS applications,
        array_agg(application_version ORDER BY application_name, application_version, count) AS versions,
        array_agg(count ORDER BY application_name, application_version, count) AS counts
    FROM waiting
    GROUP BY queue_name, queue_partition_key
),

pending AS (
    SELECT
        queue_name,
        queue_partition_key,
        count(*) AS count
    FROM {schema}.workflow_status
    WHERE status = 'PENDING' AND {searched_queue} = ANY($1::text []) AND queue_partition_key IS NOT NULL
    GROUP BY queue_name, queue_partition_key
),

started AS (
    SELECT
        q.name AS queue_name,
        queue_partition_key,
        count(*) AS count
    FROM unnest($2::text [], $3::text []::bigint []) AS q (name, since_ms)
    INNER JOIN {schema}.workflow_status
        ON {searched_queue} = q.name AND started_at_epoch_ms > q.since_ms AND {counts_as_start}
    WHERE queue_partition_key IS NOT NULL
    GROUP BY q.name, queue_partition_key
)

SELECT
    queue_name,
    applications,
    versions,
    counts::text [] AS counts,
    coalesce(pending.count, 0) AS pending,
    coalesce(started.count, 0) AS started,
    count(*) AS partitions
FROM partitions
LEFT JOIN pending USING (queue_name, queue_partition_key)
LEFT JOIN started USING (queue_name, queue_partition_key)
GROUP BY queue_name, applications, versions, counts, coalesce(pending.count, 0), coalesce(started.count, 0)
