-- Conditions are written with OR: SQLite builds a table for every IN list at every row, which costs an
-- insert a third of its speed. What an id may be is checked before it comes here: a GLOB costs a tenth.

CREATE TABLE fencepost_meta (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    schema_version INTEGER NOT NULL CHECK (schema_version >= 1),
    sealed_for TEXT,
    copying_from TEXT
) STRICT;

-- `key` is the order of enqueue. Keys are given out over jobs and dead together, so that a job keeps its
-- place when it dies and when it is redriven.
CREATE TABLE fencepost_jobs (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'queued'
        CHECK (state = 'queued' OR state = 'running' OR state = 'completed' OR state = 'held'),
    version INTEGER NOT NULL CHECK (version >= 0),
    lease_until_ms INTEGER NOT NULL DEFAULT 0
        CHECK (lease_until_ms = 0 OR (lease_until_ms > 0 AND state = 'running')),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    queue TEXT NOT NULL,
    effect TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority >= -2147483648 AND priority <= 2147483647),
    run_at_ms INTEGER CHECK (run_at_ms >= 0),
    expires_at_ms INTEGER CHECK (expires_at_ms >= 0),
    enqueued_at_ms INTEGER CHECK (enqueued_at_ms >= 0),
    claimant TEXT,
    claimed_at_ms INTEGER CHECK (claimed_at_ms >= 0),
    first_claimed_at_ms INTEGER CHECK (first_claimed_at_ms >= 0),
    started_at_ms INTEGER CHECK (started_at_ms >= 0),
    completed_at_ms INTEGER CHECK (completed_at_ms >= 0),
    last_error TEXT,
    visibility_timeout_ms INTEGER CHECK (visibility_timeout_ms >= 1),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    backoff_base_ms INTEGER CHECK (backoff_base_ms >= 1),
    dead_letter_retention_ms INTEGER CHECK (dead_letter_retention_ms >= 0),
    -- What a queued job waits for besides a claim, which keeps it out of the claim's index. 1: a run_at that no claim
    -- has yet seen to be due. 2: its queue, which was paused when a claim passed over the job.
    waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting = 0 OR ((waiting = 1 OR waiting = 2) AND state = 'queued'))
) STRICT;

-- The claim's path: what could be picked now, in the order of claims. Each index of the path comes twice: for claims
-- of named queues, and (_all) for claims of all queues, of which there may be any number.
CREATE INDEX fencepost_ready ON fencepost_jobs (
    queue, effect, priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
) WHERE state = 'queued' AND waiting = 0;

CREATE INDEX fencepost_ready_all ON fencepost_jobs (
    effect, priority DESC, coalesce(run_at_ms, enqueued_at_ms, 0), key
) WHERE state = 'queued' AND waiting = 0;

CREATE INDEX fencepost_waiting ON fencepost_jobs (queue, effect, run_at_ms)
WHERE state = 'queued' AND waiting = 1;

CREATE INDEX fencepost_waiting_all ON fencepost_jobs (effect, run_at_ms)
WHERE state = 'queued' AND waiting = 1;

CREATE INDEX fencepost_passed_over ON fencepost_jobs (queue, effect)
WHERE state = 'queued' AND waiting = 2;

CREATE INDEX fencepost_passed_over_all ON fencepost_jobs (effect)
WHERE state = 'queued' AND waiting = 2;

CREATE INDEX fencepost_leases ON fencepost_jobs (queue, effect, lease_until_ms)
WHERE state = 'running';

CREATE INDEX fencepost_leases_all ON fencepost_jobs (effect, lease_until_ms)
WHERE state = 'running';

CREATE INDEX fencepost_expiry ON fencepost_jobs (queue, effect, expires_at_ms)
WHERE expires_at_ms IS NOT NULL AND (state = 'queued' OR state = 'running');

CREATE INDEX fencepost_expiry_all ON fencepost_jobs (effect, expires_at_ms)
WHERE expires_at_ms IS NOT NULL AND (state = 'queued' OR state = 'running');

-- Used-up attempts of queued jobs: against the claiming worker's limit, and against the job's own.
CREATE INDEX fencepost_attempts ON fencepost_jobs (queue, effect, attempts)
WHERE state = 'queued' AND attempts > 0 AND max_attempts IS NULL;

CREATE INDEX fencepost_attempts_all ON fencepost_jobs (effect, attempts)
WHERE state = 'queued' AND attempts > 0 AND max_attempts IS NULL;

CREATE INDEX fencepost_exhausted ON fencepost_jobs (queue, effect)
WHERE state = 'queued' AND attempts >= max_attempts;

CREATE INDEX fencepost_exhausted_all ON fencepost_jobs (effect)
WHERE state = 'queued' AND attempts >= max_attempts;

CREATE INDEX fencepost_held ON fencepost_jobs (queue)
WHERE state = 'held';

