-- Every statement of the PostgreSQL ledger. {schema} stands for the schema's name, {channel} for that of its
-- wake-ups; lists come as array literals.
-- A small number is sent as a smallint, so whatever is calculated with is cast.

-- name: opening
-- Read first in every transaction that writes, which locks fencepost_meta until its end: a seal waits for that. The
-- clock is that of the transaction's beginning, as in every statement that is given no instant: it is read once.
-- For this transaction alone, plans are walks along the indexes, whatever the statistics say: the statements are
-- written for them, and a hash join over a partial index takes eight times as long to settle a batch.
SELECT
    identity::text, sealed_for, copying_from, floor(extract(epoch FROM now()) * 1000)::bigint,
    pg_current_snapshot()::text,
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_generic_plan', true),
    set_config('lock_timeout', '30s', true)
FROM {schema}.fencepost_meta

-- name: meta
-- The same of a transaction that is not ours, whose settings and clock are left as they are.
SELECT
    identity::text, sealed_for, copying_from, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    pg_current_snapshot()::text
FROM {schema}.fencepost_meta

-- name: settings
-- For transactions that only read: see opening.
SELECT
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_generic_plan', true)

-- name: now_ms
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- name: snapshot
-- Another text whenever a transaction that writes has begun or ended anywhere in the server.
SELECT pg_current_snapshot()::text

-- name: listen
LISTEN {channel}

-- name: wake
NOTIFY {channel}

-- name: closing
SELECT sealed_for, copying_from FROM {schema}.fencepost_meta

-- == enqueue ==

-- name: add_inputs
SELECT new, bound, key, any_dead FROM {schema}.fencepost_add_inputs(%(ids)s::text[], %(texts)b)

-- name: add_jobs
SELECT {schema}.fencepost_add_jobs(
    %(key)s::bigint, %(now_ms)s::bigint, %(places)s::bigint[], %(ids)s::text[], %(queue)s::text[],
    %(effect)s::text[], %(priority)s::integer[], %(run_at_ms)s::bigint[], %(expires_at_ms)s::bigint[],
    %(visibility_timeout_ms)s::bigint[], %(max_attempts)s::bigint[], %(backoff_base_ms)s::bigint[],
    %(dead_letter_retention_ms)s::bigint[]
)

-- name: add_jobs_alike
SELECT {schema}.fencepost_add_jobs_alike(
    %(key)s::bigint, %(queue)s::text, %(effect)s::text, %(priority)s::integer, %(run_at_ms)s::bigint,
    %(expires_at_ms)s::bigint, %(now_ms)s::bigint, %(visibility_timeout_ms)s::bigint,
    %(max_attempts)s::bigint, %(backoff_base_ms)s::bigint, %(dead_letter_retention_ms)s::bigint,
    %(ids)s::text[]
)

-- name: known
-- What is known of each id: the digest of its text, its live job, its dead one, whether it was purged.
SELECT record.id, sha256(input.text), job.key, job.effect, dead.effect, purged.version IS NOT NULL
FROM unnest(%(ids)s::text[]) AS record (id)
LEFT JOIN {schema}.fencepost_inputs AS input ON input.id = record.id
LEFT JOIN {schema}.fencepost_jobs AS job ON job.id = record.id
LEFT JOIN {schema}.fencepost_dead AS dead ON dead.id = record.id
LEFT JOIN {schema}.fencepost_purged AS purged ON purged.id = record.id

-- name: unpurge
-- Of jobs that are just made: they go on from the version at which their ids were purged.
WITH purged AS (
    DELETE FROM {schema}.fencepost_purged WHERE id = ANY(%(ids)s::text[]) RETURNING id, version
)
UPDATE {schema}.fencepost_jobs AS job SET version = purged.version + 1
FROM purged WHERE job.id = purged.id

-- == claim ==

-- name: paused
SELECT queue FROM {schema}.fencepost_paused WHERE NOT resuming ORDER BY queue

-- name: resuming
SELECT queue FROM {schema}.fencepost_paused
WHERE resuming AND (%(queues)s::text[] IS NULL OR queue = ANY(%(queues)s::text[]))
ORDER BY queue

