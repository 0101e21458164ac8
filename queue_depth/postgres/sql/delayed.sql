-- DELAYED workflows, due and not; last part of the workflows statement where the schema knows them.
UNION ALL
SELECT
    queue_name,
    'DELAYED',
    {application_name},
    application_version,
    NULL,
    delay_until_epoch_ms <= (SELECT (extract(EPOCH FROM now()) * 1000)::bigint) AS due,
    count(*),
    count({queue_partition_key}),
    0,
    min(delay_until_epoch_ms)
FROM {schema}.workflow_status
WHERE status = 'DELAYED'
GROUP BY queue_name, {application_name}, application_version, due
