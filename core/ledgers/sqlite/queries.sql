-- Every statement of the SQLite ledger. A partial index is used only where its condition is repeated literally.

-- name: closing
SELECT sealed_for, copying_from FROM fencepost_meta

-- == enqueue ==

-- name: next_key
SELECT 1 + max(
    coalesce((SELECT max(key) FROM fencepost_jobs), 0),
    coalesce((SELECT max(key) FROM fencepost_dead), 0)
)

-- name: add_input
INSERT INTO fencepost_inputs (id, text) VALUES (?, ?)
ON CONFLICT (id) DO NOTHING

-- name: add_fifty_inputs
-- The same, fifty at a time: in half the time.
INSERT INTO fencepost_inputs (id, text) VALUES
    (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?),
    (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?),
    (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?),
    (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?),
    (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)
ON CONFLICT (id) DO NOTHING

-- name: add_job
-- -1 stands for NULL: sqlite3 takes ten times as long to bind None as to bind a number.
INSERT INTO fencepost_jobs (
    key, id, version, queue, effect, priority, run_at_ms, waiting, expires_at_ms, enqueued_at_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, -1), ?7 >= 0, nullif(?8, -1), ?9,
    nullif(?10, -1), nullif(?11, -1), nullif(?12, -1), nullif(?13, -1)
)
ON CONFLICT (id) DO NOTHING

-- name: add_jobs_alike
-- Jobs that differ only in their ids, by a JSON array: half the time of binding each row.
INSERT INTO fencepost_jobs (
    key, id, version, queue, effect, priority, run_at_ms, waiting, expires_at_ms, enqueued_at_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)
SELECT
    ?1 + record.key, record.value, ?3, ?4, ?5, ?6, nullif(?7, -1), ?7 >= 0, nullif(?8, -1), ?9,
    nullif(?10, -1), nullif(?11, -1), nullif(?12, -1), nullif(?13, -1)
FROM json_each(?2) AS record
WHERE true  -- tells the parser that ON CONFLICT belongs to the INSERT
ON CONFLICT (id) DO NOTHING

-- name: any_gone
SELECT EXISTS (SELECT 1 FROM fencepost_dead) OR EXISTS (SELECT 1 FROM fencepost_purged)

-- name: any_gone_of
SELECT EXISTS (
    SELECT 1 FROM json_each(:ids) AS record
    WHERE EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = record.value)
        OR EXISTS (SELECT 1 FROM fencepost_purged AS purged WHERE purged.id = record.value)
)

-- name: known
-- What is known of each id: its text, its job's effect, its last version if it was purged.
SELECT
    record.value,
    input.text,
    coalesce(job.effect, dead.effect),
    purged.version
FROM json_each(:ids) AS record
LEFT JOIN fencepost_inputs AS input ON input.id = record.value
LEFT JOIN fencepost_jobs AS job ON job.id = record.value
LEFT JOIN fencepost_dead AS dead ON dead.id = record.value
LEFT JOIN fencepost_purged AS purged ON purged.id = record.value

-- name: unpurge
DELETE FROM fencepost_purged WHERE id = :id

-- == claim ==

-- name: lanes[_all]
-- The effects that a claim may find something of, by one step for each in each index.
WITH RECURSIVE lane (queue, effect) AS (
    SELECT value, '' FROM json_each(:queues)
    UNION ALL
    SELECT lane.queue, (
        SELECT min(effect) FROM (
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_ready{_all}
                WHERE state = 'queued' AND waiting = 0
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_waiting{_all}
                WHERE state = 'queued' AND waiting = 1
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_passed_over{_all}
                WHERE state = 'queued' AND waiting = 2
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_leases{_all}
                WHERE state = 'running'
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_expiry{_all}
                WHERE expires_at_ms IS NOT NULL AND (state = 'queued' OR state = 'running')
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_attempts{_all}
                WHERE state = 'queued' AND attempts > 0 AND max_attempts IS NULL
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT effect FROM fencepost_jobs INDEXED BY fencepost_exhausted{_all}
                WHERE state = 'queued' AND attempts >= max_attempts
                    AND [[queue = lane.queue AND ]]effect > lane.effect
                ORDER BY effect LIMIT 1
            )
        )
    )
    FROM lane WHERE lane.effect IS NOT NULL
)
SELECT queue, effect FROM lane WHERE effect <> ''

