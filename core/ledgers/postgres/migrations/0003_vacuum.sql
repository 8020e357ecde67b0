-- A job leaves two dead rows on its way, and the completed ones stay. By PostgreSQL's defaults a table of a million
-- completed jobs would be vacuumed after 200,000 dead rows, and its free space be used again only then; so it is after
-- 20,000, which autovacuum looks for once a minute. More often does not pay: each vacuum reads every index.
ALTER TABLE {schema}.fencepost_jobs SET (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_analyze_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.02
);
