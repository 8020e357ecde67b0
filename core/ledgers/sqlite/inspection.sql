-- What the doctor asks of a SQLite ledger, besides the engine's own pragmas.

-- name: entries
SELECT
    job.id, job.state, job.version, job.lease_until_ms, job.attempts, job.queue, job.effect, job.priority,
    job.run_at_ms, job.expires_at_ms, job.enqueued_at_ms, job.claimant, job.claimed_at_ms,
    job.first_claimed_at_ms, job.started_at_ms, job.completed_at_ms, job.last_error, NULL,
    job.visibility_timeout_ms, job.max_attempts, job.backoff_base_ms, job.dead_letter_retention_ms,
    EXISTS (SELECT 1 FROM fencepost_inputs AS input WHERE input.id = job.id),
    EXISTS (SELECT 1 FROM fencepost_effects AS receipt WHERE receipt.id = job.id)
FROM fencepost_jobs AS job
UNION ALL
SELECT
    dead.id, 'dead', dead.version, 0, dead.attempts, dead.queue, dead.effect, dead.priority,
    dead.run_at_ms, dead.expires_at_ms, dead.enqueued_at_ms, dead.claimant, dead.claimed_at_ms,
    dead.first_claimed_at_ms, dead.started_at_ms, dead.completed_at_ms, dead.last_error, dead.died_at_ms,
    dead.visibility_timeout_ms, dead.max_attempts, dead.backoff_base_ms, dead.dead_letter_retention_ms,
    EXISTS (SELECT 1 FROM fencepost_inputs AS input WHERE input.id = dead.id),
    EXISTS (SELECT 1 FROM fencepost_effects AS receipt WHERE receipt.id = dead.id)
FROM fencepost_dead AS dead

-- name: others
-- The ids that have no job. Each table is asked by itself: to put all of their ids together first takes longer.
SELECT
    other.id,
    purged.id IS NOT NULL,
    EXISTS (SELECT 1 FROM fencepost_inputs AS input WHERE input.id = other.id),
    EXISTS (SELECT 1 FROM fencepost_effects AS receipt WHERE receipt.id = other.id)
FROM (
    SELECT id FROM fencepost_inputs AS input
    WHERE NOT EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = input.id)
        AND NOT EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = input.id)
    UNION
    SELECT id FROM fencepost_effects AS receipt
    WHERE NOT EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = receipt.id)
        AND NOT EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = receipt.id)
    UNION
    SELECT id FROM fencepost_purged AS purged
    WHERE NOT EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = purged.id)
        AND NOT EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = purged.id)
) AS other
LEFT JOIN fencepost_purged AS purged ON purged.id = other.id

-- name: contents
SELECT wanted.value, input.text, receipt.receipt
FROM json_each(:ids) AS wanted
LEFT JOIN fencepost_inputs AS input ON input.id = wanted.value
LEFT JOIN fencepost_effects AS receipt ON receipt.id = wanted.value

-- name: paused
SELECT queue FROM fencepost_paused WHERE resuming = 0 ORDER BY queue

-- name: schedules
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM fencepost_schedules ORDER BY name

-- name: closing
SELECT sealed_for, copying_from FROM fencepost_meta