-- name: paused
SELECT queue FROM fencepost_paused WHERE resuming = 0 ORDER BY queue

-- name: pauses
-- Whether any queue is paused.
SELECT EXISTS (SELECT 1 FROM fencepost_paused)

-- name: pauses_of
SELECT queue FROM fencepost_paused WHERE queue IN (SELECT value FROM json_each(:queues)) AND resuming = 0

-- name: resuming
SELECT queue FROM fencepost_paused INDEXED BY fencepost_resuming
WHERE resuming = 1 AND (:queues IS NULL OR queue IN (SELECT value FROM json_each(:queues)))
ORDER BY queue

-- name: paused_ahead
-- Whether a claim of all queues meets a job of a paused one: ready, or the next to become so.
SELECT EXISTS (
    SELECT 1 FROM json_each(:lanes) AS lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT * FROM (
            SELECT key FROM fencepost_jobs INDEXED BY fencepost_ready_all
            WHERE effect = json_extract(lane.value, '$[1]') AND state = 'queued' AND waiting = 0
            ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT :limit
        )
        UNION ALL
        SELECT * FROM (
            SELECT key FROM fencepost_jobs INDEXED BY fencepost_waiting_all
            WHERE effect = json_extract(lane.value, '$[1]') AND state = 'queued' AND waiting = 1
            ORDER BY run_at_ms LIMIT 1
        )
    )
    AND EXISTS (SELECT 1 FROM fencepost_paused AS paused WHERE paused.queue = job.queue AND paused.resuming = 0)
)

-- name: pass_over
-- Jobs of paused queues leave the indexes that a claim of all queues reads.
UPDATE fencepost_jobs SET waiting = 2
WHERE key IN (
    SELECT job.key FROM json_each(:lanes) AS lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT * FROM (
            SELECT key FROM fencepost_jobs INDEXED BY fencepost_ready_all
            WHERE effect = json_extract(lane.value, '$[1]') AND state = 'queued' AND waiting = 0
            ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT :window
        )
        UNION ALL
        SELECT * FROM (
            SELECT key FROM fencepost_jobs INDEXED BY fencepost_waiting_all
            WHERE effect = json_extract(lane.value, '$[1]') AND state = 'queued' AND waiting = 1
            ORDER BY run_at_ms LIMIT :window
        )
    )
    AND EXISTS (SELECT 1 FROM fencepost_paused AS paused WHERE paused.queue = job.queue AND paused.resuming = 0)
    LIMIT :limit
)

-- name: give_back
-- Jobs of a queue that were passed over enter the indexes again.
UPDATE fencepost_jobs SET waiting = (run_at_ms IS NOT NULL)
WHERE key IN (
    SELECT key FROM fencepost_jobs INDEXED BY fencepost_passed_over
    WHERE queue = :queue AND state = 'queued' AND waiting = 2
    LIMIT :limit
)

-- name: promote[_all]
-- Delayed jobs that have become due enter the index that claims read.
UPDATE fencepost_jobs SET waiting = 0
WHERE key IN (
    SELECT job.key
    FROM json_each(:lanes) AS lane
    CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_waiting{_all}
    WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
        AND job.state = 'queued' AND job.waiting = 1 AND job.run_at_ms <= :now_ms
    LIMIT :limit
)

