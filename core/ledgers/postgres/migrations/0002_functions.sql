-- What workers ask all day, as functions: PL/pgSQL keeps the plan of each statement in the session, and a session that
-- has forgotten it, behind a pooler, makes it anew. To plan these statements takes three times as long as to run them
-- for ten jobs. (Prepared statements would be lost with the session, or worse, be another client's of the same name.)
-- A statement that is to change gets a new function in a new migration: programs of before go on with the one here.

-- The lanes of a claim: which part of each index on its path it reads. A lane is a queue and an effect where the
-- queues are named, and an effect (its queue is NULL) where all queues are served. Effects that are not named are those
-- that a claim may find something of, by one step for each in each index.
CREATE FUNCTION {schema}.fencepost_lanes(
    asked_queues text[],
    asked_effects text[]
)
RETURNS TABLE (
    queue text, effect text
)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    IF asked_effects IS NOT NULL AND asked_queues IS NOT NULL THEN
        RETURN QUERY
        SELECT queue, effect FROM unnest(asked_queues) AS queue CROSS JOIN unnest(asked_effects) AS effect;
    ELSIF asked_effects IS NOT NULL THEN
        RETURN QUERY SELECT NULL::text, effect FROM unnest(asked_effects) AS effect;
    ELSIF asked_queues IS NOT NULL THEN
        RETURN QUERY
        WITH RECURSIVE lane (queue, effect) AS (
            SELECT named::text COLLATE "C", ''::text COLLATE "C" FROM unnest(asked_queues) AS named
            UNION ALL
            SELECT lane.queue, next.effect
            FROM lane CROSS JOIN LATERAL (
                SELECT found.effect FROM (
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.waiting = 0
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                UNION ALL
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.waiting = 1
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                UNION ALL
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.waiting = 2
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                UNION ALL
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'running'
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                UNION ALL
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                UNION ALL
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.attempts > 0 AND job.max_attempts IS NULL
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                UNION ALL
                (
                    SELECT job.effect::text COLLATE "C" AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.attempts >= job.max_attempts
                        AND job.queue = lane.queue AND job.effect > lane.effect
                    ORDER BY job.effect LIMIT 1
                )
                ) AS found
                ORDER BY found.effect LIMIT 1
            ) AS next
        )
        SELECT queue, effect FROM lane WHERE effect <> '';
    ELSE
        RETURN QUERY
        WITH RECURSIVE lane (queue, effect) AS (
            SELECT NULL::text COLLATE "C", ''::text COLLATE "C"
            UNION ALL
            SELECT lane.queue, next.effect
            FROM lane CROSS JOIN LATERAL (
                SELECT found.effect FROM (
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.waiting = 0
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                UNION ALL
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.waiting = 1
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                UNION ALL
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.waiting = 2
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                UNION ALL
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'running'
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                UNION ALL
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                UNION ALL
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.attempts > 0 AND job.max_attempts IS NULL
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                UNION ALL
                (
                    SELECT coalesce(job.effect, '') AS effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.state = 'queued' AND job.attempts >= job.max_attempts
                        AND coalesce(job.effect, '') > lane.effect
                    ORDER BY coalesce(job.effect, '') LIMIT 1
                )
                ) AS found
                ORDER BY found.effect LIMIT 1
            ) AS next
        )
        SELECT queue, effect FROM lane WHERE effect <> '';
    END IF;
END
$$;

-- The lanes that a claim serves. Of each: whether its queue is paused, or any is where all are served; whether such a
-- claim would meet a job of a paused queue, ready or the next to become so; whether jobs that were passed over are to be
-- returned; whether any delayed job is due; and whether there is anything to reap:
-- expired, lapsed, used up by the worker's limit or by the job's own.
-- Not by EXISTS, for which the planner makes two plans each. The orders are those of the indexes to walk along: without
-- them an empty table, where all walks cost the same, could have a plan made that is kept when the table is large.
CREATE FUNCTION {schema}.fencepost_survey(
    asked_queues text[],
    asked_effects text[],
    asked_now_ms bigint,
    asked_max_attempts bigint,
    asked_limit bigint
)
RETURNS TABLE (
    queue text, effect text, paused boolean, ahead boolean, resuming boolean, due boolean, passed boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF asked_queues IS NULL THEN
        RETURN QUERY
        WITH instant (now_ms) AS (
            SELECT coalesce(asked_now_ms, floor(extract(epoch FROM now()) * 1000)::bigint)
        )
        SELECT
            lane.queue,
            lane.effect,
            EXISTS (SELECT FROM {schema}.fencepost_paused),
            CASE WHEN EXISTS (SELECT FROM {schema}.fencepost_paused) THEN EXISTS (
                SELECT FROM (
                    (
                        SELECT job.queue FROM {schema}.fencepost_jobs AS job
                        WHERE coalesce(job.effect, '') = lane.effect AND job.state = 'queued' AND job.waiting = 0
                        ORDER BY job.priority DESC, coalesce(job.run_at_ms, job.enqueued_at_ms, 0), job.key
                        LIMIT asked_limit
                    )
                    UNION ALL
                    (
                        SELECT job.queue FROM {schema}.fencepost_jobs AS job
                        WHERE coalesce(job.effect, '') = lane.effect AND job.state = 'queued' AND job.waiting = 1
                        ORDER BY job.run_at_ms LIMIT 1
                    )
                ) AS first
                JOIN {schema}.fencepost_paused AS paused ON paused.queue = first.queue AND NOT paused.resuming
            ) END,
            EXISTS (SELECT FROM {schema}.fencepost_paused WHERE resuming),
            (
                SELECT true FROM {schema}.fencepost_jobs AS job
                WHERE coalesce(job.effect, '') = lane.effect
                    AND job.state = 'queued' AND job.waiting = 1 AND job.run_at_ms <= (SELECT now_ms FROM instant)
                ORDER BY job.run_at_ms LIMIT 1
            ),
            coalesce(
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE coalesce(job.effect, '') = lane.effect
                        AND job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                        AND job.expires_at_ms <= (SELECT now_ms FROM instant)
                    ORDER BY job.expires_at_ms LIMIT 1
                ),
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE coalesce(job.effect, '') = lane.effect
                        AND job.state = 'running' AND job.lease_until_ms <= (SELECT now_ms FROM instant)
                    ORDER BY job.lease_until_ms LIMIT 1
                ),
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE coalesce(job.effect, '') = lane.effect
                        AND job.state = 'queued' AND job.attempts > 0 AND job.max_attempts IS NULL
                        AND job.attempts >= asked_max_attempts
                    ORDER BY job.attempts LIMIT 1
                ),
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE coalesce(job.effect, '') = lane.effect
                        AND job.state = 'queued' AND job.attempts >= job.max_attempts
                    ORDER BY job.key LIMIT 1
                )
            )
        FROM {schema}.fencepost_lanes(asked_queues, asked_effects) AS lane;
    ELSE
        RETURN QUERY
        WITH instant (now_ms) AS (
            SELECT coalesce(asked_now_ms, floor(extract(epoch FROM now()) * 1000)::bigint)
        )
        SELECT
            lane.queue,
            lane.effect,
            lane.queue IN (SELECT queue FROM {schema}.fencepost_paused WHERE NOT resuming),
            false,
            lane.queue IN (SELECT queue FROM {schema}.fencepost_paused WHERE resuming),
            (
                SELECT true FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.state = 'queued' AND job.waiting = 1 AND job.run_at_ms <= (SELECT now_ms FROM instant)
                ORDER BY job.run_at_ms LIMIT 1
            ),
            coalesce(
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE job.queue = lane.queue AND job.effect = lane.effect
                        AND job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                        AND job.expires_at_ms <= (SELECT now_ms FROM instant)
                    ORDER BY job.expires_at_ms LIMIT 1
                ),
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE job.queue = lane.queue AND job.effect = lane.effect
                        AND job.state = 'running' AND job.lease_until_ms <= (SELECT now_ms FROM instant)
                    ORDER BY job.lease_until_ms LIMIT 1
                ),
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE job.queue = lane.queue AND job.effect = lane.effect
                        AND job.state = 'queued' AND job.attempts > 0 AND job.max_attempts IS NULL
                        AND job.attempts >= asked_max_attempts
                    ORDER BY job.attempts LIMIT 1
                ),
                (
                    SELECT true FROM {schema}.fencepost_jobs AS job
                    WHERE job.queue = lane.queue AND job.effect = lane.effect
                        AND job.state = 'queued' AND job.attempts >= job.max_attempts
                    ORDER BY job.key LIMIT 1
                )
            )
        FROM {schema}.fencepost_lanes(asked_queues, asked_effects) AS lane;
    END IF;
