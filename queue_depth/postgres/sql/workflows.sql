-- Every unfinished workflow, counted by what it has in common with others.
-- $1 beginning of the in-flight window (ms).
-- Statuses are literals and each half names those of one partial index, or no plan could use it.
-- A row waits since it became ENQUEUED: updated_at, which recovery and resumption move and promotion does not.
-- updated_at also stands in for the start of work that was started directly and so has no started_at_epoch_ms.
SELECT
    queue_name,
    status,
    {application_name} AS application_name,
    application_version,
    executor_id,
    FALSE AS due,
    count(*) AS count,
    count({queue_partition_key}) AS keyed,
    count(*) FILTER (WHERE coalesce(started_at_epoch_ms, updated_at) > $1) AS recent,
    min(greatest(updated_at, {delay_until_epoch_ms})) AS oldest_ms
FROM {schema}.workflow_status
WHERE status IN ('ENQUEUED', 'PENDING')
GROUP BY queue_name, status, {application_name}, application_version, executor_id
{delayed}
