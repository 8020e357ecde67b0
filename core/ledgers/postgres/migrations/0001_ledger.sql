-- Texts are bytea: PostgreSQL's text carries no NUL. Names compare as bytes (COLLATE "C"), which is their order
-- everywhere in Fencepost.

-- Domains, because a CHECK of a table is asked again of every column at every update, which makes a claim and its
-- completion a quarter slower; a domain is asked of what is assigned.
CREATE DOMAIN {schema}.fencepost_name AS text COLLATE "C" CHECK (value ~ '^[a-z][a-z0-9-]{0,63}$');
CREATE DOMAIN {schema}.fencepost_count AS bigint CHECK (value >= 0);
CREATE DOMAIN {schema}.fencepost_ms AS bigint CHECK (value >= 0);
CREATE DOMAIN {schema}.fencepost_stamp AS bigint CHECK (value >= 1);
CREATE DOMAIN {schema}.fencepost_state AS text COLLATE "C"
    CHECK (value IN ('queued', 'running', 'completed', 'held'));

CREATE TABLE {schema}.fencepost_meta (
    only_row integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    schema_version integer NOT NULL CHECK (schema_version >= 1),
    identity uuid NOT NULL DEFAULT gen_random_uuid(),
    sealed_for text,
    copying_from text
);

-- Gives each request room for its records: `key`, the order of enqueue, is a number from here plus the place
-- of the record in its request.
CREATE SEQUENCE {schema}.fencepost_requests AS bigint INCREMENT BY 16384 MINVALUE 16384;

-- A job keeps its key when it dies and when it is redriven. Every index that a row stays in costs each of its moves
-- as much as writing the row does; so running jobs, which are few, are not in the index of keys.
CREATE TABLE {schema}.fencepost_jobs (
    key bigint NOT NULL,
    id {schema}.fencepost_name PRIMARY KEY,
    state {schema}.fencepost_state NOT NULL DEFAULT 'queued',
    version {schema}.fencepost_count NOT NULL,
    lease_until_ms {schema}.fencepost_ms NOT NULL DEFAULT 0 CHECK (lease_until_ms = 0 OR state = 'running'),
    attempts {schema}.fencepost_count NOT NULL DEFAULT 0,
    queue {schema}.fencepost_name NOT NULL,
    effect {schema}.fencepost_name NOT NULL,
    priority integer NOT NULL,
    run_at_ms {schema}.fencepost_ms,
    expires_at_ms {schema}.fencepost_ms,
    enqueued_at_ms {schema}.fencepost_ms,
    claimant text,
    claimed_at_ms {schema}.fencepost_ms,
    first_claimed_at_ms {schema}.fencepost_ms,
    started_at_ms {schema}.fencepost_ms,
    completed_at_ms {schema}.fencepost_ms,
    last_error text,
    visibility_timeout_ms {schema}.fencepost_stamp,
    max_attempts {schema}.fencepost_stamp,
    backoff_base_ms {schema}.fencepost_stamp,
    dead_letter_retention_ms {schema}.fencepost_ms,
    -- What a queued job waits for besides a claim, which keeps it out of the claim's index. 1: a run_at that no claim
    -- has yet seen to be due. 2: its queue, which was paused when a claim passed over the job.
    waiting smallint NOT NULL DEFAULT 0 CHECK (waiting = 0 OR (waiting IN (1, 2) AND state = 'queued'))
);

-- The condition is written so that no planner can tell that a queued job fulfils it: for those there are other indexes.
CREATE INDEX fencepost_listed ON {schema}.fencepost_jobs (key) WHERE coalesce(state <> 'running', true);

-- The claim's path: what could be picked now, in the order of claims. Each index of the path comes twice: for claims
-- of named queues, and (_all) for claims of all queues, of which there may be any number. No planner may take the one
-- for the other, which in an empty table cost the same: a plan is kept when the table is large. Hence each has a condition
-- that only its own claims fulfil: those of a queue ask for a queue, those of all ask for the effect as an expression.
CREATE INDEX fencepost_ready ON {schema}.fencepost_jobs (
    queue, effect, priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
) WHERE state = 'queued' AND waiting = 0 AND queue IS NOT NULL;

