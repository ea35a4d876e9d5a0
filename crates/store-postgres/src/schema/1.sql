-- The last cursor of the fleet-wide stream. Every batch of appends locks this row until its commit, so that cursors are
-- in the order of commits, and that a batch sees everything that earlier ones wrote.
CREATE TABLE stream(cursor bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO stream VALUES (0);

-- No index covers a column that changes with every append, so that the update stays within the page.
CREATE TABLE session(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uid text COLLATE "C" NOT NULL UNIQUE,
  owner bigint,
  epoch bigint NOT NULL,
  head bigint NOT NULL DEFAULT 0,
  last_append bytea NOT NULL DEFAULT '',
  name text COLLATE "C" NOT NULL DEFAULT '',
  state text COLLATE "C" NOT NULL DEFAULT '',
  closed boolean NOT NULL DEFAULT false,
  labels jsonb NOT NULL DEFAULT '{}',
  resumable boolean NOT NULL DEFAULT false,
  wake_at_ms bigint,
  summary text,
  row_sum bigint,
  -- Values of the orders and what searches read, as the owner computed them.
  sort_updated double precision NOT NULL DEFAULT 0,
  sort_name text COLLATE "C" NOT NULL DEFAULT '',
  sort_model text COLLATE "C" NOT NULL DEFAULT '',
  sort_state double precision NOT NULL DEFAULT 0,
  sort_steps double precision NOT NULL DEFAULT 0,
  sort_tokens double precision NOT NULL DEFAULT 0,
  sort_cost double precision NOT NULL DEFAULT 0,
  searched text COLLATE "C" NOT NULL DEFAULT '',
  created_ms bigint NOT NULL,
  updated_ms bigint NOT NULL,
  deleted_ms bigint) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE event(
  cursor bigint PRIMARY KEY,
  session_id bigint NOT NULL,
  seq bigint NOT NULL,
  epoch bigint NOT NULL,
  at_ms bigint NOT NULL,
  kind text NOT NULL,
  append_id bytea,
  body text NOT NULL,
  sum bigint NOT NULL,
  UNIQUE(session_id, seq));

-- A blob is in chunks, and exists as long as a session uses it.
CREATE TABLE blob_chunk(
  name text COLLATE "C" NOT NULL,
  number int NOT NULL,
  bytes bytea NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY(name, number));
CREATE TABLE blob_use(
  name text COLLATE "C" NOT NULL,
  session_id bigint NOT NULL,
  PRIMARY KEY(name, session_id));
CREATE INDEX blob_use_session ON blob_use(session_id);

CREATE TABLE idempotency(
  principal text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  method text NOT NULL,
  body_hash bytea NOT NULL,
  answer text NOT NULL,
  at_ms bigint NOT NULL,
  PRIMARY KEY(principal, key));

CREATE TABLE charge(
  account text COLLATE "C" PRIMARY KEY,
  tokens bigint NOT NULL,
  micro_usd bigint NOT NULL);

CREATE TABLE node(
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text NOT NULL,
  expires_ms bigint NOT NULL);

CREATE TABLE spent(
  model text COLLATE "C" NOT NULL,
  labels text COLLATE "C" NOT NULL,
  sessions bigint NOT NULL,
  steps bigint NOT NULL,
  input bigint NOT NULL,
  output bigint NOT NULL,
  cache_read bigint NOT NULL,
  cache_write bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  reasoning bigint NOT NULL,
  usd double precision NOT NULL,
  PRIMARY KEY(model, labels));

CREATE TABLE token(
  name text COLLATE "C" PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  scopes text NOT NULL,
  labels text NOT NULL,
  created_ms bigint NOT NULL,
  created_by text NOT NULL,
  expires_ms bigint,
  used_ms bigint,
  revoked_ms bigint);

-- Writes a batch of appends, at most one of each session, and returns what became of each, in order:
-- 0 committed, 1 committed before, 2 fenced, 3 an idempotency key is taken. The server alone holds the locks, and only
-- while it runs this function: a paused client cannot hold one.
CREATE FUNCTION append_1(
  now_ms bigint, oldest_key_ms bigint, node bigint,
  a_uid text[], a_epoch bigint[], a_head bigint[], a_new_head bigint[], a_id bytea[],
  a_summary text[], a_name text[], a_state text[], a_closed boolean[], a_labels text[], a_resumable boolean[],
  a_wake bigint[], a_sum bigint[],
  a_updated double precision[], a_sort_name text[], a_model text[], a_urgency double precision[],
  a_steps double precision[], a_tokens double precision[], a_cost double precision[], a_searched text[],
  e_append bigint[], e_seq bigint[], e_at bigint[], e_kind text[], e_last boolean[], e_body text[], e_sum bigint[],
  k_append bigint[], k_principal text[], k_key text[], k_method text[], k_hash bytea[], k_answer text[],
  b_append bigint[], b_name text[], b_bytes bytea[],
  c_append bigint[], c_account text[], c_tokens bigint[], c_micro_usd bigint[])
RETURNS TABLE(number bigint, outcome int, epoch bigint, head bigint, cursor_after bigint, answer text, same_body boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  before bigint;
  written bigint;
  taken bigint[] := '{}';
  won bigint[];
  won_id bigint[];
BEGIN
  SELECT s.cursor INTO STRICT before FROM stream s FOR UPDATE;
  IF cardinality(k_append) > 0 THEN
    SELECT coalesce(array_agg(DISTINCT k.i), '{}') INTO taken
    FROM unnest(k_append, k_principal, k_key) AS k(i, principal, key)
    JOIN idempotency d ON d.principal = k.principal AND d.key = k.key AND d.at_ms > oldest_key_ms;
  END IF;
  INSERT INTO session(uid, owner, epoch, created_ms, updated_ms)
  SELECT v.uid, node, 1, now_ms, now_ms
  FROM unnest(a_uid, a_epoch, a_head) WITH ORDINALITY AS v(uid, epoch, head, i)
  WHERE v.epoch = 1 AND v.head = 0 AND v.i <> ALL (taken)
  ON CONFLICT (uid) DO NOTHING;
  WITH won_rows AS (
    UPDATE session s SET head = v.new_head, last_append = v.id, updated_ms = now_ms,
      summary = coalesce(v.summary, s.summary),
      name = CASE WHEN v.summary IS NULL THEN s.name ELSE v.name END,
      state = CASE WHEN v.summary IS NULL THEN s.state ELSE v.state END,
      closed = CASE WHEN v.summary IS NULL THEN s.closed ELSE v.closed END,
      labels = CASE WHEN v.summary IS NULL THEN s.labels ELSE v.labels::jsonb END,
      resumable = CASE WHEN v.summary IS NULL THEN s.resumable ELSE v.resumable END,
      wake_at_ms = CASE WHEN v.summary IS NULL THEN s.wake_at_ms ELSE v.wake END,
      row_sum = CASE WHEN v.summary IS NULL THEN s.row_sum ELSE v.sum END,
      sort_updated = CASE WHEN v.summary IS NULL THEN s.sort_updated ELSE v.updated END,
      sort_name = CASE WHEN v.summary IS NULL THEN s.sort_name ELSE v.sort_name END,
      sort_model = CASE WHEN v.summary IS NULL THEN s.sort_model ELSE v.model END,
      sort_state = CASE WHEN v.summary IS NULL THEN s.sort_state ELSE v.urgency END,
      sort_steps = CASE WHEN v.summary IS NULL THEN s.sort_steps ELSE v.steps END,
      sort_tokens = CASE WHEN v.summary IS NULL THEN s.sort_tokens ELSE v.tokens END,
      sort_cost = CASE WHEN v.summary IS NULL THEN s.sort_cost ELSE v.cost END,
      searched = CASE WHEN v.summary IS NULL THEN s.searched ELSE v.searched END
    FROM unnest(a_uid, a_epoch, a_head, a_new_head, a_id, a_summary, a_name, a_state, a_closed, a_labels, a_resumable,
        a_wake, a_sum, a_updated, a_sort_name, a_model, a_urgency, a_steps, a_tokens, a_cost, a_searched)
      WITH ORDINALITY AS v(uid, epoch, head, new_head, id, summary, name, state, closed, labels, resumable,
        wake, sum, updated, sort_name, model, urgency, steps, tokens, cost, searched, i)
    WHERE s.uid = v.uid AND s.deleted_ms IS NULL AND s.epoch = v.epoch AND s.head = v.head AND s.last_append <> v.id
      AND v.i <> ALL (taken)
    RETURNING v.i, s.id)
  SELECT coalesce(array_agg(w.i), '{}'), coalesce(array_agg(w.id), '{}') INTO won, won_id FROM won_rows w;

  INSERT INTO event(cursor, session_id, seq, epoch, at_ms, kind, append_id, body, sum)
  SELECT before + row_number() OVER (ORDER BY e.n), w.id, e.seq, a_epoch[w.i], e.at, e.kind,
    CASE WHEN e.last THEN a_id[w.i] END, e.body, e.sum
  FROM unnest(e_append, e_seq, e_at, e_kind, e_last, e_body, e_sum)
    WITH ORDINALITY AS e(i, seq, at, kind, last, body, sum, n)
  JOIN unnest(won, won_id) AS w(i, id) ON w.i = e.i;
  GET DIAGNOSTICS written = ROW_COUNT;
  IF written > 0 THEN
    UPDATE stream SET cursor = before + written;
    -- A hint: a reader that misses it reads the stream a little later.
    PERFORM pg_notify('agentd_stream', (before + written)::text);
  END IF;
  IF cardinality(k_append) > 0 THEN
    INSERT INTO idempotency(principal, key, method, body_hash, answer, at_ms)
    SELECT k.principal, k.key, k.method, k.hash, k.answer, now_ms
    FROM unnest(k_append, k_principal, k_key, k_method, k_hash, k_answer) AS k(i, principal, key, method, hash, answer)
    WHERE k.i = ANY (won)
    ON CONFLICT (principal, key) DO UPDATE SET method = excluded.method, body_hash = excluded.body_hash,
      answer = excluded.answer, at_ms = excluded.at_ms;
  END IF;
  IF cardinality(b_append) > 0 THEN
    -- Large blobs are there already, and have no bytes here.
    INSERT INTO blob_chunk(name, number, bytes, at_ms)
    SELECT DISTINCT ON (b.name) b.name, 0, b.bytes, now_ms
    FROM unnest(b_append, b_name, b_bytes) AS b(i, name, bytes) WHERE b.i = ANY (won) AND b.bytes IS NOT NULL
    ON CONFLICT (name, number) DO UPDATE SET at_ms = excluded.at_ms;
    INSERT INTO blob_use(name, session_id)
    SELECT b.name, w.id FROM unnest(b_append, b_name) AS b(i, name) JOIN unnest(won, won_id) AS w(i, id) ON w.i = b.i
    ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(c_append) > 0 THEN
    INSERT INTO charge(account, tokens, micro_usd)
    SELECT c.account, sum(c.tokens)::bigint, sum(c.micro_usd)::bigint
    FROM unnest(c_append, c_account, c_tokens, c_micro_usd) AS c(i, account, tokens, micro_usd)
    WHERE c.i = ANY (won) GROUP BY c.account
    ON CONFLICT (account) DO UPDATE SET tokens = charge.tokens + excluded.tokens,
      micro_usd = charge.micro_usd + excluded.micro_usd;
  END IF;

  RETURN QUERY
  SELECT v.i,
    CASE WHEN v.i = ANY (won) THEN 0
         WHEN s.last_append = v.id OR x.session_id IS NOT NULL THEN 1
         WHEN s.uid IS NULL AND v.epoch = 1 AND v.head = 0 THEN 3
         WHEN s.deleted_ms IS NULL AND s.epoch = v.epoch AND s.head = v.head THEN 3
         ELSE 2 END,
    coalesce(s.epoch, 0), coalesce(s.head, 0),
    before + written, t.answer, t.same
  FROM unnest(a_uid, a_epoch, a_head, a_new_head, a_id) WITH ORDINALITY AS v(uid, epoch, head, new_head, id, i)
  LEFT JOIN session s ON s.uid = v.uid
  LEFT JOIN event x ON x.session_id = s.id AND x.seq = v.new_head AND x.append_id = v.id AND v.new_head > v.head
  LEFT JOIN LATERAL (
    SELECT d.answer, d.method = k.method AND d.body_hash = k.hash AS same
    FROM unnest(k_append, k_principal, k_key, k_method, k_hash) WITH ORDINALITY AS k(i, principal, key, method, hash, n)
    JOIN idempotency d ON d.principal = k.principal AND d.key = k.key AND d.at_ms > oldest_key_ms
    WHERE k.i = v.i AND v.i = ANY (taken) ORDER BY k.n LIMIT 1) AS t ON true
  ORDER BY v.i;
END $$;
