-- The incarnation that claimed a session although it may not run there.
ALTER TABLE session ADD COLUMN claimed_away bigint;

-- The same claim_2, which only locks the row of a session that the node owns already and may run. Its owner does not change, so
-- this need not wait for the appends of all nodes: a node that took over a thousand sessions claims them at once. Whoever takes
-- the session away meanwhile waits for the row, and fences what this claim returned.
CREATE OR REPLACE FUNCTION claim_2(p_uid text, me bigint, elsewhere boolean)
RETURNS TABLE(outcome int, holder text, home text, moved boolean, away boolean, workdir text, lacking text, new_epoch bigint,
  at_head bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  mine text := '';
  mine_labels jsonb := '{}';
  found_id bigint;
  found_root text;
  required jsonb;
  before text;
BEGIN
  outcome := 0; holder := ''; home := ''; moved := false; away := false; workdir := ''; lacking := ''; new_epoch := 0; at_head := 0;
  SELECT s.id, s.node INTO found_id, before FROM session s
  WHERE s.uid = p_uid AND s.owner = me AND s.claimed_away IS DISTINCT FROM me AND s.deleted_ms IS NULL FOR UPDATE;
  IF FOUND THEN
    SELECT n.name INTO holder FROM node n WHERE n.id = me AND NOT n.dead;
    IF NOT FOUND THEN
      holder := ''; outcome := 2; RETURN NEXT; RETURN;
    END IF;
    UPDATE session s SET epoch = s.epoch + 1, node = holder
    WHERE s.id = found_id RETURNING s.epoch, s.head, home_1(s.summary, before) INTO new_epoch, at_head, before;
    moved := before NOT IN ('""', to_json(holder)::text);
    RETURN NEXT; RETURN;
  END IF;
  PERFORM 1 FROM stream FOR UPDATE;
  IF me IS NOT NULL THEN
    SELECT n.name, n.labels INTO mine, mine_labels FROM node n WHERE n.id = me AND NOT n.dead;
    IF NOT FOUND THEN
      outcome := 2; RETURN NEXT; RETURN;
    END IF;
  END IF;
  SELECT s.id, s.root, home_1(coalesce(r.summary, s.summary), coalesce(r.node, s.node)), workdir_1(s.summary),
    requires_1(coalesce(r.summary, s.summary)), s.node
  INTO found_id, found_root, home, workdir, required, before
  FROM session s LEFT JOIN session r ON r.uid = s.root WHERE s.uid = p_uid AND s.deleted_ms IS NULL;
  IF NOT FOUND THEN
    home := ''; workdir := ''; outcome := 1; RETURN NEXT; RETURN;
  END IF;
  -- The stream of rules belongs to no node: each claims it to write to it.
  IF me IS NOT NULL AND p_uid <> repeat('0', 32) THEN
    SELECT n.name INTO holder FROM session s JOIN node n ON n.id = s.owner
    WHERE s.root = found_root AND s.deleted_ms IS NULL AND s.owner <> me AND NOT n.dead
      AND may_run_1(n.id, found_root) LIMIT 1;
    IF FOUND THEN
      outcome := 3; RETURN NEXT; RETURN;
    END IF;
    away := NOT may_run_1(me, found_root);
    IF NOT required <@ mine_labels THEN
      lacking := required::text;
    END IF;
  END IF;
  holder := mine;
  IF away AND NOT elsewhere THEN
    outcome := 4; RETURN NEXT; RETURN;
  END IF;
  UPDATE session s SET epoch = s.epoch + 1, owner = me, node = CASE WHEN away THEN s.node ELSE mine END,
    claimed_away = CASE WHEN away THEN me END
  WHERE s.id = found_id RETURNING s.epoch, s.head, home_1(s.summary, before) INTO new_epoch, at_head, before;
  moved := me IS NOT NULL AND NOT away AND before NOT IN ('""', to_json(mine)::text);
  RETURN NEXT;
END $$;

-- The same append_1, two to ten times as fast for a batch of a few appends. Its plans are made once per connection: they took
-- longer than the statements. They are often made while the tables are empty, and must suit full ones. So all kinds of scans and
-- joins are off but a lookup of each row: a bitmap scan, unlike an index scan, is never one of a whole table. The costs of such a
-- plan would start the JIT compiler.
-- `unnest` in the list of a SELECT has no temporary storage for each array, as it has in FROM.
CREATE OR REPLACE FUNCTION append_1(
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
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
#variable_conflict use_column
DECLARE
  before bigint;
  written bigint;
  taken bigint[] := '{}';
  -- The session of each append, or NULL if the append is refused.
  won bigint[];
  won_append int[];
  won_session bigint[];
BEGIN
  SELECT s.cursor INTO STRICT before FROM stream s FOR UPDATE;
  IF cardinality(k_append) > 0 THEN
    SELECT coalesce(array_agg(DISTINCT k.i), '{}') INTO taken
    FROM unnest(k_append, k_principal, k_key) AS k(i, principal, key)
    JOIN idempotency d ON d.principal = k.principal AND d.key = k.key AND d.at_ms > oldest_key_ms;
  END IF;
  IF 0 = ANY (a_head) THEN
    INSERT INTO session(uid, root, owner, node, epoch, created_ms, updated_ms)
    SELECT v.uid, coalesce(p.root, v.uid), append_1.node, coalesce((SELECT n.name FROM node n WHERE n.id = append_1.node), ''), 1,
      now_ms, now_ms
    FROM (SELECT unnest(a_uid) AS uid, unnest(a_epoch) AS epoch, unnest(a_head) AS head, unnest(a_summary) AS summary,
        generate_series(1, cardinality(a_uid)) AS i) AS v
    -- Not as JSON: it may contain \u0000, which PostgreSQL refuses. A text in it cannot contain these quotes.
    LEFT JOIN session p ON p.uid = replace(substring(v.summary FROM '"parent":"([0-9a-f-]+)"'), '-', '')
    WHERE v.epoch = 1 AND v.head = 0 AND v.i <> ALL (taken)
    ON CONFLICT (uid) DO NOTHING;
  END IF;
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
    FROM (SELECT unnest(a_uid) AS uid, unnest(a_epoch) AS epoch, unnest(a_head) AS head, unnest(a_new_head) AS new_head,
        unnest(a_id) AS id, unnest(a_summary) AS summary, unnest(a_name) AS name, unnest(a_state) AS state,
        unnest(a_closed) AS closed, unnest(a_labels) AS labels, unnest(a_resumable) AS resumable, unnest(a_wake) AS wake,
        unnest(a_sum) AS sum, unnest(a_updated) AS updated, unnest(a_sort_name) AS sort_name, unnest(a_model) AS model,
        unnest(a_urgency) AS urgency, unnest(a_steps) AS steps, unnest(a_tokens) AS tokens, unnest(a_cost) AS cost,
        unnest(a_searched) AS searched, generate_series(1, cardinality(a_uid)) AS i) AS v
    WHERE s.uid = v.uid AND s.deleted_ms IS NULL AND s.epoch = v.epoch AND s.head = v.head AND s.last_append <> v.id
      AND v.i <> ALL (taken)
    RETURNING v.i, s.id)
  SELECT coalesce(array_agg(w.i), '{}'), coalesce(array_agg(w.id), '{}') INTO won_append, won_session FROM won_rows w;
  won := array_fill(NULL::bigint, ARRAY[cardinality(a_uid)]);
  FOR k IN 1 .. cardinality(won_append) LOOP
    won[won_append[k]] := won_session[k];
  END LOOP;

  INSERT INTO event(cursor, session_id, seq, epoch, at_ms, kind, append_id, body, sum)
  SELECT before + row_number() OVER (ORDER BY e.n), won[e.i], e.seq, a_epoch[e.i], e.at, e.kind,
    CASE WHEN e.last THEN a_id[e.i] END, e.body, e.sum
  FROM (SELECT unnest(e_append) AS i, unnest(e_seq) AS seq, unnest(e_at) AS at, unnest(e_kind) AS kind,
      unnest(e_last) AS last, unnest(e_body) AS body, unnest(e_sum) AS sum, generate_series(1, cardinality(e_seq)) AS n) AS e
  WHERE won[e.i] IS NOT NULL;
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
    WHERE won[k.i] IS NOT NULL
    ON CONFLICT (principal, key) DO UPDATE SET method = excluded.method, body_hash = excluded.body_hash,
      answer = excluded.answer, at_ms = excluded.at_ms;
  END IF;
  IF cardinality(b_append) > 0 THEN
    -- Large blobs are there already, and have no bytes here.
    INSERT INTO blob_chunk(name, number, bytes, at_ms)
    SELECT DISTINCT ON (b.name) b.name, 0, b.bytes, now_ms
    FROM unnest(b_append, b_name, b_bytes) AS b(i, name, bytes) WHERE won[b.i] IS NOT NULL AND b.bytes IS NOT NULL
    ON CONFLICT (name, number) DO UPDATE SET at_ms = excluded.at_ms;
    INSERT INTO blob_use(name, session_id)
    SELECT b.name, won[b.i] FROM unnest(b_append, b_name) AS b(i, name) WHERE won[b.i] IS NOT NULL
    ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(c_append) > 0 THEN
    INSERT INTO charge(account, tokens, micro_usd)
    SELECT c.account, sum(c.tokens)::bigint, sum(c.micro_usd)::bigint
    FROM unnest(c_append, c_account, c_tokens, c_micro_usd) AS c(i, account, tokens, micro_usd)
    WHERE won[c.i] IS NOT NULL GROUP BY c.account
    ON CONFLICT (account) DO UPDATE SET tokens = charge.tokens + excluded.tokens,
      micro_usd = charge.micro_usd + excluded.micro_usd;
  END IF;

  IF array_position(won, NULL) IS NULL THEN
    -- Nothing was refused.
    RETURN QUERY SELECT n.i, 0, 0::bigint, 0::bigint, before + written, NULL::text, NULL::boolean
    FROM generate_series(1, cardinality(won)::bigint) AS n(i);
    RETURN;
  END IF;
  RETURN QUERY
  SELECT v.i,
    CASE WHEN won[v.i] IS NOT NULL THEN 0
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

-- Those of some trees that a node may run: it has the labels, and the directories are there. This is the one place that decides
-- so. It looks at a thousand trees in less than half the time that a thousand calls for one took.
CREATE FUNCTION runnable_1(p_node bigint, p_roots text[]) RETURNS SETOF text LANGUAGE sql STABLE AS $$
  SELECT t.root FROM unnest(p_roots) AS t(root) JOIN node n ON n.id = p_node LEFT JOIN session r ON r.uid = t.root
  WHERE coalesce(requires_1(r.summary) <@ n.labels, true)
    AND (coalesce(home_1(r.summary, r.node) IN ('""', to_json(n.name)::text), true)
      OR NOT EXISTS (SELECT 1 FROM session s WHERE s.root = t.root AND s.deleted_ms IS NULL AND NOT s.closed
                     AND NOT travels_1(s.summary, n.shared_paths)))
$$;

CREATE OR REPLACE FUNCTION may_run_1(p_node bigint, p_root text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM runnable_1(p_node, ARRAY[p_root]))
$$;

-- Takes over trees like adopt_2, and claims the sessions that continue now, because a claim for each would take a commit each. It
-- asks once which trees this node may run, because it holds the lock of the
-- stream. Without a new epoch, the session continues later and was not claimed.
CREATE FUNCTION adopt_3(me bigint)
RETURNS TABLE(uid text, wake_at_ms bigint, new_epoch bigint, at_head bigint, moved_to text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  mine text;
  mine_standing text;
  open_nodes bigint;
  owned bigint;
  everything bigint;
  free text[];
  chosen text[];
BEGIN
  PERFORM 1 FROM stream FOR UPDATE;
  SELECT n.name, n.standing INTO mine, mine_standing FROM node n
  WHERE n.id = me AND NOT n.dead AND n.standing IN ('open', 'cordoned');
  IF NOT FOUND THEN
    RETURN;
  END IF;
  SELECT count(*) INTO open_nodes FROM node WHERE NOT dead AND lease_until > clock_timestamp() AND standing = 'open';
  SELECT count(*), count(*) FILTER (WHERE s.owner = me) INTO everything, owned FROM session s
  WHERE (s.resumable OR s.wake_at_ms IS NOT NULL) AND s.deleted_ms IS NULL;
  SELECT array_agg(DISTINCT s.root) INTO free FROM session s LEFT JOIN node n ON n.id = s.owner
  WHERE (s.resumable OR s.wake_at_ms IS NOT NULL) AND s.deleted_ms IS NULL AND s.summary IS NOT NULL
    AND (s.owner IS NULL OR n.id IS NULL OR n.dead)
    AND NOT EXISTS (SELECT 1 FROM session r JOIN node o ON o.id = r.owner
                    WHERE r.root = s.root AND r.deleted_ms IS NULL AND r.owner <> me AND NOT o.dead
                      AND may_run_1(o.id, s.root));
  SELECT array_agg(t.root) INTO chosen FROM (
    SELECT f.root, f.at_home, row_number() OVER (PARTITION BY f.at_home ORDER BY f.root) AS number FROM (
      SELECT c.root, coalesce(home_1(r.summary, r.node) = to_json(mine)::text, false) AS at_home
      FROM runnable_1(me, free) AS c(root) LEFT JOIN session r ON r.uid = c.root) AS f) AS t
  WHERE (mine_standing = 'open' AND t.number <= greatest(ceil(everything::numeric / greatest(open_nodes, 1)) - owned, 1))
    OR (t.at_home AND NOT EXISTS (SELECT 1 FROM node l WHERE l.id <> me AND NOT l.dead AND l.lease_until > clock_timestamp()
                                  AND l.standing = 'open' AND may_run_1(l.id, t.root)));
  RETURN QUERY
  WITH before AS (
    SELECT s.id, home_1(s.summary, s.node) NOT IN ('""', to_json(mine)::text) AS moved FROM session s
    WHERE s.root = ANY (chosen) AND s.deleted_ms IS NULL AND s.owner IS DISTINCT FROM me),
  taken AS (
    UPDATE session s SET owner = me, epoch = epoch + 1, node = CASE WHEN s.resumable THEN mine ELSE s.node END,
      claimed_away = NULL
    FROM before b WHERE s.id = b.id
    RETURNING s.uid, s.resumable, s.wake_at_ms, s.summary, s.epoch, s.head, b.moved)
  SELECT t.uid, CASE WHEN t.resumable THEN 0 ELSE t.wake_at_ms END, CASE WHEN t.resumable THEN t.epoch END, t.head,
    CASE WHEN t.moved THEN mine END
  FROM taken t WHERE t.summary IS NOT NULL AND (t.resumable OR t.wake_at_ms IS NOT NULL);
END $$;
