-- Tasks from submit to result, and what replicas share. InnoDB throughout; names
-- and keys are bytes; times are microseconds since 1970, UTC, of this server's
-- clock; 0 means "not set".
--
-- A migration that stopped half way runs again from its start, so every
-- statement can be repeated. Statements end with a semicolon at a line's end.

-- Blocks of ids that replicas reserve; `next` is the first free one.
CREATE TABLE IF NOT EXISTS id_blocks (
  name VARBINARY(16) NOT NULL PRIMARY KEY,
  next BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO id_blocks (name, next) VALUES ('task', 1), ('lane', 1), ('holder', 1),
  ('queue', 2);

CREATE TABLE IF NOT EXISTS lanes (
  id INT NOT NULL PRIMARY KEY,
  queue VARBINARY(64) NOT NULL,
  type VARBINARY(64) NOT NULL,
  UNIQUE KEY by_name (queue, type)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- retry_policy is JSON, empty when nothing is set. Every change takes the next
-- version of all queues, under the lock of its counter: who has read the largest
-- has read every change before it.
CREATE TABLE IF NOT EXISTS queues (
  name VARBINARY(64) NOT NULL PRIMARY KEY,
  paused TINYINT NOT NULL DEFAULT 0,
  version BIGINT NOT NULL DEFAULT 1,
  retry_policy VARCHAR(8192) NOT NULL DEFAULT '',
  attempt_timeout_us BIGINT NOT NULL DEFAULT 0,
  lease_duration_us BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A holder of leases: one run of one executor.
CREATE TABLE IF NOT EXISTS executors (
  id INT NOT NULL PRIMARY KEY,
  executor_id VARBINARY(128) NOT NULL,
  incarnation VARBINARY(128) NOT NULL,
  create_us BIGINT NOT NULL,
  UNIQUE KEY by_name (executor_id, incarnation)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Live replicas, and the configuration of queues that each has seen.
CREATE TABLE IF NOT EXISTS schedulers (
  id VARBINARY(128) NOT NULL PRIMARY KEY,
  address VARBINARY(255) NOT NULL,
  start_us BIGINT NOT NULL,
  seen_us BIGINT NOT NULL,
  seen_version BIGINT NOT NULL DEFAULT 0,
  sessions INT NOT NULL DEFAULT 0,
  KEY by_seen (seen_us)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Tasks that have not ended: fixed width, one index. phase: 0 waiting, 1 leased,
-- 2 paused. lease_end: 0 open, 1 expired, 2 closed. flags says which other
-- tables know the task, so that most transactions need not look: 1 a retry
-- policy of its own in task_body, 2 task_expiry, 4 task_checkpoint.
CREATE TABLE IF NOT EXISTS task_live (
  id BIGINT NOT NULL PRIMARY KEY,
  lane_id INT NOT NULL,
  phase TINYINT NOT NULL,
  state TINYINT NOT NULL,
  priority TINYINT NOT NULL,
  flags TINYINT NOT NULL,
  run_us BIGINT NOT NULL,
  attempt INT NOT NULL,
  rate_limited_count SMALLINT NOT NULL,
  expiry_count SMALLINT NOT NULL,
  lease_number BIGINT NOT NULL,
  holder INT NOT NULL,
  lease_end TINYINT NOT NULL,
  lease_expire_us BIGINT NOT NULL,
  attempt_expire_us BIGINT NOT NULL,
  cancel_expire_us BIGINT NOT NULL,
  state_us BIGINT NOT NULL,
  start_us BIGINT NOT NULL,
  first_start_us BIGINT NOT NULL,
  KEY ready (phase, lane_id, priority, run_us, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What the client sent; never changed. payload_kind: 0 none, 1 JSON, 2 bytes.
-- labels and retry_policy are JSON, empty when nothing is set.
CREATE TABLE IF NOT EXISTS task_body (
  id BIGINT NOT NULL PRIMARY KEY,
  create_us BIGINT NOT NULL,
  lane_id INT NOT NULL,
  priority TINYINT NOT NULL,
  payload_kind TINYINT NOT NULL,
  schedule_us BIGINT NOT NULL,
  expire_us BIGINT NOT NULL,
  attempt_timeout_us BIGINT NOT NULL,
  batch_id BIGINT NOT NULL,
  partition_key VARBINARY(128) NOT NULL,
  idempotency_key VARBINARY(191) NOT NULL,
  traceparent VARBINARY(128) NOT NULL,
  labels TEXT NOT NULL,
  retry_policy TEXT NOT NULL,
  payload LONGBLOB NOT NULL,
  KEY by_partition_key (partition_key, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
PARTITION BY RANGE (id) (
  PARTITION p0 VALUES LESS THAN (10000000),
  PARTITION p1 VALUES LESS THAN (20000000),
  PARTITION p2 VALUES LESS THAN (30000000),
  PARTITION pmax VALUES LESS THAN MAXVALUE
);

-- How tasks ended. error_class NULL: no error.
CREATE TABLE IF NOT EXISTS task_result (
  id BIGINT NOT NULL,
  finish_us BIGINT NOT NULL,
  lane_id INT NOT NULL,
  state TINYINT NOT NULL,
  reason TINYINT NOT NULL,
  attempt INT NOT NULL,
  lease_number BIGINT NOT NULL,
  lease_expire_us BIGINT NOT NULL,
  holder INT NOT NULL,
  start_us BIGINT NOT NULL,
  result_kind TINYINT NOT NULL,
  error_class TINYINT NULL,
  error_code VARBINARY(256) NOT NULL,
  error_message VARBINARY(4096) NOT NULL,
  retry_after_us BIGINT NOT NULL,
  result LONGBLOB NOT NULL,
  PRIMARY KEY (id, finish_us),
  KEY by_state (lane_id, state, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin
PARTITION BY RANGE (finish_us) (
  PARTITION p2026 VALUES LESS THAN (1798761600000000),
  PARTITION p2027a VALUES LESS THAN (1814400000000000),
  PARTITION p2027b VALUES LESS THAN (1830297600000000),
  PARTITION pmax VALUES LESS THAN MAXVALUE
);

-- Attempts that did not succeed.
CREATE TABLE IF NOT EXISTS task_attempt (
  id BIGINT NOT NULL,
  lease_number BIGINT NOT NULL,
  number INT NOT NULL,
  holder INT NOT NULL,
  start_us BIGINT NOT NULL,
  finish_us BIGINT NOT NULL,
  error_class TINYINT NOT NULL,
  error_code VARBINARY(256) NOT NULL,
  error_message VARBINARY(4096) NOT NULL,
  retry_after_us BIGINT NOT NULL,
  PRIMARY KEY (id, lease_number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Latest checkpoint and progress of live tasks, and why one is to be cancelled;
-- NULL: none yet.
CREATE TABLE IF NOT EXISTS task_checkpoint (
  id BIGINT NOT NULL PRIMARY KEY,
  checkpoint MEDIUMBLOB NULL,
  progress_done BIGINT NULL,
  progress_total BIGINT NULL,
  progress_message VARBINARY(1024) NULL,
  cancel_reason VARBINARY(1024) NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Live tasks that have an expire_time.
CREATE TABLE IF NOT EXISTS task_expiry (
  id BIGINT NOT NULL PRIMARY KEY,
  expire_us BIGINT NOT NULL,
  KEY by_time (expire_us, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Idempotency keys. A key whose task is in no other table is free.
CREATE TABLE IF NOT EXISTS task_key (
  queue VARBINARY(64) NOT NULL,
  idempotency_key VARBINARY(191) NOT NULL,
  id BIGINT NOT NULL,
  content_hash VARBINARY(32) NOT NULL,
  PRIMARY KEY (queue, idempotency_key)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