-- name: passed[_all]
-- Whether any delayed job is due; and whether there is anything to reap: expired, lapsed, used up by the
-- worker's limit or by the job's own.
SELECT
    EXISTS (
        SELECT 1 FROM json_each(:lanes) AS lane
        CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_waiting{_all}
        WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
            AND job.state = 'queued' AND job.waiting = 1 AND job.run_at_ms <= :now_ms
    ),
    EXISTS (
        SELECT 1 FROM json_each(:lanes) AS lane
        CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_expiry{_all}
        WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
            AND job.expires_at_ms IS NOT NULL AND (job.state = 'queued' OR job.state = 'running')
            AND job.expires_at_ms <= :now_ms
    )
    OR EXISTS (
        SELECT 1 FROM json_each(:lanes) AS lane
        CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_leases{_all}
        WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
            AND job.state = 'running' AND job.lease_until_ms <= :now_ms
    )
    OR EXISTS (
        SELECT 1 FROM json_each(:lanes) AS lane
        CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_attempts{_all}
        WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
            AND job.state = 'queued' AND job.attempts > 0 AND job.max_attempts IS NULL
            AND job.attempts >= :max_attempts
    )
    OR EXISTS (
        SELECT 1 FROM json_each(:lanes) AS lane
        CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_exhausted{_all}
        WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
            AND job.state = 'queued' AND job.attempts >= job.max_attempts
    )

-- name: reapable[_all]
-- The jobs whose time has passed, those that passed first in front, and the first rule that fits each.
WITH lane (queue, effect) AS MATERIALIZED (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:lanes)
),
candidate (key) AS (
    SELECT job.key FROM lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_expiry{_all}
        WHERE [[queue = lane.queue AND ]]effect = lane.effect
            AND expires_at_ms IS NOT NULL AND (state = 'queued' OR state = 'running')
            AND expires_at_ms <= :now_ms
        ORDER BY expires_at_ms, key LIMIT :limit
    )
    UNION ALL
    SELECT job.key FROM lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_leases{_all}
        WHERE [[queue = lane.queue AND ]]effect = lane.effect
            AND state = 'running' AND lease_until_ms <= :now_ms
            AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms)
        ORDER BY lease_until_ms, key LIMIT :limit
    )
    UNION ALL
    SELECT job.key FROM lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_attempts{_all}
        WHERE [[queue = lane.queue AND ]]effect = lane.effect
            AND state = 'queued' AND attempts > 0 AND max_attempts IS NULL AND attempts >= :max_attempts
            AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms)
        ORDER BY attempts, key LIMIT :limit
    )
    UNION ALL
    SELECT job.key FROM lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_exhausted{_all}
        WHERE [[queue = lane.queue AND ]]effect = lane.effect
            AND state = 'queued' AND attempts >= max_attempts
            AND (expires_at_ms IS NULL OR expires_at_ms > :now_ms)
        ORDER BY key LIMIT :limit
    )
)
SELECT
    job.key,
    CASE
        WHEN job.expires_at_ms <= :now_ms THEN 'expire'
        WHEN job.state = 'running' AND job.started_at_ms IS NOT NULL THEN CASE
            WHEN EXISTS (SELECT 1 FROM fencepost_effects AS receipt WHERE receipt.id = job.id) THEN 'reclaim'
            ELSE 'lose'
        END
        WHEN job.attempts >= coalesce(job.max_attempts, :max_attempts) THEN 'exhaust'
        ELSE 'reclaim'
    END
FROM candidate CROSS JOIN fencepost_jobs AS job ON job.key = candidate.key
ORDER BY
    CASE WHEN job.expires_at_ms <= :now_ms THEN job.expires_at_ms ELSE job.lease_until_ms END,
    job.key
LIMIT :limit

-- name: lose
UPDATE fencepost_jobs
SET state = 'held', version = version + 1, lease_until_ms = 0, last_error = :error
WHERE key IN (SELECT value FROM json_each(:keys))

-- name: reclaim
-- A job that had started has a receipt: the claim that completes it by that is no attempt more.
UPDATE fencepost_jobs
SET
    state = 'queued', version = version + 1, lease_until_ms = 0, run_at_ms = NULL,
    attempts = attempts - (started_at_ms IS NOT NULL), started_at_ms = NULL
WHERE key IN (SELECT value FROM json_each(:keys))

-- name: pick[_all]
-- The first jobs of each lane, then the first of them all. RETURNING promises no order: the caller sorts. What the
-- caller knows of a claimed job is not returned, and what few jobs have comes as one array, NULL where there is none
-- of it: every column costs a tenth of a microsecond.
UPDATE fencepost_jobs
SET
    state = 'running',
    version = version + 1,
    attempts = attempts + 1,
    lease_until_ms = :now_ms + coalesce(visibility_timeout_ms, :lease_ms),
    claimant = :claimant,
    claimed_at_ms = :now_ms,
    first_claimed_at_ms = coalesce(first_claimed_at_ms, :now_ms)