-- name: paused_ahead
-- The paused queues of which a claim of all queues meets a job: ready, or the next to become so. Their pauses are locked
-- until the jobs are passed over, so that none is once its queue has been resumed.
SELECT queue FROM {schema}.fencepost_paused
WHERE NOT resuming AND queue = ANY(ARRAY(
    SELECT job.queue::text
    FROM unnest(%(effects)s::text[]) AS lane (effect)
    CROSS JOIN LATERAL (
        (
            SELECT queue FROM {schema}.fencepost_jobs
            WHERE coalesce(effect, '') = lane.effect AND state = 'queued' AND waiting = 0
            ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT %(limit)s
        )
        UNION ALL
        (
            SELECT queue FROM {schema}.fencepost_jobs
            WHERE coalesce(effect, '') = lane.effect AND state = 'queued' AND waiting = 1
            ORDER BY run_at_ms LIMIT 1
        )
    ) AS job
))
ORDER BY queue
FOR SHARE

-- name: pass_over
-- Jobs of paused queues leave the indexes that a claim of all queues reads.
UPDATE {schema}.fencepost_jobs SET waiting = 2
WHERE id = ANY(ARRAY(
    SELECT id::text FROM {schema}.fencepost_jobs
    WHERE id = ANY(ARRAY(
        SELECT job.id
        FROM unnest(%(effects)s::text[]) AS lane (effect)
        CROSS JOIN LATERAL (
            (
                SELECT id::text, queue FROM {schema}.fencepost_jobs
                WHERE coalesce(effect, '') = lane.effect AND state = 'queued' AND waiting = 0
                ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key LIMIT %(window)s
            )
            UNION ALL
            (
                SELECT id::text, queue FROM {schema}.fencepost_jobs
                WHERE coalesce(effect, '') = lane.effect AND state = 'queued' AND waiting = 1
                ORDER BY run_at_ms LIMIT %(window)s
            )
        ) AS job
        WHERE job.queue = ANY(%(queues)s::text[])
        LIMIT %(limit)s
    ))
    -- Asked again of the row as it is once it is locked; not so that the planner sees a partial index in it.
    AND coalesce(state, '') = 'queued' AND coalesce(waiting, 0) < 2
    ORDER BY id
    FOR UPDATE SKIP LOCKED
))

-- name: give_back
-- Jobs of a queue that were passed over enter the indexes again.
UPDATE {schema}.fencepost_jobs SET waiting = (run_at_ms IS NOT NULL)::int
WHERE id = ANY(ARRAY(
    SELECT id::text FROM {schema}.fencepost_jobs
    WHERE queue = %(queue)s AND state = 'queued' AND waiting = 2
    ORDER BY effect LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
))

-- name: forget_pause
-- Once all that was passed over is back.
DELETE FROM {schema}.fencepost_paused
WHERE queue = %(queue)s AND resuming AND NOT EXISTS (
    SELECT FROM {schema}.fencepost_jobs WHERE queue = %(queue)s AND state = 'queued' AND waiting = 2
)

-- name: lanes
-- See migrations/0002_functions.sql, as of every other function.
SELECT queue, effect, paused, ahead, resuming, due, passed
FROM {schema}.fencepost_survey(
    %(queues)s::text[], %(effects)s::text[], %(now_ms)s::bigint, %(max_attempts)s::bigint, %(limit)s::bigint
)

-- name: promote[_all]
-- Delayed jobs that have become due enter the index that claims read. They are locked in the order of ids, so that two
-- claims whose lanes differ wait for one another and never both.
UPDATE {schema}.fencepost_jobs SET waiting = 0
WHERE id = ANY(ARRAY(
    SELECT id::text FROM {schema}.fencepost_jobs
    WHERE id = ANY(ARRAY(
        SELECT job.id
        FROM unnest(%(queues)s::text[], %(effects)s::text[]) AS lane (queue, effect)
        CROSS JOIN LATERAL (
            SELECT id::text FROM {schema}.fencepost_jobs
            WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
                AND state = 'queued' AND waiting = 1 AND run_at_ms <= %(now_ms)s::bigint
            ORDER BY run_at_ms LIMIT %(limit)s
        ) AS job
        LIMIT %(limit)s
    ))
    AND coalesce(waiting, 0) = 1
    ORDER BY id
    FOR UPDATE
))

