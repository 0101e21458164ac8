-- Every unfinished workflow, counted by what it has in common with others.
-- $1 length of the in-flight window (ms).
-- The columns are those of `WorkflowGroup`, in its order.
-- Statuses are literals and each part names one, or no partial index would fit. A part per status is also the
-- fastest: the executor of a waiting row is its enqueuer, and thousands of API pods would make thousands of groups.
-- A row waits since it became ENQUEUED: updated_at, which recovery and resumption move and promotion does not.
-- updated_at also stands in for the start of work that was started directly and so has no started_at_epoch_ms.
SELECT
    queue_name,
    'ENQUEUED' AS status,
    {application_name} AS application_name,
    application_version,
    NULL AS executor_id,
    FALSE AS due,
    count(*) AS count,
    count({queue_partition_key}) AS keyed,
    0 AS recent,
    min(greatest(updated_at, {delay_until_epoch_ms})) AS oldest_ms
FROM {schema}.workflow_status
WHERE status = 'ENQUEUED'
GROUP BY queue_name, {application_name}, application_version
UNION ALL
SELECT
    queue_name,
    'PENDING',
    {application_name},
    application_version,
    executor_id,
    FALSE,
    count(*),
    count({queue_partition_key}),
    count(*) FILTER (
        WHERE coalesce(started_at_epoch_ms, updated_at) > (SELECT (extract(EPOCH FROM now()) * 1000)::bigint - $1)
    ),
    NULL
FROM {schema}.workflow_status
WHERE status = 'PENDING'
GROUP BY queue_name, {application_name}, application_version, executor_id
{delayed}
