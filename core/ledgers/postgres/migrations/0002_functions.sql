-- What workers ask all day, as functions: PL/pgSQL keeps the plan of each statement in the session, and a session that
-- has forgotten it, behind a pooler, makes it anew. To plan these statements takes three times as long as to run them
-- for ten jobs. (Prepared statements would be lost with the session, or worse, be another client's of the same name.)
-- A statement that is to change gets a new function in a new migration: programs of before go on with the one here.

-- The lanes that a claim serves: those of the queues and effects that it names, or where it does not name both,
-- those that have queued or running jobs. Of each: whether its queue is paused, whether any delayed job is due, and
-- whether there is anything to settle: expired, lapsed, used up by the worker's limit or by the job's own.
-- Not by EXISTS, for which the planner makes two plans each.
CREATE FUNCTION {schema}.fencepost_survey(
    asked_queues text[],
    asked_effects text[],
    asked_now_ms bigint,
    asked_max_attempts bigint
)
RETURNS TABLE (
    queue text, effect text, paused boolean, due boolean, passed boolean
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH instant (now_ms) AS (
        SELECT coalesce(asked_now_ms, floor(extract(epoch FROM now()) * 1000)::bigint)
    )
    SELECT
        lane.queue::text,
        lane.effect::text,
        lane.queue IN (SELECT queue FROM {schema}.fencepost_paused),
        (
            SELECT true FROM {schema}.fencepost_jobs AS job
            WHERE job.queue = lane.queue AND job.effect = lane.effect
                AND job.state = 'queued' AND job.waiting AND job.run_at_ms <= (SELECT now_ms FROM instant)
            LIMIT 1
        ),
        coalesce(
            (
                SELECT true FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.expires_at_ms IS NOT NULL AND job.state IN ('queued', 'running')
                    AND job.expires_at_ms <= (SELECT now_ms FROM instant)
                LIMIT 1
            ),
            (
                SELECT true FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.state = 'running' AND job.lease_until_ms <= (SELECT now_ms FROM instant)
                LIMIT 1
            ),
            (
                SELECT true FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.state = 'queued' AND job.attempts > 0 AND job.max_attempts IS NULL
                    AND job.attempts >= asked_max_attempts
                LIMIT 1
            ),
            (
                SELECT true FROM {schema}.fencepost_jobs AS job
                WHERE job.queue = lane.queue AND job.effect = lane.effect
                    AND job.state = 'queued' AND job.attempts >= job.max_attempts
                LIMIT 1
            )
        )
    FROM (
        SELECT queue, effect FROM unnest(asked_queues) AS queue CROSS JOIN unnest(asked_effects) AS effect
        UNION ALL
        SELECT queue, effect FROM {schema}.fencepost_lanes
        WHERE (asked_queues IS NULL OR asked_effects IS NULL)
            AND (asked_queues IS NULL OR queue = ANY(asked_queues))
            AND (asked_effects IS NULL OR effect = ANY(asked_effects))
    ) AS lane;
END
$$;

-- The first jobs of each lane, as many as its share, but for those that others are picking. RETURNING promises
-- no order: the caller sorts. What the caller knows of a claimed job is not returned.
CREATE FUNCTION {schema}.fencepost_pick(
    asked_queues text[],
    asked_effects text[],
    asked_shares bigint[],
    asked_now_ms bigint,
    asked_max_attempts bigint,
    asked_lease_ms bigint,
    asked_claimant text
)
RETURNS TABLE (
    key bigint, id text, version bigint, lease_until_ms bigint, attempts bigint, queue text, effect text, priority integer,
    run_at_ms bigint, expires_at_ms bigint, enqueued_at_ms bigint, first_claimed_at_ms bigint, started_at_ms bigint,
    last_error text, visibility_timeout_ms bigint, max_attempts bigint, backoff_base_ms bigint,
    dead_letter_retention_ms bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
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
    WHERE ctid = ANY(ARRAY(
        SELECT job.ctid
        FROM unnest(asked_queues, asked_effects, asked_shares) AS lane (queue, effect, share)
        CROSS JOIN LATERAL (
            SELECT ctid FROM {schema}.fencepost_jobs
            WHERE queue = lane.queue AND effect = lane.effect
                AND state = 'queued' AND NOT waiting
                AND (run_at_ms IS NULL OR run_at_ms <= asked_now_ms)
                AND attempts < coalesce(max_attempts, asked_max_attempts)
            ORDER BY priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
            LIMIT lane.share
            FOR UPDATE SKIP LOCKED
        ) AS job
    ))
    RETURNING
        key, id::text, version::bigint, lease_until_ms::bigint, attempts::bigint, queue::text, effect::text, priority,
        run_at_ms::bigint, expires_at_ms::bigint, enqueued_at_ms::bigint, first_claimed_at_ms::bigint,
        started_at_ms::bigint, last_error, visibility_timeout_ms::bigint, max_attempts::bigint, backoff_base_ms::bigint,
        dead_letter_retention_ms::bigint;
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