-- name: reapable[_all]
-- The jobs whose time has passed, those that passed first in front, and the first rule that fits each. What
-- others are settling is passed over.
WITH candidate AS MATERIALIZED (
    SELECT passed.id, passed.key, passed.passed_ms
    FROM unnest(%(queues)s::text[], %(effects)s::text[]) AS lane (queue, effect)
    CROSS JOIN LATERAL (
        (
            SELECT id, key, expires_at_ms AS passed_ms FROM {schema}.fencepost_jobs
            WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
                AND expires_at_ms IS NOT NULL AND state IN ('queued', 'running')
                AND expires_at_ms <= %(now_ms)s::bigint
            ORDER BY expires_at_ms, key LIMIT %(limit)s
        )
        UNION ALL
        (
            SELECT id, key, lease_until_ms FROM {schema}.fencepost_jobs
            WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
                AND state = 'running' AND lease_until_ms <= %(now_ms)s::bigint
                AND (expires_at_ms IS NULL OR expires_at_ms > %(now_ms)s::bigint)
            ORDER BY lease_until_ms, key LIMIT %(limit)s
        )
        UNION ALL
        (
            SELECT id, key, 0 FROM {schema}.fencepost_jobs
            WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
                AND state = 'queued' AND attempts > 0 AND max_attempts IS NULL
                AND attempts >= %(max_attempts)s::bigint
                AND (expires_at_ms IS NULL OR expires_at_ms > %(now_ms)s::bigint)
            ORDER BY attempts LIMIT %(limit)s
        )
        UNION ALL
        (
            SELECT id, key, 0 FROM {schema}.fencepost_jobs
            WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
                AND state = 'queued' AND attempts >= max_attempts
                AND (expires_at_ms IS NULL OR expires_at_ms > %(now_ms)s::bigint)
            ORDER BY key LIMIT %(limit)s
        )
    ) AS passed
    ORDER BY passed.passed_ms, passed.key LIMIT %(limit)s
)
SELECT
    id,
    CASE
        WHEN expires_at_ms <= %(now_ms)s::bigint THEN 'expire'
        WHEN state = 'running' AND started_at_ms IS NOT NULL THEN CASE
            WHEN EXISTS (SELECT FROM {schema}.fencepost_effects AS receipt WHERE receipt.id = job.id) THEN 'reclaim'
            ELSE 'lose'
        END
        WHEN attempts >= coalesce(max_attempts, %(max_attempts)s::bigint) THEN 'exhaust'
        ELSE 'reclaim'
    END
FROM {schema}.fencepost_jobs AS job
WHERE id = ANY(ARRAY(SELECT id FROM candidate))
    -- Asked again of the row as it is once it is locked.
    AND (
        (state IN ('queued', 'running') AND expires_at_ms <= %(now_ms)s::bigint)
        OR (state = 'running' AND lease_until_ms <= %(now_ms)s::bigint)
        OR (state = 'queued' AND attempts >= coalesce(max_attempts, %(max_attempts)s::bigint))
    )
ORDER BY id
FOR UPDATE SKIP LOCKED

-- name: lose
UPDATE {schema}.fencepost_jobs
SET state = 'held', version = version + 1, lease_until_ms = 0, last_error = %(error)s
WHERE id = ANY(%(ids)s::text[])

-- name: reclaim
-- A job that had started has a receipt: the claim that completes it by that is no attempt more.
UPDATE {schema}.fencepost_jobs
SET
    state = 'queued', version = version + 1, lease_until_ms = 0, run_at_ms = NULL,
    attempts = attempts - (started_at_ms IS NOT NULL)::int, started_at_ms = NULL
WHERE id = ANY(%(ids)s::text[])

