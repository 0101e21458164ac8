-- The newest version of each application, as JSON; part of the catalog statement.
-- Of several with the same time every exporter takes the same one.
(
    SELECT json_agg(json_build_array(v.application_name, v.version_name, v.version_timestamp))
    FROM (
        SELECT DISTINCT ON ({application_name})
            {application_name} AS application_name,
            version_name,
            version_timestamp
        FROM {schema}.application_versions
        ORDER BY {application_name}, version_timestamp DESC, version_name DESC
    ) AS v
)
