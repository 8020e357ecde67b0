-- Texts are bytea: PostgreSQL's text carries no NUL. Names compare as bytes (COLLATE "C"), which is their order
-- everywhere in Fencepost.

CREATE TABLE {schema}.fencepost_meta (
    only_row integer PRIMARY KEY DEFAULT 1 CHECK (only_row = 1),
    schema_version integer NOT NULL CHECK (schema_version >= 1),
    identity uuid NOT NULL DEFAULT gen_random_uuid(),
    sealed_for text
);

-- Gives each request room for its records: `key`, the order of enqueue, is a number from here plus the place
-- of the record in its request.
CREATE SEQUENCE {schema}.fencepost_requests AS bigint INCREMENT BY 16384 MINVALUE 16384;

-- A job keeps its key when it dies and when it is redriven.
CREATE TABLE {schema}.fencepost_jobs (
    key bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE CHECK (id ~ '^[a-z][a-z0-9-]{0,63}$'),
    state text COLLATE "C" NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'running', 'completed', 'held')),
    version bigint NOT NULL CHECK (version >= 0),
    lease_until_ms bigint NOT NULL DEFAULT 0
        CHECK (lease_until_ms = 0 OR (lease_until_ms > 0 AND state = 'running')),
    attempts bigint NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    queue text COLLATE "C" NOT NULL,
    effect text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    run_at_ms bigint CHECK (run_at_ms >= 0),
    expires_at_ms bigint CHECK (expires_at_ms >= 0),
    enqueued_at_ms bigint CHECK (enqueued_at_ms >= 0),
    claimant text,
    claimed_at_ms bigint CHECK (claimed_at_ms >= 0),
    first_claimed_at_ms bigint CHECK (first_claimed_at_ms >= 0),
    started_at_ms bigint CHECK (started_at_ms >= 0),
    completed_at_ms bigint CHECK (completed_at_ms >= 0),
    last_error text,
    visibility_timeout_ms bigint CHECK (visibility_timeout_ms >= 1),
    max_attempts bigint CHECK (max_attempts >= 1),
    backoff_base_ms bigint CHECK (backoff_base_ms >= 1),
    dead_letter_retention_ms bigint CHECK (dead_letter_retention_ms >= 0),
    -- Has a run_at that no claim has yet seen to be due. Such rows stay out of the claim's index.
    waiting boolean NOT NULL DEFAULT false CHECK (NOT waiting OR state = 'queued')
);

-- The claim's path: what could be picked now, in the order of claims.
CREATE INDEX fencepost_ready ON {schema}.fencepost_jobs (
    queue, effect, priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
) WHERE state = 'queued' AND NOT waiting;

CREATE INDEX fencepost_waiting ON {schema}.fencepost_jobs (queue, effect, run_at_ms)
WHERE state = 'queued' AND waiting;

CREATE INDEX fencepost_leases ON {schema}.fencepost_jobs (queue, effect, lease_until_ms, key)
WHERE state = 'running';

CREATE INDEX fencepost_expiry ON {schema}.fencepost_jobs (queue, effect, expires_at_ms, key)
WHERE expires_at_ms IS NOT NULL AND state IN ('queued', 'running');

-- Used-up attempts of queued jobs: against the claiming worker's limit, and against the job's own.
CREATE INDEX fencepost_attempts ON {schema}.fencepost_jobs (queue, effect, attempts)
WHERE state = 'queued' AND attempts > 0 AND max_attempts IS NULL;

CREATE INDEX fencepost_exhausted ON {schema}.fencepost_jobs (queue, effect)
WHERE state = 'queued' AND attempts >= max_attempts;

CREATE INDEX fencepost_held ON {schema}.fencepost_jobs (queue)
WHERE state = 'held';

CREATE TABLE {schema}.fencepost_dead (
    key bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE CHECK (id ~ '^[a-z][a-z0-9-]{0,63}$'),
    version bigint NOT NULL CHECK (version >= 0),
    attempts bigint NOT NULL CHECK (attempts >= 0),
    queue text COLLATE "C" NOT NULL,
    effect text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    run_at_ms bigint CHECK (run_at_ms >= 0),
    expires_at_ms bigint CHECK (expires_at_ms >= 0),
    enqueued_at_ms bigint CHECK (enqueued_at_ms >= 0),
    claimant text,
    claimed_at_ms bigint CHECK (claimed_at_ms >= 0),
    first_claimed_at_ms bigint CHECK (first_claimed_at_ms >= 0),
    started_at_ms bigint CHECK (started_at_ms >= 0),
    completed_at_ms bigint CHECK (completed_at_ms >= 0),
    last_error text,
    died_at_ms bigint CHECK (died_at_ms >= 0),
    visibility_timeout_ms bigint CHECK (visibility_timeout_ms >= 1),
    max_attempts bigint CHECK (max_attempts >= 1),
    backoff_base_ms bigint CHECK (backoff_base_ms >= 1),
    dead_letter_retention_ms bigint CHECK (dead_letter_retention_ms >= 0)
);

CREATE INDEX fencepost_dead_by_queue ON {schema}.fencepost_dead (queue, died_at_ms);

-- When retention ends depends on the row, so the sum is what is indexed: a sweep that has nothing to purge
-- reads one entry a queue, however many dead jobs are kept.
CREATE INDEX fencepost_dead_retention ON {schema}.fencepost_dead (
    queue, (died_at_ms + dead_letter_retention_ms)
) WHERE dead_letter_retention_ms IS NOT NULL;

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
    version bigint NOT NULL CHECK (version >= 0)
);

-- `every` is not checked here: a spec that a later program does not understand is reported by name.
CREATE TABLE {schema}.fencepost_schedules (
    name text COLLATE "C" PRIMARY KEY,
    every text NOT NULL,
    text bytea NOT NULL,
    queue text COLLATE "C" NOT NULL,
    effect text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    expires_ms bigint CHECK (expires_ms >= 0),
    next_ms bigint NOT NULL CHECK (next_ms >= 0),
    visibility_timeout_ms bigint CHECK (visibility_timeout_ms >= 1),
    max_attempts bigint CHECK (max_attempts >= 1),
    backoff_base_ms bigint CHECK (backoff_base_ms >= 1),
    dead_letter_retention_ms bigint CHECK (dead_letter_retention_ms >= 0)
);

CREATE TABLE {schema}.fencepost_paused (
    queue text COLLATE "C" PRIMARY KEY
);

CREATE TABLE {schema}.fencepost_audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at_ms bigint NOT NULL CHECK (at_ms >= 0),
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