-- name: shares[_all]
-- How many of the first jobs of all lanes lie in each: what a claim of several lanes then takes from it.
SELECT first.place, count(*)
FROM (
    SELECT lane.place
    FROM unnest(%(queues)s::text[], %(effects)s::text[]) WITH ORDINALITY AS lane (queue, effect, place)
    CROSS JOIN LATERAL (
        SELECT priority, coalesce(run_at_ms, enqueued_at_ms, 0) AS ready_ms, key FROM {schema}.fencepost_jobs
        WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
            AND state = 'queued' AND waiting = 0
            AND (run_at_ms IS NULL OR run_at_ms <= %(now_ms)s::bigint)
            AND attempts < coalesce(max_attempts, %(max_attempts)s::bigint)
            [[|AND NOT (%(any_paused)s::boolean AND EXISTS (
                SELECT FROM {schema}.fencepost_paused AS paused
                WHERE paused.queue = fencepost_jobs.queue AND NOT paused.resuming
            ))]]
        ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
        LIMIT %(limit)s
    ) AS job
    ORDER BY job.priority DESC, job.ready_ms, job.key
    LIMIT %(limit)s
) AS first
GROUP BY first.place

-- name: pick
SELECT
    key, id, version, lease_until_ms, attempts, queue, effect, priority, enqueued_at_ms, first_claimed_at_ms, rest
FROM {schema}.fencepost_pick(
    %(queues)s::text[], %(effects)s::text[], %(shares)s::bigint[], %(any_paused)s::boolean, %(now_ms)s::bigint,
    %(max_attempts)s::bigint, %(lease_ms)s::bigint, %(claimant)s::text
)

-- name: inputs
SELECT id, input FROM {schema}.fencepost_read_inputs(%(ids)s::text[])

-- name: job_without_input
-- One statement: an enqueue that commits between two could make a sound job look broken.
SELECT record.id FROM unnest(%(ids)s::text[]) AS record (id)
WHERE NOT EXISTS (SELECT FROM {schema}.fencepost_inputs AS input WHERE input.id = record.id)
    AND (
        EXISTS (SELECT FROM {schema}.fencepost_jobs AS job WHERE job.id = record.id)
        OR EXISTS (SELECT FROM {schema}.fencepost_dead AS dead WHERE dead.id = record.id)
    )
LIMIT 1

-- name: receipts
SELECT id, receipt FROM {schema}.fencepost_read_receipts(%(ids)s::text[])

-- == while a claim holds the job ==

-- name: add_receipts
-- In the order of ids: see add_inputs.
INSERT INTO {schema}.fencepost_effects (id, receipt)
SELECT id, receipt FROM unnest(%(ids)s::text[], %(receipts)b) AS record (id, receipt)
ORDER BY id COLLATE "C"
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: settle
SELECT short, published, completed
FROM {schema}.fencepost_settle(
    %(ids)s::text[], %(versions)s::bigint[], %(receipts)b, %(count)s::bigint, %(now_ms)s::bigint
)

-- name: complete
-- See settle.
UPDATE {schema}.fencepost_jobs AS job
SET state = 'completed', lease_until_ms = 0, completed_at_ms = %(now_ms)s::bigint
FROM unnest(%(ids)s::text[], %(versions)s::bigint[]) AS settled (id, version)
WHERE job.id = settled.id AND job.version = settled.version AND job.lease_until_ms > %(now_ms)s::bigint
RETURNING job.id, job.version

-- == every other move ==

-- name: lock_job
-- The job, live or dead, and nobody else moves it until the transaction ends.
WITH live AS (
    SELECT
        id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
        enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
        NULL::bigint, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
    FROM {schema}.fencepost_jobs WHERE id = %(id)s FOR UPDATE
), dead AS (
    SELECT
        id, 'dead', version, 0::bigint, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
        enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
        died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
    FROM {schema}.fencepost_dead WHERE id = %(id)s FOR UPDATE
)
SELECT * FROM live UNION ALL SELECT * FROM dead