WHERE key IN (
    SELECT job.key
    FROM json_each(:open_lanes) AS lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_ready{_all}
        WHERE [[queue = json_extract(lane.value, '$[0]') AND ]]effect = json_extract(lane.value, '$[1]')
            AND state = 'queued' AND waiting = 0
            AND (run_at_ms IS NULL OR run_at_ms <= :now_ms)
            AND attempts < coalesce(max_attempts, :max_attempts)
            [[|AND NOT (:any_paused AND EXISTS (
                SELECT 1 FROM fencepost_paused AS paused
                WHERE paused.queue = fencepost_jobs.queue AND paused.resuming = 0
            ))]]
        ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
        LIMIT :limit
    )
    ORDER BY job.priority DESC, coalesce(job.run_at_ms, job.enqueued_at_ms, 0), job.key
    LIMIT :limit
)
RETURNING
    key, id, version, lease_until_ms, attempts, queue, effect, priority, enqueued_at_ms, first_claimed_at_ms,
    CASE WHEN coalesce(
        run_at_ms, expires_at_ms, started_at_ms, last_error, visibility_timeout_ms, max_attempts, backoff_base_ms,
        dead_letter_retention_ms
    ) IS NOT NULL THEN json_array(
        run_at_ms, expires_at_ms, started_at_ms, last_error, visibility_timeout_ms, max_attempts, backoff_base_ms,
        dead_letter_retention_ms
    ) END

-- name: inputs
-- Joined, because an IN list would first be made a table of its own: that is a quarter of the time.
SELECT input.id, input.text FROM json_each(:ids) AS wanted CROSS JOIN fencepost_inputs AS input
WHERE input.id = wanted.value

-- name: job_without_input
-- One statement: an enqueue that commits between two could make a sound job look broken.
SELECT record.value FROM json_each(:ids) AS record
WHERE NOT EXISTS (SELECT 1 FROM fencepost_inputs AS input WHERE input.id = record.value)
    AND (
        EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = record.value)
        OR EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = record.value)
    )
LIMIT 1

-- name: receipts
SELECT receipt.id, receipt.receipt FROM json_each(:ids) AS wanted CROSS JOIN fencepost_effects AS receipt
WHERE receipt.id = wanted.value

-- == while a claim holds the job ==

-- name: add_receipt
INSERT INTO fencepost_effects (id, receipt) VALUES (?, ?)
ON CONFLICT (id) DO NOTHING

-- name: add_receipts
-- Of a JSON object from ids to receipts: half the time of one by one, and each is stored as it stands in it.
INSERT INTO fencepost_effects (id, receipt)
SELECT key, value FROM json_each(:receipts)
WHERE true  -- tells the parser that ON CONFLICT belongs to the INSERT
ON CONFLICT (id) DO NOTHING

-- name: complete
UPDATE fencepost_jobs SET state = 'completed', lease_until_ms = 0, completed_at_ms = ?3
WHERE id = ?1 AND version = ?2 AND state = 'running' AND lease_until_ms > ?3

-- name: complete_all
-- Of a JSON object from ids to versions. Not UPDATE FROM, which copies every row that it is to write first.
UPDATE fencepost_jobs SET state = 'completed', lease_until_ms = 0, completed_at_ms = :now_ms
WHERE key IN (
    SELECT job.key FROM json_each(:versions) AS settled CROSS JOIN fencepost_jobs AS job
    WHERE job.id = settled.key AND job.version = settled.value
        AND job.state = 'running' AND job.lease_until_ms > :now_ms
)

-- == every other move ==

-- name: move
UPDATE fencepost_jobs
SET
    state = :state,
    version = :version,
    lease_until_ms = :lease_until_ms,
    attempts = :attempts,
    priority = :priority,
    run_at_ms = :run_at_ms,
    waiting = (:state = 'queued' AND :run_at_ms IS NOT NULL),
    started_at_ms = :started_at_ms,
    completed_at_ms = :completed_at_ms,
    last_error = :last_error