CREATE INDEX fencepost_ready_all ON {schema}.fencepost_jobs (
    coalesce(effect, ''), priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
) WHERE state = 'queued' AND waiting = 0 AND coalesce(effect, '') IS NOT NULL;

CREATE INDEX fencepost_waiting ON {schema}.fencepost_jobs (queue, effect, run_at_ms)
WHERE state = 'queued' AND waiting = 1 AND queue IS NOT NULL;

CREATE INDEX fencepost_waiting_all ON {schema}.fencepost_jobs (coalesce(effect, ''), run_at_ms)
WHERE state = 'queued' AND waiting = 1 AND coalesce(effect, '') IS NOT NULL;

CREATE INDEX fencepost_passed_over ON {schema}.fencepost_jobs (queue, effect)
WHERE state = 'queued' AND waiting = 2 AND queue IS NOT NULL;

CREATE INDEX fencepost_passed_over_all ON {schema}.fencepost_jobs (coalesce(effect, ''))
WHERE state = 'queued' AND waiting = 2 AND coalesce(effect, '') IS NOT NULL;

CREATE INDEX fencepost_leases ON {schema}.fencepost_jobs (queue, effect, lease_until_ms, key)
WHERE state = 'running' AND queue IS NOT NULL;

CREATE INDEX fencepost_leases_all ON {schema}.fencepost_jobs (coalesce(effect, ''), lease_until_ms, key)
WHERE state = 'running' AND coalesce(effect, '') IS NOT NULL;

CREATE INDEX fencepost_expiry ON {schema}.fencepost_jobs (queue, effect, expires_at_ms, key)
WHERE expires_at_ms IS NOT NULL AND state IN ('queued', 'running') AND queue IS NOT NULL;

CREATE INDEX fencepost_expiry_all ON {schema}.fencepost_jobs (coalesce(effect, ''), expires_at_ms, key)
WHERE expires_at_ms IS NOT NULL AND state IN ('queued', 'running') AND coalesce(effect, '') IS NOT NULL;

-- Used-up attempts of queued jobs: against the claiming worker's limit, and against the job's own.
CREATE INDEX fencepost_attempts ON {schema}.fencepost_jobs (queue, effect, attempts)
WHERE state = 'queued' AND attempts > 0 AND max_attempts IS NULL AND queue IS NOT NULL;

CREATE INDEX fencepost_attempts_all ON {schema}.fencepost_jobs (coalesce(effect, ''), attempts)
WHERE state = 'queued' AND attempts > 0 AND max_attempts IS NULL AND coalesce(effect, '') IS NOT NULL;

CREATE INDEX fencepost_exhausted ON {schema}.fencepost_jobs (queue, effect, key)
WHERE state = 'queued' AND attempts >= max_attempts AND queue IS NOT NULL;

CREATE INDEX fencepost_exhausted_all ON {schema}.fencepost_jobs (coalesce(effect, ''), key)
WHERE state = 'queued' AND attempts >= max_attempts AND coalesce(effect, '') IS NOT NULL;

CREATE INDEX fencepost_held ON {schema}.fencepost_jobs (queue)
WHERE state = 'held';

CREATE TABLE {schema}.fencepost_dead (
    key bigint NOT NULL,
    id {schema}.fencepost_name PRIMARY KEY,
    version {schema}.fencepost_count NOT NULL,
    attempts {schema}.fencepost_count NOT NULL,
    queue {schema}.fencepost_name NOT NULL,
    effect {schema}.fencepost_name NOT NULL,
    priority integer NOT NULL,
    run_at_ms {schema}.fencepost_ms,
    expires_at_ms {schema}.fencepost_ms,
    enqueued_at_ms {schema}.fencepost_ms,
    claimant text,
    claimed_at_ms {schema}.fencepost_ms,
    first_claimed_at_ms {schema}.fencepost_ms,
    started_at_ms {schema}.fencepost_ms,
    completed_at_ms {schema}.fencepost_ms,
    last_error text,
    died_at_ms {schema}.fencepost_ms,
    visibility_timeout_ms {schema}.fencepost_stamp,
    max_attempts {schema}.fencepost_stamp,
    backoff_base_ms {schema}.fencepost_stamp,
    dead_letter_retention_ms {schema}.fencepost_ms
);