-- name: move
UPDATE {schema}.fencepost_jobs
SET
    state = %(state)s::text,
    version = %(version)s,
    lease_until_ms = %(lease_until_ms)s,
    attempts = %(attempts)s,
    priority = %(priority)s,
    run_at_ms = %(run_at_ms)s::bigint,
    waiting = (%(state)s::text = 'queued' AND %(run_at_ms)s::bigint IS NOT NULL)::int,
    started_at_ms = %(started_at_ms)s,
    completed_at_ms = %(completed_at_ms)s,
    last_error = %(last_error)s
WHERE id = %(id)s

-- name: bury
WITH buried AS (
    DELETE FROM {schema}.fencepost_jobs WHERE id = ANY(%(ids)s::text[]) RETURNING *
)
INSERT INTO {schema}.fencepost_dead (
    key, id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms, claimant,
    claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error, died_at_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)
SELECT
    key, id, version + 1, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms, claimant,
    claimed_at_ms, first_claimed_at_ms, CASE WHEN NOT %(nothing_done)s THEN started_at_ms END, completed_at_ms,
    %(error)s, %(now_ms)s::bigint,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM buried

-- name: revive
WITH revived AS (
    DELETE FROM {schema}.fencepost_dead WHERE id = %(id)s RETURNING *
)
INSERT INTO {schema}.fencepost_jobs (
    key, id, state, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms,
    claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)
SELECT
    key, id, %(state)s::text, %(version)s, %(attempts)s, queue, effect, priority, %(run_at_ms)s::bigint,
    %(expires_at_ms)s::bigint, enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms,
    %(started_at_ms)s::bigint, completed_at_ms, %(last_error)s,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM revived

-- name: record
INSERT INTO {schema}.fencepost_audit (at_ms, action, id, actor, reason, from_state, to_state, version)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)

-- name: purge
WITH purged AS (
    DELETE FROM {schema}.fencepost_dead WHERE id = ANY(%(ids)s::text[]) RETURNING id, version
)
INSERT INTO {schema}.fencepost_purged (id, version)
SELECT id, version FROM purged
ON CONFLICT (id) DO UPDATE SET version = excluded.version

-- == sweep ==

-- name: purgeable[_all]
SELECT id FROM {schema}.fencepost_dead
WHERE [[queue = %(queue)s AND ]]dead_letter_retention_ms IS NOT NULL
    AND died_at_ms + dead_letter_retention_ms <= %(now_ms)s::bigint
ORDER BY died_at_ms + dead_letter_retention_ms LIMIT %(limit)s
FOR UPDATE SKIP LOCKED

-- name: expired[_all]
SELECT job.id
FROM {schema}.fencepost_lanes(%(queues)s::text[], NULL) AS lane
CROSS JOIN LATERAL (
    SELECT id FROM {schema}.fencepost_jobs
    WHERE [[queue = lane.queue AND effect|coalesce(effect, '')]] = lane.effect
        AND expires_at_ms IS NOT NULL AND state IN ('queued', 'running')
        AND expires_at_ms <= %(now_ms)s::bigint
    ORDER BY expires_at_ms LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) AS job
LIMIT %(limit)s

-- == looking ==

-- name: jobs_of
-- One statement over both tables, so that a move between them cannot hide a job.
SELECT
    id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    NULL::bigint, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
FROM {schema}.fencepost_jobs WHERE id = ANY(%(ids)s::text[])
UNION ALL
SELECT
    id, 'dead', version, 0::bigint, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, key
FROM {schema}.fencepost_dead WHERE id = ANY(%(ids)s::text[])

