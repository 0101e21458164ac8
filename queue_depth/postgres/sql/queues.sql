-- The registered queues, as JSON; part of the catalog statement.
(
    SELECT
        json_agg(json_build_array(
            name,
            {application_name},
            concurrency,
            worker_concurrency,
            rate_limit_max,
            rate_limit_period_sec,
            partition_queue,
            {partition_concurrency},
            {partition_worker_concurrency},
            {partition_rate_limit_max},
            {partition_rate_limit_period_sec}
        ))
    FROM {schema}.queues
)
