-- The newest version of each application, as JSON; part of the catalog statement.
-- Of several with the same time every exporter takes the same one.
(
    SELECT json_agg(json_build_array(v.application_name, v.version_name, v.version_timestamp))
    FROM (
        SELECT
            {application_name} AS application_name,
            max(version_name) AS version_name,
            version_timestamp
        FROM {schema}.application_versions
        INNER JOIN (
            SELECT
                {application_name} AS owner,
                max(version_timestamp) AS newest
            FROM {schema}.application_versions
            GROUP BY {application_name}
        ) AS n ON version_timestamp = n.newest AND {application_name} IS NOT DISTINCT FROM n.owner
        GROUP BY {application_name}, version_timestamp
    ) AS v
)