-- name: page
-- A page in order of enqueue. Few jobs are running or held, so where only those are asked for, their indexes are
-- read; for queued and completed ones (scan) the index of all but the running ones is.
SELECT key, id FROM (
    (
        SELECT key, id FROM {schema}.fencepost_jobs
        WHERE %(scan)s AND coalesce(state <> 'running', true) AND key > %(after)s::bigint AND state = ANY(%(states)s::text[])
            AND (%(queue)s::text IS NULL OR queue = %(queue)s)
            AND (%(effect)s::text IS NULL OR effect = %(effect)s)
        ORDER BY key LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT key, id FROM {schema}.fencepost_jobs
        WHERE state = 'running' AND key > %(after)s::bigint AND state = ANY(%(states)s::text[])
            AND (%(queue)s::text IS NULL OR queue = %(queue)s)
            AND (%(effect)s::text IS NULL OR effect = %(effect)s)
        ORDER BY key LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT key, id FROM {schema}.fencepost_jobs
        WHERE NOT %(scan)s AND state = 'held' AND key > %(after)s::bigint AND state = ANY(%(states)s::text[])
            AND (%(queue)s::text IS NULL OR queue = %(queue)s)
            AND (%(effect)s::text IS NULL OR effect = %(effect)s)
        ORDER BY key LIMIT %(limit)s
    )
    UNION ALL
    (
        SELECT key, id FROM {schema}.fencepost_dead
        WHERE key > %(after)s::bigint AND 'dead' = ANY(%(states)s::text[])
            AND (%(queue)s::text IS NULL OR queue = %(queue)s)
            AND (%(effect)s::text IS NULL OR effect = %(effect)s)
        ORDER BY key LIMIT %(limit)s
    )
) AS found
ORDER BY key LIMIT %(limit)s

-- name: page_where
-- A search: every job that the other filters let through is looked at.
SELECT key, id FROM (
    SELECT key, id, state, queue, effect, attempts, last_error, enqueued_at_ms AS age_from_ms
    FROM {schema}.fencepost_jobs
    UNION ALL
    SELECT key, id, 'dead', queue, effect, attempts, last_error, died_at_ms FROM {schema}.fencepost_dead
) AS job
WHERE key > %(after)s::bigint AND state = ANY(%(states)s::text[])
    AND (%(queue)s::text IS NULL OR queue = %(queue)s) AND (%(effect)s::text IS NULL OR effect = %(effect)s)
    AND (%(error)s::text IS NULL OR strpos(last_error, %(error)s) > 0)
    AND (%(min_attempts)s::bigint IS NULL OR attempts >= %(min_attempts)s::bigint)
    AND (%(max_attempts)s::bigint IS NULL OR attempts <= %(max_attempts)s::bigint)
    AND (%(since_ms)s::bigint IS NULL OR age_from_ms >= %(since_ms)s::bigint)
    AND (%(until_ms)s::bigint IS NULL OR age_from_ms <= %(until_ms)s::bigint)
ORDER BY key LIMIT %(limit)s

-- name: queue_counts
SELECT
    queue,
    count(*) FILTER (WHERE state = 'queued' AND (run_at_ms IS NULL OR run_at_ms <= %(now_ms)s::bigint)),
    count(*) FILTER (WHERE state = 'queued' AND run_at_ms > %(now_ms)s::bigint),
    count(*) FILTER (WHERE state = 'running'),
    count(*) FILTER (WHERE state = 'completed'),
    count(*) FILTER (WHERE state = 'held'),
    min(coalesce(run_at_ms, enqueued_at_ms))
        FILTER (WHERE state = 'queued' AND (run_at_ms IS NULL OR run_at_ms <= %(now_ms)s::bigint)),
    count(*) FILTER (WHERE state = 'completed' AND completed_at_ms >= %(since_ms)s::bigint),
    0,
    0
FROM {schema}.fencepost_jobs
GROUP BY queue
UNION ALL
SELECT
    queue, 0, 0, 0, 0, 0, NULL, 0, count(*), count(*) FILTER (WHERE died_at_ms >= %(since_ms)s::bigint)
FROM {schema}.fencepost_dead
GROUP BY queue

-- name: latest_deaths
SELECT
    id, 'dead', version, 0::bigint, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM {schema}.fencepost_dead ORDER BY died_at_ms DESC, key LIMIT %(limit)s

-- name: counts
SELECT state, count(*) FROM {schema}.fencepost_jobs
WHERE %(queue)s::text IS NULL OR queue = %(queue)s GROUP BY state
UNION ALL
SELECT 'dead', count(*) FROM {schema}.fencepost_dead
WHERE %(queue)s::text IS NULL OR queue = %(queue)s

-- name: next_due
SELECT due_ms FROM {schema}.fencepost_next_due(%(queues)s::text[], %(effects)s::text[])