CREATE TABLE fencepost_dead (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL CHECK (version >= 0),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    queue TEXT NOT NULL,
    effect TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority >= -2147483648 AND priority <= 2147483647),
    run_at_ms INTEGER CHECK (run_at_ms >= 0),
    expires_at_ms INTEGER CHECK (expires_at_ms >= 0),
    enqueued_at_ms INTEGER CHECK (enqueued_at_ms >= 0),
    claimant TEXT,
    claimed_at_ms INTEGER CHECK (claimed_at_ms >= 0),
    first_claimed_at_ms INTEGER CHECK (first_claimed_at_ms >= 0),
    started_at_ms INTEGER CHECK (started_at_ms >= 0),
    completed_at_ms INTEGER CHECK (completed_at_ms >= 0),
    last_error TEXT,
    died_at_ms INTEGER CHECK (died_at_ms >= 0),
    visibility_timeout_ms INTEGER CHECK (visibility_timeout_ms >= 1),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    backoff_base_ms INTEGER CHECK (backoff_base_ms >= 1),
    dead_letter_retention_ms INTEGER CHECK (dead_letter_retention_ms >= 0)
) STRICT;

CREATE INDEX fencepost_dead_by_queue ON fencepost_dead (queue, died_at_ms);

-- When retention ends depends on the row, so the sum is what is indexed: a sweep that has nothing to purge
-- reads one entry, however many dead jobs are kept.
CREATE INDEX fencepost_dead_retention ON fencepost_dead (queue, died_at_ms + dead_letter_retention_ms)
WHERE dead_letter_retention_ms IS NOT NULL;

CREATE INDEX fencepost_dead_retention_all ON fencepost_dead (died_at_ms + dead_letter_retention_ms)
WHERE dead_letter_retention_ms IS NOT NULL;

CREATE TABLE fencepost_inputs (
    id TEXT PRIMARY KEY NOT NULL,
    text TEXT NOT NULL
) STRICT;

CREATE TABLE fencepost_effects (
    id TEXT PRIMARY KEY NOT NULL,
    receipt TEXT NOT NULL
) STRICT;

-- Ids whose dead job was purged, with its last version: a job that is made anew goes on from there.
CREATE TABLE fencepost_purged (
    id TEXT PRIMARY KEY NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 0)
) STRICT, WITHOUT ROWID;

-- `every`, `zone`, `missed` and `overlap` are not checked here: what a program does not understand is reported by name.
CREATE TABLE fencepost_schedules (
    name TEXT PRIMARY KEY NOT NULL,
    every TEXT NOT NULL,
    text TEXT NOT NULL,
    queue TEXT NOT NULL,
    effect TEXT NOT NULL,
    priority INTEGER NOT NULL,
    expires_ms INTEGER CHECK (expires_ms >= 0),
    next_ms INTEGER NOT NULL CHECK (next_ms >= 0),
    visibility_timeout_ms INTEGER CHECK (visibility_timeout_ms >= 1),
    max_attempts INTEGER CHECK (max_attempts >= 1),
    backoff_base_ms INTEGER CHECK (backoff_base_ms >= 1),
    dead_letter_retention_ms INTEGER CHECK (dead_letter_retention_ms >= 0),
    zone TEXT NOT NULL,
    missed TEXT,
    overlap TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused = 0 OR paused = 1),
    owner TEXT,
    since_ms INTEGER CHECK (since_ms >= 0),
    tz_version TEXT,
    last_id TEXT
) STRICT;

-- 1: the queue is not paused any more, but jobs that were passed over are not yet all back in their indexes.
CREATE TABLE fencepost_paused (
    queue TEXT PRIMARY KEY NOT NULL,
    resuming INTEGER NOT NULL DEFAULT 0 CHECK (resuming = 0 OR resuming = 1)
) STRICT, WITHOUT ROWID;

CREATE INDEX fencepost_resuming ON fencepost_paused (queue) WHERE resuming = 1;

CREATE TABLE fencepost_audit (
    number INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL CHECK (at_ms >= 0),
    action TEXT NOT NULL,
    id TEXT NOT NULL,
    actor TEXT,
    reason TEXT,
    from_state TEXT,
    to_state TEXT,
    version INTEGER
) STRICT;

CREATE INDEX fencepost_audit_by_id ON fencepost_audit (id);

CREATE TRIGGER fencepost_inputs_stay BEFORE UPDATE ON fencepost_inputs
BEGIN SELECT raise(ABORT, 'fencepost: inputs are immutable'); END;

CREATE TRIGGER fencepost_inputs_are_kept BEFORE DELETE ON fencepost_inputs
BEGIN SELECT raise(ABORT, 'fencepost: inputs are immutable'); END;

CREATE TRIGGER fencepost_effects_stay BEFORE UPDATE ON fencepost_effects
BEGIN SELECT raise(ABORT, 'fencepost: receipts are immutable'); END;

CREATE TRIGGER fencepost_effects_are_kept BEFORE DELETE ON fencepost_effects
BEGIN SELECT raise(ABORT, 'fencepost: receipts are immutable'); END;

CREATE TRIGGER fencepost_audit_stays BEFORE UPDATE ON fencepost_audit
BEGIN SELECT raise(ABORT, 'fencepost: the audit is immutable'); END;

CREATE TRIGGER fencepost_audit_is_kept BEFORE DELETE ON fencepost_audit
BEGIN SELECT raise(ABORT, 'fencepost: the audit is immutable'); END;
