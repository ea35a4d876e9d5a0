-- Every row that decides something has a checksum (`agentd_store::cell_sum`): over its columns as a JSON array of texts, the start
-- of the SHA-256. What is wrong in an older row stays wrong unnoticed.
CREATE FUNCTION cells_sum_1(VARIADIC cells text[]) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ('x' || encode(substring(sha256(convert_to(array_to_json(cells)::text, 'UTF8')) FROM 1 FOR 8), 'hex'))::bit(64)::bigint
$$;

ALTER TABLE session ADD COLUMN own_sum bigint, ADD COLUMN head_sum bigint;
ALTER TABLE blob_use ADD COLUMN sum bigint;
ALTER TABLE idempotency ADD COLUMN sum bigint;
ALTER TABLE charge ADD COLUMN sum bigint;
ALTER TABLE spent ADD COLUMN sum bigint;
ALTER TABLE token ADD COLUMN sum bigint;

CREATE FUNCTION own_sum_1(r session) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.uid, r.epoch::text, r.created_ms::text, r.deleted_ms::text) $$;
CREATE FUNCTION head_sum_1(r session) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.uid, r.head::text, encode(r.last_append, 'hex'), r.updated_ms::text) $$;
CREATE FUNCTION sum_1(r blob_use) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.name, r.session_id::text) $$;
CREATE FUNCTION sum_1(r idempotency) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.principal, r.key, r.method, encode(r.body_hash, 'hex'), r.answer, r.at_ms::text) $$;
CREATE FUNCTION sum_1(r charge) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.account, r.tokens::text, r.micro_usd::text) $$;
CREATE FUNCTION sum_1(r spent) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.model, r.labels, r.sessions::text, r.steps::text, r.input::text, r.output::text, r.cache_read::text,
    r.cache_write::text, r.cache_write_1h::text, r.reasoning::text, encode(float8send(r.usd), 'hex')) $$;
CREATE FUNCTION sum_1(r token) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT cells_sum_1(r.name, encode(r.hash, 'hex'), r.scopes, r.labels, r.created_ms::text, r.created_by, r.expires_ms::text,
    r.used_ms::text, r.revoked_ms::text, r.rights) $$;

UPDATE session s SET own_sum = own_sum_1(s), head_sum = head_sum_1(s);
UPDATE blob_use r SET sum = sum_1(r);
UPDATE idempotency r SET sum = sum_1(r);
UPDATE charge r SET sum = sum_1(r);
UPDATE spent r SET sum = sum_1(r);
UPDATE token r SET sum = sum_1(r);

-- A row that changes gets another checksum; a damaged row stays damaged. A migration gives the checksum of a row with it.
CREATE FUNCTION keep_sum_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    NEW.sum := coalesce(NEW.sum, sum_1(NEW));
  ELSIF OLD.sum = sum_1(OLD) THEN
    NEW.sum := sum_1(NEW);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER keep_sum BEFORE INSERT OR UPDATE ON blob_use FOR EACH ROW EXECUTE FUNCTION keep_sum_1();
CREATE TRIGGER keep_sum BEFORE INSERT OR UPDATE ON idempotency FOR EACH ROW EXECUTE FUNCTION keep_sum_1();
CREATE TRIGGER keep_sum BEFORE INSERT OR UPDATE ON charge FOR EACH ROW EXECUTE FUNCTION keep_sum_1();
CREATE TRIGGER keep_sum BEFORE INSERT OR UPDATE ON spent FOR EACH ROW EXECUTE FUNCTION keep_sum_1();
CREATE TRIGGER keep_sum BEFORE INSERT OR UPDATE ON token FOR EACH ROW EXECUTE FUNCTION keep_sum_1();

CREATE FUNCTION session_made_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.own_sum := coalesce(NEW.own_sum, own_sum_1(NEW));
  NEW.head_sum := coalesce(NEW.head_sum, head_sum_1(NEW));
  RETURN NEW;
END $$;
CREATE TRIGGER session_made BEFORE INSERT ON session FOR EACH ROW EXECUTE FUNCTION session_made_1();

-- Nobody claims a session whose row is damaged: only what mends or deletes it changes what places it.
CREATE FUNCTION session_placed_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.own_sum IS NOT DISTINCT FROM own_sum_1(OLD) THEN
    IF NEW.deleted_ms IS NULL AND NEW.epoch <> OLD.epoch AND OLD.head_sum IS DISTINCT FROM head_sum_1(OLD) THEN
      RETURN NULL;
    END IF;
    NEW.own_sum := own_sum_1(NEW);
  ELSIF NEW.own_sum IS DISTINCT FROM own_sum_1(NEW) THEN
    RETURN NULL;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER session_placed BEFORE UPDATE OF uid, epoch, created_ms, deleted_ms ON session
  FOR EACH ROW EXECUTE FUNCTION session_placed_1();

