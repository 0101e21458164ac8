-- Workflows started within their queue's rate limit period.
-- $1 names of the queues with a rate limit, $2 beginning of each one's period (ms), as text: see `partitions`.
SELECT
    q.name AS queue_name,
    {application_name} AS application_name,
    count(*) AS count
FROM unnest($1::text [], $2::text []::bigint []) AS q (name, since_ms)
INNER JOIN {schema}.workflow_status
    ON {searched_queue} = q.name AND started_at_epoch_ms > q.since_ms AND {counts_as_start}
GROUP BY q.name, {application_name}
