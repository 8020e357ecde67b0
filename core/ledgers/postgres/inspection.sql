-- What the doctor asks of a PostgreSQL ledger, and of the server under it.

-- name: now_ms
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- name: entries
SELECT
    job.id, job.state, job.version, job.lease_until_ms, job.attempts, job.queue, job.effect, job.priority,
    job.run_at_ms, job.expires_at_ms, job.enqueued_at_ms, job.claimant, job.claimed_at_ms,
    job.first_claimed_at_ms, job.started_at_ms, job.completed_at_ms, job.last_error, NULL::bigint,
    job.visibility_timeout_ms, job.max_attempts, job.backoff_base_ms, job.dead_letter_retention_ms,
    input.id IS NOT NULL,
    receipt.id IS NOT NULL
FROM {schema}.fencepost_jobs AS job
LEFT JOIN {schema}.fencepost_inputs AS input ON input.id = job.id
LEFT JOIN {schema}.fencepost_effects AS receipt ON receipt.id = job.id
UNION ALL
SELECT
    dead.id, 'dead', dead.version, 0, dead.attempts, dead.queue, dead.effect, dead.priority,
    dead.run_at_ms, dead.expires_at_ms, dead.enqueued_at_ms, dead.claimant, dead.claimed_at_ms,
    dead.first_claimed_at_ms, dead.started_at_ms, dead.completed_at_ms, dead.last_error, dead.died_at_ms,
    dead.visibility_timeout_ms, dead.max_attempts, dead.backoff_base_ms, dead.dead_letter_retention_ms,
    input.id IS NOT NULL,
    receipt.id IS NOT NULL
FROM {schema}.fencepost_dead AS dead
LEFT JOIN {schema}.fencepost_inputs AS input ON input.id = dead.id
LEFT JOIN {schema}.fencepost_effects AS receipt ON receipt.id = dead.id

-- name: others
-- The ids that have no job.
SELECT other.id, purged.id IS NOT NULL, input.id IS NOT NULL, receipt.id IS NOT NULL
FROM (
    SELECT id FROM {schema}.fencepost_inputs
    UNION
    SELECT id FROM {schema}.fencepost_effects
    UNION
    SELECT id FROM {schema}.fencepost_purged
) AS other
LEFT JOIN {schema}.fencepost_purged AS purged ON purged.id = other.id
LEFT JOIN {schema}.fencepost_inputs AS input ON input.id = other.id
LEFT JOIN {schema}.fencepost_effects AS receipt ON receipt.id = other.id
WHERE NOT EXISTS (SELECT 1 FROM {schema}.fencepost_jobs AS job WHERE job.id = other.id)
    AND NOT EXISTS (SELECT 1 FROM {schema}.fencepost_dead AS dead WHERE dead.id = other.id)

-- name: contents
SELECT wanted.id, input.text, receipt.receipt
FROM unnest(%(ids)s::text[]) AS wanted (id)
LEFT JOIN {schema}.fencepost_inputs AS input ON input.id = wanted.id
LEFT JOIN {schema}.fencepost_effects AS receipt ON receipt.id = wanted.id

-- name: paused
SELECT queue FROM {schema}.fencepost_paused WHERE NOT resuming ORDER BY queue

-- name: schedules
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM {schema}.fencepost_schedules ORDER BY name

-- name: closing
SELECT sealed_for, copying_from FROM {schema}.fencepost_meta

-- name: objects
-- What there is in the schema that migrations make; a trigger that is switched off is as good as none.
SELECT class.relname::text
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s
UNION ALL
SELECT function.proname::text
FROM pg_proc AS function
JOIN pg_namespace AS namespace ON namespace.oid = function.pronamespace
WHERE namespace.nspname = %(schema)s
UNION ALL
SELECT entry.tgname::text
FROM pg_trigger AS entry
JOIN pg_class AS class ON class.oid = entry.tgrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s AND entry.tgenabled IN ('O', 'A')

-- name: not_durable
-- The settings by which a crash of the server loses what was committed.
SELECT name FROM pg_settings
WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'
ORDER BY name

-- name: standby
SELECT pg_is_in_recovery()

-- name: broken_indexes
-- Left by a CREATE INDEX CONCURRENTLY that failed: kept up to date, and never used.
SELECT class.relname
FROM pg_index AS entry
JOIN pg_class AS class ON class.oid = entry.indexrelid
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s AND class.relname LIKE 'fencepost\_%%' AND NOT entry.indisvalid
ORDER BY class.relname

-- name: bloat
-- Tables with more dead rows than autovacuum should leave.
SELECT relname, n_live_tup, n_dead_tup
FROM pg_stat_user_tables
WHERE schemaname = %(schema)s AND relname LIKE 'fencepost\_%%'
    AND n_dead_tup > greatest(%(least)s, n_live_tup)
ORDER BY n_dead_tup DESC

-- name: without_vacuum
SELECT class.relname
FROM pg_class AS class
JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
WHERE namespace.nspname = %(schema)s AND class.relname LIKE 'fencepost\_%%' AND class.relkind = 'r'
    AND (current_setting('autovacuum') = 'off' OR class.reloptions @> ARRAY['autovacuum_enabled=false'])
ORDER BY class.relname

-- name: old_snapshots
-- What keeps vacuum from removing rows that nobody needs: transactions, and prepared ones. Those of other databases
-- do not.
SELECT
    format('pid %%s (%%s, %%s)', pid, coalesce(nullif(application_name, ''), 'no name'), state),
    floor(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint
FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
    AND backend_type = 'client backend' AND datname = current_database()
    AND xact_start < clock_timestamp() - %(old_ms)s * interval '1 millisecond'
UNION ALL
SELECT
    format('prepared transaction %%s', gid),
    floor(extract(epoch FROM clock_timestamp() - prepared) * 1000)::bigint
FROM pg_prepared_xacts
WHERE database = current_database() AND prepared < clock_timestamp() - %(old_ms)s * interval '1 millisecond'
ORDER BY 2 DESC

-- name: hidden_sessions
-- Who has sessions here of which this role may not see more than that they are there.
SELECT DISTINCT usename::text FROM pg_stat_activity
WHERE datname = current_database() AND query = '<insufficient privilege>'
ORDER BY 1

-- name: idle_slots
SELECT slot_name FROM pg_replication_slots
WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)
ORDER BY slot_name