WHERE id = :id

-- name: bury
INSERT INTO fencepost_dead (
    key, id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms, claimant,
    claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error, died_at_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)
SELECT
    key, id, version + 1, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms, claimant,
    claimed_at_ms, first_claimed_at_ms, CASE WHEN NOT :nothing_done THEN started_at_ms END, completed_at_ms,
    :error, :now_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM fencepost_jobs WHERE key IN (SELECT value FROM json_each(:keys))

-- name: forget_buried
DELETE FROM fencepost_jobs WHERE key IN (SELECT value FROM json_each(:keys))

-- name: revive
INSERT INTO fencepost_jobs (
    key, id, state, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms,
    claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)
SELECT
    key, id, :state, :version, :attempts, queue, effect, priority, :run_at_ms, :expires_at_ms, enqueued_at_ms,
    claimant, claimed_at_ms, first_claimed_at_ms, :started_at_ms, completed_at_ms, :last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM fencepost_dead WHERE key = :key

-- name: forget_dead
DELETE FROM fencepost_dead WHERE key IN (SELECT value FROM json_each(:keys))

-- name: record
INSERT INTO fencepost_audit (at_ms, action, id, actor, reason, from_state, to_state, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_purged
INSERT INTO fencepost_purged (id, version)
SELECT id, version FROM fencepost_dead WHERE key IN (SELECT value FROM json_each(:keys))
ON CONFLICT (id) DO UPDATE SET version = excluded.version

-- == sweep ==

-- name: purgeable[_all]
SELECT key FROM fencepost_dead INDEXED BY fencepost_dead_retention{_all}
WHERE [[queue = :queue AND ]]dead_letter_retention_ms IS NOT NULL
    AND died_at_ms + dead_letter_retention_ms <= :now_ms
LIMIT :limit

-- name: expired[_all]
SELECT job.key
FROM json_each(:lanes) AS lane CROSS JOIN fencepost_jobs AS job INDEXED BY fencepost_expiry{_all}
WHERE [[job.queue = json_extract(lane.value, '$[0]') AND ]]job.effect = json_extract(lane.value, '$[1]')
    AND job.expires_at_ms IS NOT NULL AND (job.state = 'queued' OR job.state = 'running')
    AND job.expires_at_ms <= :now_ms
LIMIT :limit

-- == looking ==

-- name: jobs_of
-- One statement over both tables, so that a move between them cannot hide a job.
SELECT
    id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    NULL, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
FROM fencepost_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT
    id, 'dead', version, 0, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
FROM fencepost_dead WHERE id IN (SELECT value FROM json_each(:ids))

-- name: jobs_at
SELECT
    id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    NULL, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
FROM fencepost_jobs WHERE key IN (SELECT value FROM json_each(:keys))
UNION ALL
SELECT
    id, 'dead', version, 0, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
FROM fencepost_dead WHERE key IN (SELECT value FROM json_each(:keys))
ORDER BY key

-- name: keys
-- A page in order of enqueue. Few jobs are running or held, so where only those are asked for, their indexes are
-- read; for queued and completed ones (:scan) the table is.
SELECT key FROM (
    SELECT * FROM (
        SELECT key FROM fencepost_jobs NOT INDEXED
        WHERE :scan AND key > :after AND state IN (SELECT value FROM json_each(:states))
            AND (:queue IS NULL OR queue = :queue) AND (:effect IS NULL OR effect = :effect)
        ORDER BY key LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_leases
        WHERE NOT :scan AND state = 'running' AND key > :after
            AND state IN (SELECT value FROM json_each(:states))
            AND (:queue IS NULL OR queue = :queue) AND (:effect IS NULL OR effect = :effect)
        ORDER BY key LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_held
        WHERE NOT :scan AND state = 'held' AND key > :after
            AND state IN (SELECT value FROM json_each(:states))
            AND (:queue IS NULL OR queue = :queue) AND (:effect IS NULL OR effect = :effect)
        ORDER BY key LIMIT :limit
    )
    UNION ALL
    SELECT * FROM (
        SELECT key FROM fencepost_dead NOT INDEXED
        WHERE key > :after AND 'dead' IN (SELECT value FROM json_each(:states))
            AND (:queue IS NULL OR queue = :queue) AND (:effect IS NULL OR effect = :effect)
        ORDER BY key LIMIT :limit
    )
)
ORDER BY key LIMIT :limit

-- name: keys_where
-- A search: every job that the other filters let through is looked at.
SELECT key FROM (
    SELECT
        key, state, queue, effect, attempts, last_error, enqueued_at_ms AS age_from_ms
    FROM fencepost_jobs
    UNION ALL
    SELECT key, 'dead', queue, effect, attempts, last_error, died_at_ms FROM fencepost_dead
)
WHERE key > :after AND state IN (SELECT value FROM json_each(:states))
    AND (:queue IS NULL OR queue = :queue) AND (:effect IS NULL OR effect = :effect)
    AND (:error IS NULL OR instr(last_error, :error) > 0)
    AND (:min_attempts IS NULL OR attempts >= :min_attempts)
    AND (:max_attempts IS NULL OR attempts <= :max_attempts)
    AND (:since_ms IS NULL OR age_from_ms >= :since_ms)
    AND (:until_ms IS NULL OR age_from_ms <= :until_ms)
ORDER BY key LIMIT :limit

-- name: queue_counts
SELECT
    queue,
    count(*) FILTER (WHERE state = 'queued' AND (run_at_ms IS NULL OR run_at_ms <= :now_ms)),
    count(*) FILTER (WHERE state = 'queued' AND run_at_ms > :now_ms),
    count(*) FILTER (WHERE state = 'running'),
    count(*) FILTER (WHERE state = 'completed'),
    count(*) FILTER (WHERE state = 'held'),
    min(coalesce(run_at_ms, enqueued_at_ms))
        FILTER (WHERE state = 'queued' AND (run_at_ms IS NULL OR run_at_ms <= :now_ms)),
    count(*) FILTER (WHERE state = 'completed' AND completed_at_ms >= :since_ms),
    0,
    0
FROM fencepost_jobs
GROUP BY queue
UNION ALL
SELECT queue, 0, 0, 0, 0, 0, NULL, 0, count(*), count(*) FILTER (WHERE died_at_ms >= :since_ms)
FROM fencepost_dead
GROUP BY queue

-- name: latest_deaths
SELECT
    id, 'dead', version, 0, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM fencepost_dead ORDER BY died_at_ms DESC, key LIMIT :limit

-- name: counts
-- Each from an index that holds little else. Completed jobs have none, which would cost every settlement a tenth:
-- they are what is left of all, and counting all rows reads no row.
SELECT
    (SELECT count(*) FROM fencepost_jobs) AS live,
    (
        SELECT count(*) FROM fencepost_jobs INDEXED BY fencepost_ready WHERE state = 'queued' AND waiting = 0
    ) + (
        SELECT count(*) FROM fencepost_jobs INDEXED BY fencepost_waiting WHERE state = 'queued' AND waiting = 1
    ) + (
        SELECT count(*) FROM fencepost_jobs INDEXED BY fencepost_passed_over WHERE state = 'queued' AND waiting = 2
    ) AS queued,
    (SELECT count(*) FROM fencepost_jobs INDEXED BY fencepost_leases WHERE state = 'running') AS running,
    (SELECT count(*) FROM fencepost_jobs INDEXED BY fencepost_held WHERE state = 'held') AS held,
    (SELECT count(*) FROM fencepost_dead) AS dead

-- name: counts_of_queue
SELECT state, count(*) FROM fencepost_jobs WHERE queue = :queue GROUP BY state
UNION ALL
SELECT 'dead', count(*) FROM fencepost_dead WHERE queue = :queue

-- name: next_due[_all]
-- Of the ready jobs a thousand a lane are looked at: one that is ready now is among them if there is any.
SELECT min(due_ms) FROM (
    SELECT min(coalesce(job.run_at_ms, 0)) AS due_ms
    FROM json_each(:open_lanes) AS lane CROSS JOIN fencepost_jobs AS job
    WHERE job.key IN (
        SELECT key FROM fencepost_jobs INDEXED BY fencepost_ready{_all}
        WHERE [[queue = json_extract(lane.value, '$[0]') AND ]]effect = json_extract(lane.value, '$[1]')
            AND state = 'queued' AND waiting = 0
            [[|AND NOT (:any_paused AND EXISTS (
                SELECT 1 FROM fencepost_paused AS paused
                WHERE paused.queue = fencepost_jobs.queue AND paused.resuming = 0
            ))]]
        ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT 1000
    )
    UNION ALL
    SELECT (
        SELECT run_at_ms FROM fencepost_jobs INDEXED BY fencepost_waiting{_all}
        WHERE [[queue = json_extract(lane.value, '$[0]') AND ]]effect = json_extract(lane.value, '$[1]')
            AND state = 'queued' AND waiting = 1
            [[|AND NOT (:any_paused AND EXISTS (
                SELECT 1 FROM fencepost_paused AS paused
                WHERE paused.queue = fencepost_jobs.queue AND paused.resuming = 0
            ))]]
        ORDER BY run_at_ms LIMIT 1
    ) FROM json_each(:open_lanes) AS lane
    UNION ALL
    SELECT (
        SELECT min(coalesce(run_at_ms, 0)) FROM fencepost_jobs INDEXED BY fencepost_passed_over
        WHERE queue = resumed.value AND state = 'queued' AND waiting = 2
            AND effect IN (SELECT json_extract(value, '$[1]') FROM json_each(:lanes))
    ) FROM json_each(:resuming) AS resumed
    UNION ALL
    SELECT (
        SELECT lease_until_ms FROM fencepost_jobs INDEXED BY fencepost_leases{_all}
        WHERE [[queue = json_extract(lane.value, '$[0]') AND ]]effect = json_extract(lane.value, '$[1]')
            AND state = 'running'
        ORDER BY lease_until_ms LIMIT 1
    ) FROM json_each(:lanes) AS lane
    UNION ALL
    SELECT (
        SELECT expires_at_ms FROM fencepost_jobs INDEXED BY fencepost_expiry{_all}
        WHERE [[queue = json_extract(lane.value, '$[0]') AND ]]effect = json_extract(lane.value, '$[1]')
            AND expires_at_ms IS NOT NULL AND (state = 'queued' OR state = 'running')
        ORDER BY expires_at_ms LIMIT 1
    ) FROM json_each(:lanes) AS lane
)

-- name: audit
SELECT at_ms, action, id, actor, reason, from_state, to_state, version FROM (
    SELECT * FROM fencepost_audit ORDER BY number DESC LIMIT :limit
) ORDER BY number

-- name: audit_of
SELECT at_ms, action, id, actor, reason, from_state, to_state, version FROM (
    SELECT * FROM fencepost_audit WHERE id = :id ORDER BY number DESC LIMIT :limit
) ORDER BY number

-- == pauses and schedules ==

-- name: pause
INSERT INTO fencepost_paused (queue) VALUES (?)
ON CONFLICT (queue) DO UPDATE SET resuming = 0 WHERE resuming = 1

-- name: resume
UPDATE fencepost_paused SET resuming = 1 WHERE queue = ? AND resuming = 0

-- name: forget_pause
-- Once all that was passed over is back.
DELETE FROM fencepost_paused
WHERE queue = :queue AND resuming = 1 AND NOT EXISTS (
    SELECT 1 FROM fencepost_jobs INDEXED BY fencepost_passed_over
    WHERE queue = :queue AND state = 'queued' AND waiting = 2
)

-- name: lock_schedules
-- One transaction at a time writes: there is nothing to lock, and this changes nothing.
DELETE FROM fencepost_schedules WHERE false

-- name: put_schedule
INSERT INTO fencepost_schedules (
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
) VALUES (
    :name, :every, :text, :queue, :effect, :priority, :expires_ms,
    :visibility_timeout_ms, :max_attempts, :backoff_base_ms, :dead_letter_retention_ms,
    :next_ms, :zone, :missed, :overlap, :paused, :owner, :since_ms, :tz_version, :last_id
)
ON CONFLICT (name) DO UPDATE SET
    every = excluded.every,
    text = excluded.text,
    queue = excluded.queue,
    effect = excluded.effect,
    priority = excluded.priority,
    expires_ms = excluded.expires_ms,
    visibility_timeout_ms = excluded.visibility_timeout_ms,
    max_attempts = excluded.max_attempts,
    backoff_base_ms = excluded.backoff_base_ms,
    dead_letter_retention_ms = excluded.dead_letter_retention_ms,
    next_ms = excluded.next_ms,
    zone = excluded.zone,
    missed = excluded.missed,
    overlap = excluded.overlap,
    paused = excluded.paused,
    owner = excluded.owner,
    since_ms = excluded.since_ms,
    tz_version = excluded.tz_version,
    last_id = excluded.last_id

-- name: unregister_schedule
DELETE FROM fencepost_schedules WHERE name = ?

-- name: schedule
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM fencepost_schedules WHERE name = ?

-- name: schedules
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM fencepost_schedules ORDER BY name

-- name: due_schedules
-- What has passed; and what a clock that was ahead, or an older tz database, may have put in the wrong place.
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM fencepost_schedules
WHERE NOT paused AND (next_ms <= :now_ms OR since_ms > :now_ms OR tz_version < :tz_version)
ORDER BY name

-- name: known_ids
-- The ids of these that are bound, and whether the job of each is unfinished.
SELECT
    input.id,
    EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = input.id AND job.state <> 'completed')
