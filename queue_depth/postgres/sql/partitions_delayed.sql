-- Due DELAYED workflows of partitioned queues; part of the partitions statement where the schema knows them.
UNION ALL
SELECT
    queue_name,
    queue_partition_key,
    'waiting',
    {application_name},
    application_version,
    count(*)
FROM {schema}.workflow_status
WHERE
    status = 'DELAYED'
    AND delay_until_epoch_ms <= (SELECT (extract(EPOCH FROM now()) * 1000)::bigint)
    AND {searched_queue} = ANY($1::text [])
    AND queue_partition_key IS NOT NULL
GROUP BY queue_name, queue_partition_key, {application_name}, application_version