CREATE INDEX fencepost_dead_listed ON {schema}.fencepost_dead (key);

CREATE INDEX fencepost_dead_by_queue ON {schema}.fencepost_dead (queue, died_at_ms);

-- When retention ends depends on the row, so the sum is what is indexed: a sweep that has nothing to purge
-- reads one entry, however many dead jobs are kept.
CREATE INDEX fencepost_dead_retention ON {schema}.fencepost_dead (
    queue, (died_at_ms + dead_letter_retention_ms)
) WHERE dead_letter_retention_ms IS NOT NULL;

CREATE INDEX fencepost_dead_retention_all ON {schema}.fencepost_dead ((died_at_ms + dead_letter_retention_ms))
WHERE dead_letter_retention_ms IS NOT NULL;

CREATE TABLE {schema}.fencepost_inputs (
    id text COLLATE "C" PRIMARY KEY,
    text bytea NOT NULL
);

CREATE TABLE {schema}.fencepost_effects (
    id text COLLATE "C" PRIMARY KEY,
    receipt bytea NOT NULL
);

-- Ids whose dead job was purged, with its last version: a job that is made anew goes on from there.
CREATE TABLE {schema}.fencepost_purged (
    id text COLLATE "C" PRIMARY KEY,
    version {schema}.fencepost_count NOT NULL
);

-- `every`, `zone`, `missed` and `overlap` are not checked here: what a program does not understand is reported by name.
CREATE TABLE {schema}.fencepost_schedules (
    name {schema}.fencepost_name PRIMARY KEY,
    every text NOT NULL,
    text bytea NOT NULL,
    queue {schema}.fencepost_name NOT NULL,
    effect {schema}.fencepost_name NOT NULL,
    priority integer NOT NULL,
    expires_ms {schema}.fencepost_ms,
    next_ms {schema}.fencepost_ms NOT NULL,
    visibility_timeout_ms {schema}.fencepost_stamp,
    max_attempts {schema}.fencepost_stamp,
    backoff_base_ms {schema}.fencepost_stamp,
    dead_letter_retention_ms {schema}.fencepost_ms,
    zone text NOT NULL,
    missed text,
    overlap text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    owner text,
    since_ms {schema}.fencepost_ms,
    tz_version text COLLATE "C",
    last_id text
);

-- resuming: the queue is not paused any more, but jobs that were passed over are not yet all back in their indexes.
CREATE TABLE {schema}.fencepost_paused (
    queue {schema}.fencepost_name PRIMARY KEY,
    resuming boolean NOT NULL DEFAULT false
);

CREATE INDEX fencepost_resuming ON {schema}.fencepost_paused (queue) WHERE resuming;

CREATE TABLE {schema}.fencepost_audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms {schema}.fencepost_ms NOT NULL,
    action text NOT NULL,
    id text NOT NULL,
    actor text,
    reason text,
    from_state text,
    to_state text,
    version bigint
);

CREATE INDEX fencepost_audit_by_id ON {schema}.fencepost_audit (id);

CREATE FUNCTION {schema}.fencepost_immutable() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'fencepost: % is insert-only', TG_TABLE_NAME;
END
$$;

CREATE TRIGGER fencepost_inputs_stay BEFORE UPDATE OR DELETE ON {schema}.fencepost_inputs
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.fencepost_immutable();

CREATE TRIGGER fencepost_effects_stay BEFORE UPDATE OR DELETE ON {schema}.fencepost_effects
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.fencepost_immutable();

CREATE TRIGGER fencepost_audit_stays BEFORE UPDATE OR DELETE ON {schema}.fencepost_audit
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.fencepost_immutable();