FROM json_each(:ids) AS wanted CROSS JOIN fencepost_inputs AS input
WHERE input.id = wanted.value

-- name: advance_schedules
UPDATE fencepost_schedules SET
    next_ms = json_extract(item.value, '$.next_ms'),
    since_ms = json_extract(item.value, '$.since_ms'),
    tz_version = json_extract(item.value, '$.tz_version'),
    last_id = json_extract(item.value, '$.last_id')
FROM json_each(:schedules) AS item
WHERE name = json_extract(item.value, '$.name')

-- == moving a whole ledger ==

-- name: live_leases
SELECT id FROM fencepost_jobs WHERE state = 'running' AND lease_until_ms > ? LIMIT 1

-- name: seal
UPDATE fencepost_meta SET sealed_for = ?

-- name: set_copying
UPDATE fencepost_meta SET copying_from = ?

-- name: anything
-- A name of something that the ledger holds; every job and every purged id has an input.
SELECT id FROM fencepost_inputs
UNION ALL
SELECT id FROM fencepost_effects
UNION ALL
SELECT name FROM fencepost_schedules
LIMIT 1

-- name: others
-- The ids that have no job: inputs that wait for one, purged ids, receipts of neither.
SELECT id FROM (
    SELECT * FROM (
        SELECT id FROM fencepost_inputs AS other
        WHERE id > :after
            AND NOT EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = other.id)
            AND NOT EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = other.id)
        ORDER BY id LIMIT :limit
    )
    UNION
    SELECT * FROM (
        SELECT id FROM fencepost_purged WHERE id > :after ORDER BY id LIMIT :limit
    )
    UNION
    SELECT * FROM (
        SELECT id FROM fencepost_effects AS other
        WHERE id > :after
            AND NOT EXISTS (SELECT 1 FROM fencepost_jobs AS job WHERE job.id = other.id)
            AND NOT EXISTS (SELECT 1 FROM fencepost_dead AS dead WHERE dead.id = other.id)
        ORDER BY id LIMIT :limit
    )
)
ORDER BY id LIMIT :limit

-- name: purged_of
SELECT id, version FROM fencepost_purged WHERE id IN (SELECT value FROM json_each(:ids))

-- name: import_job
INSERT INTO fencepost_jobs (
    id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key, waiting
) VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
    (?2 = 'queued' AND ?9 IS NOT NULL)
)

-- name: import_dead
INSERT INTO fencepost_dead (
    id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: import_purged
INSERT INTO fencepost_purged (id, version) VALUES (?, ?)