-- Nodes of earlier versions do not sum what they append.
CREATE FUNCTION session_ended_1() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.head_sum = head_sum_1(OLD) THEN
    NEW.head_sum := head_sum_1(NEW);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER session_ended BEFORE UPDATE OF head ON session FOR EACH ROW
  WHEN (NEW.head_sum IS NOT DISTINCT FROM OLD.head_sum) EXECUTE FUNCTION session_ended_1();

-- The same appended_1, with the checksum of where the log ends.
CREATE TYPE appended_2 AS (
  i int, uid text, epoch bigint, head bigint, new_head bigint, id bytea,
  summary text, name text, state text, closed boolean, labels text, resumable boolean, wake_at_ms bigint, row_sum bigint,
  sort_updated double precision, sort_name text, sort_model text, sort_state double precision, sort_steps double precision,
  sort_tokens double precision, sort_cost double precision, searched text, head_sum bigint);

-- The same append_2, which stores that checksum and completes those of the events.
CREATE FUNCTION append_3(
  now_ms bigint, oldest_key_ms bigint, node bigint, some_are_first boolean, appends appended_2[], events appended_event_1[],
  keys appended_key_1[], blobs appended_blob_1[], charges appended_charge_1[])
RETURNS TABLE(cursor_before bigint, cursor_after bigint, number int, outcome int, epoch bigint, head bigint, answer text,
  same_body boolean)
LANGUAGE plpgsql
-- See append_1.
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  taken int[] := '{}';
  -- The session of each append, or NULL if the append is refused.
  won bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(appends)]);
  won_append int[];
  won_session bigint[];
  all_won boolean;
  nothing text;
