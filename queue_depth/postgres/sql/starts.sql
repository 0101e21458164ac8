-- Workflows started within their queue's rate limit period.
-- $1 names of the queues with a rate limit, $2 beginning of each one's period (ms).
SELECT
    q.name AS queue_name,
    {application_name} AS application_name,
    count(*) AS count
FROM unnest($1::text [], $2::bigint []) AS q (name, since_ms)
INNER JOIN {schema}.workflow_status
    ON queue_name = q.name AND started_at_epoch_ms > q.since_ms AND {counts_as_start}
GROUP BY q.name, {application_name}