-- name: audit
SELECT at_ms, action, id, actor, reason, from_state, to_state, version FROM (
    SELECT * FROM {schema}.fencepost_audit ORDER BY number DESC LIMIT %(limit)s
) AS latest ORDER BY number

-- name: audit_of
SELECT at_ms, action, id, actor, reason, from_state, to_state, version FROM (
    SELECT * FROM {schema}.fencepost_audit WHERE id = %(id)s ORDER BY number DESC LIMIT %(limit)s
) AS latest ORDER BY number

-- == pauses and schedules ==

-- name: pause
INSERT INTO {schema}.fencepost_paused AS paused (queue) VALUES (%s)
ON CONFLICT (queue) DO UPDATE SET resuming = false WHERE paused.resuming

-- name: resume
UPDATE {schema}.fencepost_paused SET resuming = true WHERE queue = %s AND NOT resuming

-- name: lock_schedules
-- Who changes schedules waits here for ticks and for others who do, before any row is locked.
LOCK TABLE {schema}.fencepost_schedules IN EXCLUSIVE MODE

-- name: put_schedule
INSERT INTO {schema}.fencepost_schedules (
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
) VALUES (
    %(name)s, %(every)s, %(text)b, %(queue)s, %(effect)s, %(priority)s, %(expires_ms)s,
    %(visibility_timeout_ms)s, %(max_attempts)s, %(backoff_base_ms)s, %(dead_letter_retention_ms)s,
    %(next_ms)s, %(zone)s, %(missed)s, %(overlap)s, %(paused)s, %(owner)s, %(since_ms)s, %(tz_version)s, %(last_id)s
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
DELETE FROM {schema}.fencepost_schedules WHERE name = %s

-- name: schedule
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM {schema}.fencepost_schedules WHERE name = %s

-- name: schedules
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM {schema}.fencepost_schedules ORDER BY name

-- name: due_schedules
-- What has passed; and what a clock that was ahead, or an older tz database, may have put in the wrong place.
-- Another ticker waits here, and then sees what this one has advanced.
SELECT
    name, every, text, queue, effect, priority, expires_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    next_ms, zone, missed, overlap, paused, owner, since_ms, tz_version, last_id
FROM {schema}.fencepost_schedules
WHERE NOT paused AND (next_ms <= %(now_ms)s::bigint OR since_ms > %(now_ms)s::bigint OR tz_version < %(tz_version)s::text)
ORDER BY name FOR UPDATE

-- name: known_ids
-- The ids of these that are bound, and whether the job of each is unfinished.
SELECT
    input.id,
    EXISTS (SELECT FROM {schema}.fencepost_jobs AS job WHERE job.id = input.id AND job.state <> 'completed')
FROM {schema}.fencepost_inputs AS input WHERE id = ANY(%(ids)s::text[])

-- name: advance_schedules
UPDATE {schema}.fencepost_schedules AS schedule SET
    next_ms = item.next_ms, since_ms = item.since_ms, tz_version = item.tz_version, last_id = item.last_id
FROM jsonb_to_recordset(%(schedules)s::jsonb) AS item (
    name text, next_ms bigint, since_ms bigint, tz_version text, last_id text
)
WHERE schedule.name = item.name

-- == moving a whole ledger ==

-- name: stop_work
-- Waits until every transaction that writes has ended; those that come find the seal.
LOCK TABLE {schema}.fencepost_meta IN ACCESS EXCLUSIVE MODE

-- name: live_leases
SELECT id FROM {schema}.fencepost_jobs WHERE state = 'running' AND lease_until_ms > %s LIMIT 1

-- name: seal
UPDATE {schema}.fencepost_meta SET sealed_for = %s

-- name: set_copying
UPDATE {schema}.fencepost_meta SET copying_from = %s

-- name: anything
-- A name of something that the ledger holds; every job and every purged id has an input.
SELECT id FROM {schema}.fencepost_inputs
UNION ALL
SELECT id FROM {schema}.fencepost_effects
UNION ALL
SELECT name FROM {schema}.fencepost_schedules
LIMIT 1

-- name: others
-- The ids that have no job: inputs that wait for one, purged ids, receipts of neither.
SELECT id FROM (
    (
        SELECT id FROM {schema}.fencepost_inputs AS other
        WHERE id > %(after)s
            AND NOT EXISTS (SELECT FROM {schema}.fencepost_jobs AS job WHERE job.id = other.id)
            AND NOT EXISTS (SELECT FROM {schema}.fencepost_dead AS dead WHERE dead.id = other.id)
        ORDER BY id LIMIT %(limit)s
    )
    UNION
    (
        SELECT id FROM {schema}.fencepost_purged WHERE id > %(after)s ORDER BY id LIMIT %(limit)s
    )
    UNION
    (
        SELECT id FROM {schema}.fencepost_effects AS other
        WHERE id > %(after)s
            AND NOT EXISTS (SELECT FROM {schema}.fencepost_jobs AS job WHERE job.id = other.id)
            AND NOT EXISTS (SELECT FROM {schema}.fencepost_dead AS dead WHERE dead.id = other.id)
        ORDER BY id LIMIT %(limit)s
    )
) AS found
ORDER BY id LIMIT %(limit)s

-- name: purged_of
SELECT id, version FROM {schema}.fencepost_purged WHERE id = ANY(%(ids)s::text[])

-- name: next_key
SELECT nextval('{schema}.fencepost_requests')

-- name: import_jobs
INSERT INTO {schema}.fencepost_jobs (
    key, id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms, waiting
)
SELECT
    %(key)s::bigint + place, id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms,
    expires_at_ms, enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms,
    last_error, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms,
    (state = 'queued' AND run_at_ms IS NOT NULL)::int
FROM unnest(
    %(place)s::bigint[], %(id)s::text[], %(state)s::text[], %(version)s::bigint[], %(lease_until_ms)s::bigint[],
    %(attempts)s::bigint[], %(queue)s::text[], %(effect)s::text[], %(priority)s::integer[],
    %(run_at_ms)s::bigint[], %(expires_at_ms)s::bigint[], %(enqueued_at_ms)s::bigint[], %(claimant)s::text[],
    %(claimed_at_ms)s::bigint[], %(first_claimed_at_ms)s::bigint[], %(started_at_ms)s::bigint[],
    %(completed_at_ms)s::bigint[], %(last_error)s::text[], %(visibility_timeout_ms)s::bigint[],
    %(max_attempts)s::bigint[], %(backoff_base_ms)s::bigint[], %(dead_letter_retention_ms)s::bigint[]
) AS record (
    place, id, state, version, lease_until_ms, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)

-- name: import_dead
INSERT INTO {schema}.fencepost_dead (
    key, id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms, claimant,
    claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error, died_at_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)
SELECT
    %(key)s::bigint + place, id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms,
    enqueued_at_ms, claimant, claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error,
    died_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
FROM unnest(
    %(place)s::bigint[], %(id)s::text[], %(version)s::bigint[], %(attempts)s::bigint[], %(queue)s::text[],
    %(effect)s::text[], %(priority)s::integer[], %(run_at_ms)s::bigint[], %(expires_at_ms)s::bigint[],
    %(enqueued_at_ms)s::bigint[], %(claimant)s::text[], %(claimed_at_ms)s::bigint[],
    %(first_claimed_at_ms)s::bigint[], %(started_at_ms)s::bigint[], %(completed_at_ms)s::bigint[],
    %(last_error)s::text[], %(died_at_ms)s::bigint[], %(visibility_timeout_ms)s::bigint[],
    %(max_attempts)s::bigint[], %(backoff_base_ms)s::bigint[], %(dead_letter_retention_ms)s::bigint[]
) AS record (
    place, id, version, attempts, queue, effect, priority, run_at_ms, expires_at_ms, enqueued_at_ms, claimant,
    claimed_at_ms, first_claimed_at_ms, started_at_ms, completed_at_ms, last_error, died_at_ms,
    visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
)

-- name: import_purged
INSERT INTO {schema}.fencepost_purged (id, version)
SELECT id, version FROM unnest(%(ids)s::text[], %(versions)s::bigint[]) AS record (id, version)