END
$$;

-- The first jobs of each lane, as many as its share, but for those that others are picking, and for those of paused
-- queues where all are served. RETURNING promises no order: the caller sorts. What the caller knows of a claimed job is
-- not returned, and what few jobs have comes as one array, NULL where there is none of it: every column costs a tenth of
-- a microsecond on either side.
CREATE FUNCTION {schema}.fencepost_pick(
    asked_queues text[],
    asked_effects text[],
    asked_shares bigint[],
    asked_any_paused boolean,
    asked_now_ms bigint,
    asked_max_attempts bigint,
    asked_lease_ms bigint,
    asked_claimant text
)
RETURNS TABLE (
    key bigint, id text, version bigint, lease_until_ms bigint, attempts bigint, queue text, effect text, priority integer,
    enqueued_at_ms bigint, first_claimed_at_ms bigint, rest text
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF asked_queues IS NULL THEN
        RETURN QUERY
        UPDATE {schema}.fencepost_jobs
        SET
            state = 'running',
            version = version + 1,
            attempts = attempts + 1,
            lease_until_ms = asked_now_ms + coalesce(visibility_timeout_ms, asked_lease_ms),
            claimant = asked_claimant,
            claimed_at_ms = asked_now_ms,
            first_claimed_at_ms = coalesce(first_claimed_at_ms, asked_now_ms)
        WHERE id = ANY(ARRAY(
            SELECT picked.id
            FROM unnest(asked_queues, asked_effects, asked_shares) AS lane (queue, effect, share)
            CROSS JOIN LATERAL (
                SELECT job.id::text FROM {schema}.fencepost_jobs AS job
                WHERE coalesce(job.effect, '') = lane.effect
                    AND job.state = 'queued' AND job.waiting = 0
                    AND (job.run_at_ms IS NULL OR job.run_at_ms <= asked_now_ms)
                    AND job.attempts < coalesce(job.max_attempts, asked_max_attempts)
                    AND NOT (asked_any_paused AND EXISTS (
                        SELECT FROM {schema}.fencepost_paused AS paused
                        WHERE paused.queue = job.queue AND NOT paused.resuming
                    ))
                ORDER BY job.priority DESC, coalesce(job.run_at_ms, job.enqueued_at_ms, 0), job.key
                LIMIT lane.share
                FOR UPDATE SKIP LOCKED
            ) AS picked
        ))
        RETURNING
            key, id::text, version::bigint, lease_until_ms::bigint, attempts::bigint, queue::text, effect::text, priority,
            enqueued_at_ms::bigint, first_claimed_at_ms::bigint,
            CASE WHEN last_error IS NOT NULL OR coalesce(
                run_at_ms, expires_at_ms, started_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms,
                dead_letter_retention_ms
            ) IS NOT NULL THEN json_build_array(
                run_at_ms, expires_at_ms, started_at_ms, last_error, visibility_timeout_ms, max_attempts, backoff_base_ms,
                dead_letter_retention_ms
            )::text END;
    ELSE
        RETURN QUERY
        UPDATE {schema}.fencepost_jobs
        SET
            state = 'running',
            version = version + 1,
            attempts = attempts + 1,
            lease_until_ms = asked_now_ms + coalesce(visibility_timeout_ms, asked_lease_ms),
            claimant = asked_claimant,
            claimed_at_ms = asked_now_ms,
            first_claimed_at_ms = coalesce(first_claimed_at_ms, asked_now_ms)
        WHERE id = ANY(ARRAY(
            SELECT picked.id
            FROM unnest(asked_queues, asked_effects, asked_shares) AS lane (queue, effect, share)
            CROSS JOIN LATERAL (
                SELECT job.id::text FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.state = 'queued' AND job.waiting = 0
                    AND (job.run_at_ms IS NULL OR job.run_at_ms <= asked_now_ms)
                    AND job.attempts < coalesce(job.max_attempts, asked_max_attempts)
                ORDER BY job.priority DESC, coalesce(job.run_at_ms, job.enqueued_at_ms, 0), job.key
                LIMIT lane.share
                FOR UPDATE SKIP LOCKED
            ) AS picked
        ))
        RETURNING
            key, id::text, version::bigint, lease_until_ms::bigint, attempts::bigint, queue::text, effect::text, priority,
            enqueued_at_ms::bigint, first_claimed_at_ms::bigint,
            CASE WHEN last_error IS NOT NULL OR coalesce(
                run_at_ms, expires_at_ms, started_at_ms, visibility_timeout_ms, max_attempts, backoff_base_ms,
                dead_letter_retention_ms
            ) IS NOT NULL THEN json_build_array(
                run_at_ms, expires_at_ms, started_at_ms, last_error, visibility_timeout_ms, max_attempts, backoff_base_ms,
                dead_letter_retention_ms
            )::text END;
    END IF;
END
$$;

-- A batch of ids that are all different. Nothing is completed where a receipt was there already, because it has to
-- be compared first. Where not all were completed, it is told which were published and which completed.
-- Receipts go in the order of ids: see add_inputs. Only running jobs have a lease, so the state is not asked for:
-- its partial index would tempt the planner. An array of a domain's values is not read as a list: hence ::text.
CREATE FUNCTION {schema}.fencepost_settle(
    asked_ids text[],
    asked_versions bigint[],
    asked_receipts bytea[],
    asked_count bigint,
    asked_now_ms bigint
)
RETURNS TABLE (
    short boolean, published text[], completed text[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH item AS MATERIALIZED (
        SELECT id, version, receipt
        FROM unnest(asked_ids, asked_versions, asked_receipts) AS settled (id, version, receipt)
    ),
    published AS (
        INSERT INTO {schema}.fencepost_effects (id, receipt)
        SELECT id, receipt FROM item ORDER BY id COLLATE "C"
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    ),
    completed AS (
        UPDATE {schema}.fencepost_jobs AS job
        SET
            state = 'completed',
            lease_until_ms = 0,
            completed_at_ms = coalesce(asked_now_ms, floor(extract(epoch FROM now()) * 1000)::bigint)
        FROM item
        WHERE job.id = item.id AND job.version = item.version
            AND job.lease_until_ms > coalesce(asked_now_ms, floor(extract(epoch FROM now()) * 1000)::bigint)
            AND (SELECT count(*) FROM published) = asked_count
        RETURNING job.id
    ),
    told AS (
        SELECT (SELECT count(*) FROM completed) < asked_count AS short
    )
    SELECT
        short,
        CASE WHEN short THEN (SELECT array_agg(id::text) FROM published) END,
        CASE WHEN short THEN (SELECT array_agg(id::text) FROM completed) END
    FROM told;
END
$$;

-- How many were bound, and where not all were, which; the request's first key; whether any has a dead job.
-- In the order of ids, so that two requests with the same ids wait for one another and never both.
CREATE FUNCTION {schema}.fencepost_add_inputs(
    asked_ids text[],
    asked_texts bytea[]
)
RETURNS TABLE (
    new bigint, bound text[], key bigint, any_dead boolean
)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH bound AS (
        INSERT INTO {schema}.fencepost_inputs (id, text)
        SELECT id, text FROM unnest(asked_ids, asked_texts) AS record (id, text)
        ORDER BY id COLLATE "C"
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    )
    SELECT
        count(*),
        CASE WHEN count(*) < cardinality(asked_ids) THEN coalesce(array_agg(id), '{}') END,
        nextval('{schema}.fencepost_requests'),
        EXISTS (
            SELECT FROM {schema}.fencepost_dead
            WHERE EXISTS (SELECT FROM {schema}.fencepost_dead) AND id = ANY(asked_ids)
        )
    FROM bound;
END
$$;

CREATE FUNCTION {schema}.fencepost_read_inputs(
    asked_ids text[]
)
RETURNS TABLE (
    id text, input bytea
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT id, text FROM {schema}.fencepost_inputs WHERE id = ANY(asked_ids);
END
$$;

CREATE FUNCTION {schema}.fencepost_read_receipts(
    asked_ids text[]
)
RETURNS TABLE (
    id text, receipt bytea
)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT id, receipt FROM {schema}.fencepost_effects WHERE id = ANY(asked_ids);
END
$$;

-- Of the ready jobs a thousand a lane are looked at: one that is ready now is among them if there is any.
CREATE FUNCTION {schema}.fencepost_next_due(
    asked_queues text[],
    asked_effects text[]
)
RETURNS TABLE (
    due_ms bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF asked_queues IS NULL THEN
        RETURN QUERY
        SELECT min(due.due_ms)::bigint
        FROM {schema}.fencepost_lanes(asked_queues, asked_effects) AS lane
        CROSS JOIN LATERAL (
            SELECT min(ready.due_ms) AS due_ms FROM (
                SELECT coalesce(job.run_at_ms, 0) AS due_ms FROM {schema}.fencepost_jobs AS job
                WHERE coalesce(job.effect, '') = lane.effect AND job.state = 'queued' AND job.waiting = 0
                    AND NOT EXISTS (SELECT FROM {schema}.fencepost_paused AS paused WHERE paused.queue = job.queue AND NOT paused.resuming)
                ORDER BY job.priority DESC, coalesce(job.run_at_ms, job.enqueued_at_ms, 0), job.key LIMIT 1000
            ) AS ready
            UNION ALL
            (
                SELECT job.run_at_ms FROM {schema}.fencepost_jobs AS job
                WHERE coalesce(job.effect, '') = lane.effect AND job.state = 'queued' AND job.waiting = 1
                    AND NOT EXISTS (SELECT FROM {schema}.fencepost_paused AS paused WHERE paused.queue = job.queue AND NOT paused.resuming)
                ORDER BY job.run_at_ms LIMIT 1
            )
            UNION ALL
            (
                SELECT min(coalesce(job.run_at_ms, 0))
                FROM {schema}.fencepost_paused AS resumed
                CROSS JOIN LATERAL (
                    SELECT job.run_at_ms, job.effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.queue = resumed.queue AND job.state = 'queued' AND job.waiting = 2
                    ORDER BY job.effect
                ) AS job
                WHERE resumed.resuming AND job.effect = lane.effect
            )
            UNION ALL
            (
                SELECT job.lease_until_ms FROM {schema}.fencepost_jobs AS job
                WHERE coalesce(job.effect, '') = lane.effect AND job.state = 'running'
                ORDER BY job.lease_until_ms LIMIT 1
            )
            UNION ALL
            (
                SELECT job.expires_at_ms FROM {schema}.fencepost_jobs AS job
                WHERE coalesce(job.effect, '') = lane.effect
                    AND job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                ORDER BY job.expires_at_ms LIMIT 1
            )
        ) AS due;
    ELSE
        RETURN QUERY
        SELECT min(due.due_ms)::bigint
        FROM {schema}.fencepost_lanes(asked_queues, asked_effects) AS lane
        CROSS JOIN LATERAL (
            SELECT min(ready.due_ms) AS due_ms FROM (
                SELECT coalesce(job.run_at_ms, 0) AS due_ms FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect AND job.state = 'queued' AND job.waiting = 0
                    AND NOT EXISTS (SELECT FROM {schema}.fencepost_paused AS paused WHERE paused.queue = lane.queue AND NOT paused.resuming)
                ORDER BY job.priority DESC, coalesce(job.run_at_ms, job.enqueued_at_ms, 0), job.key LIMIT 1000
            ) AS ready
            UNION ALL
            (
                SELECT job.run_at_ms FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect AND job.state = 'queued' AND job.waiting = 1
                    AND NOT EXISTS (SELECT FROM {schema}.fencepost_paused AS paused WHERE paused.queue = lane.queue AND NOT paused.resuming)
                ORDER BY job.run_at_ms LIMIT 1
            )
            UNION ALL
            (
                SELECT min(coalesce(job.run_at_ms, 0))
                FROM {schema}.fencepost_paused AS resumed
                CROSS JOIN LATERAL (
                    SELECT job.run_at_ms, job.effect FROM {schema}.fencepost_jobs AS job
                    WHERE job.queue = resumed.queue AND job.state = 'queued' AND job.waiting = 2
                    ORDER BY job.effect
                ) AS job
                WHERE resumed.resuming AND job.effect = lane.effect AND resumed.queue = lane.queue
            )
            UNION ALL
            (
                SELECT job.lease_until_ms FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect AND job.state = 'running'
                ORDER BY job.lease_until_ms LIMIT 1
            )
            UNION ALL
            (
                SELECT job.expires_at_ms FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                ORDER BY job.expires_at_ms LIMIT 1
            )
        ) AS due;
    END IF;
END
$$;

-- How many were added: ids that are known are passed over.
CREATE FUNCTION {schema}.fencepost_add_jobs(
    asked_key bigint,
    asked_now_ms bigint,
    asked_places bigint[],
    asked_ids text[],
    asked_queue text[],
    asked_effect text[],
    asked_priority integer[],
    asked_run_at_ms bigint[],
    asked_expires_at_ms bigint[],
    asked_visibility_timeout_ms bigint[],
    asked_max_attempts bigint[],
    asked_backoff_base_ms bigint[],
    asked_dead_letter_retention_ms bigint[]
)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    added bigint;
BEGIN
    INSERT INTO {schema}.fencepost_jobs (
        key, id, version, queue, effect, priority, run_at_ms, waiting, expires_at_ms, enqueued_at_ms,
        visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
    )
    SELECT
        asked_key + place, id, 0, queue, effect, priority, run_at_ms, (run_at_ms IS NOT NULL)::int, expires_at_ms,
        asked_now_ms, visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
    FROM unnest(
        asked_places, asked_ids, asked_queue, asked_effect, asked_priority,
        asked_run_at_ms, asked_expires_at_ms, asked_visibility_timeout_ms,
        asked_max_attempts, asked_backoff_base_ms, asked_dead_letter_retention_ms
    ) AS record (
        place, id, queue, effect, priority, run_at_ms, expires_at_ms, visibility_timeout_ms, max_attempts,
        backoff_base_ms, dead_letter_retention_ms
    )
    ON CONFLICT (id) DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END
$$;

-- Jobs that differ only in their ids.
CREATE FUNCTION {schema}.fencepost_add_jobs_alike(
    asked_key bigint,
    asked_queue text,
    asked_effect text,
    asked_priority integer,
    asked_run_at_ms bigint,
    asked_expires_at_ms bigint,
    asked_now_ms bigint,
    asked_visibility_timeout_ms bigint,
    asked_max_attempts bigint,
    asked_backoff_base_ms bigint,
    asked_dead_letter_retention_ms bigint,
    asked_ids text[]
)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    added bigint;
BEGIN
    INSERT INTO {schema}.fencepost_jobs (
        key, id, version, queue, effect, priority, run_at_ms, waiting, expires_at_ms, enqueued_at_ms,
        visibility_timeout_ms, max_attempts, backoff_base_ms, dead_letter_retention_ms
    )
    SELECT
        asked_key + place, id, 0, asked_queue, asked_effect, asked_priority, asked_run_at_ms,
        (asked_run_at_ms IS NOT NULL)::int, asked_expires_at_ms, asked_now_ms,
        asked_visibility_timeout_ms, asked_max_attempts, asked_backoff_base_ms,
        asked_dead_letter_retention_ms
    FROM unnest(asked_ids) WITH ORDINALITY AS record (id, place)
    ON CONFLICT (id) DO NOTHING;
    GET DIAGNOSTICS added = ROW_COUNT;
    RETURN added;
END
$$;