BEGIN
  -- Locks the stream.
  UPDATE stream s SET cursor = s.cursor + cardinality(events) RETURNING s.cursor - cardinality(events), s.cursor
  INTO STRICT cursor_before, cursor_after;
  IF cardinality(keys) > 0 THEN
    SELECT coalesce(array_agg(DISTINCT k.i), '{}') INTO taken FROM unnest(keys) AS k
    JOIN idempotency d ON d.principal = k.principal AND d.key = k.key AND (d.at_ms > oldest_key_ms OR d.sum IS DISTINCT FROM sum_1(d));
  END IF;
  IF some_are_first THEN
    INSERT INTO session(uid, root, owner, node, epoch, created_ms, updated_ms)
    SELECT v.uid, coalesce(p.root, v.uid), append_3.node, coalesce((SELECT n.name FROM node n WHERE n.id = append_3.node), ''), 1,
      now_ms, now_ms
    FROM unnest(appends) AS v
    -- Not as JSON: it may contain \u0000, which PostgreSQL refuses. A text in it cannot contain these quotes.
    LEFT JOIN session p ON p.uid = replace(substring(v.summary FROM '"parent":"([0-9a-f-]+)"'), '-', '')
    WHERE v.epoch = 1 AND v.head = 0 AND v.i <> ALL (taken)
    ON CONFLICT (uid) DO NOTHING;
  END IF;
  WITH won_rows AS (
    UPDATE session s SET head = v.new_head, last_append = v.id, updated_ms = now_ms, head_sum = v.head_sum,
      summary = coalesce(v.summary, s.summary), name = coalesce(v.name, s.name), state = coalesce(v.state, s.state),
      closed = coalesce(v.closed, s.closed), labels = coalesce(v.labels::jsonb, s.labels),
      resumable = coalesce(v.resumable, s.resumable),
      wake_at_ms = CASE WHEN v.summary IS NULL THEN s.wake_at_ms ELSE v.wake_at_ms END,
      row_sum = coalesce(v.row_sum, s.row_sum), sort_updated = coalesce(v.sort_updated, s.sort_updated),
      sort_name = coalesce(v.sort_name, s.sort_name), sort_model = coalesce(v.sort_model, s.sort_model),
      sort_state = coalesce(v.sort_state, s.sort_state), sort_steps = coalesce(v.sort_steps, s.sort_steps),
      sort_tokens = coalesce(v.sort_tokens, s.sort_tokens), sort_cost = coalesce(v.sort_cost, s.sort_cost),
      searched = coalesce(v.searched, s.searched)
    FROM unnest(appends) AS v
    WHERE s.uid = v.uid AND s.deleted_ms IS NULL AND s.epoch = v.epoch AND s.head = v.head AND s.last_append <> v.id
      AND v.i <> ALL (taken)
    RETURNING v.i, s.id)
  SELECT coalesce(array_agg(w.i), '{}'), coalesce(array_agg(w.id), '{}') INTO won_append, won_session FROM won_rows w;
  FOR k IN 1 .. cardinality(won_append) LOOP
    won[won_append[k]] := won_session[k];
  END LOOP;
  all_won := cardinality(won_append) = cardinality(appends);
  IF NOT all_won THEN
    events := ARRAY(SELECT e FROM unnest(events) AS e WHERE won[e.i] IS NOT NULL);
    cursor_after := cursor_before + cardinality(events);
    UPDATE stream SET cursor = cursor_after;
  END IF;
  INSERT INTO event(cursor, session_id, seq, epoch, at_ms, kind, append_id, body, sum)
  SELECT cursor_before + e.n, won[e.i], e.seq, e.epoch, e.at_ms, e.kind, e.append_id, e.body,
    -- The client sums all but the cursor.
    e.sum # (cursor_before + e.n)
  FROM unnest(events) WITH ORDINALITY AS e(i, seq, epoch, at_ms, kind, append_id, body, sum, n);
  IF cursor_after > cursor_before THEN
    -- A hint: a reader that misses it reads the stream a little later. An assignment, because it starts no statement.
    nothing := pg_notify('agentd_stream', cursor_after::text);
  END IF;
  IF cardinality(keys) > 0 THEN
    INSERT INTO idempotency(principal, key, method, body_hash, answer, at_ms)
    SELECT k.principal, k.key, k.method, k.body_hash, k.answer, now_ms FROM unnest(keys) AS k WHERE won[k.i] IS NOT NULL
    ON CONFLICT (principal, key) DO UPDATE SET method = excluded.method, body_hash = excluded.body_hash,
      answer = excluded.answer, at_ms = excluded.at_ms;
  END IF;
  IF cardinality(blobs) > 0 THEN
    INSERT INTO blob_chunk(name, number, bytes, at_ms)
    SELECT DISTINCT ON (b.name) b.name, 0, b.bytes, now_ms
    FROM unnest(blobs) AS b WHERE won[b.i] IS NOT NULL AND b.bytes IS NOT NULL
    ON CONFLICT (name, number) DO UPDATE SET at_ms = excluded.at_ms;
    INSERT INTO blob_use(name, session_id)
    SELECT b.name, won[b.i] FROM unnest(blobs) AS b WHERE won[b.i] IS NOT NULL
    ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(charges) > 0 THEN
    INSERT INTO charge(account, tokens, micro_usd)
    SELECT c.account, sum(c.tokens)::bigint, sum(c.micro_usd)::bigint
    FROM unnest(charges) AS c WHERE won[c.i] IS NOT NULL GROUP BY c.account
    ON CONFLICT (account) DO UPDATE SET tokens = charge.tokens + excluded.tokens,
      micro_usd = charge.micro_usd + excluded.micro_usd;
  END IF;

  IF all_won THEN
    RETURN NEXT;
    RETURN;
  END IF;
  RETURN QUERY
  SELECT cursor_before, cursor_after, v.i,
    CASE WHEN s.last_append = v.id OR x.session_id IS NOT NULL THEN 1
         WHEN s.uid IS NULL AND v.epoch = 1 AND v.head = 0 THEN 3
         WHEN s.deleted_ms IS NULL AND s.epoch = v.epoch AND s.head = v.head THEN 3
         ELSE 2 END,
    coalesce(s.epoch, 0), coalesce(s.head, 0), t.answer, t.same
  FROM unnest(appends) AS v
  LEFT JOIN session s ON s.uid = v.uid
  LEFT JOIN event x ON x.session_id = s.id AND x.seq = v.new_head AND x.append_id = v.id AND v.new_head > v.head
  LEFT JOIN LATERAL (
    -- A damaged answer is none, and whether the command is the same one is unknown.
    SELECT CASE WHEN d.sum = sum_1(d) THEN d.answer END AS answer,
      coalesce(d.sum = sum_1(d), false) AND d.method = k.method AND d.body_hash = k.body_hash AS same
    FROM unnest(keys) WITH ORDINALITY AS k(i, principal, key, method, body_hash, answer, n)
    JOIN idempotency d ON d.principal = k.principal AND d.key = k.key AND (d.at_ms > oldest_key_ms OR d.sum IS DISTINCT FROM sum_1(d))
    WHERE k.i = v.i AND v.i = ANY (taken) ORDER BY k.n LIMIT 1) AS t ON true
  WHERE won[v.i] IS NULL;
END $$;
