-- Working directories below one of these exist on each node that names it. As in JSON, without the quotes, because list
-- rows are compared as text: they may contain \u0000, which PostgreSQL does not accept in a JSON value.
ALTER TABLE node ADD COLUMN shared_paths text[] NOT NULL DEFAULT '{}';
-- What a session may require of its node.
ALTER TABLE node ADD COLUMN labels jsonb NOT NULL DEFAULT '{}';
-- How much it has to do: thousandths of its limits. Nodes of an earlier version never say.
ALTER TABLE node ADD COLUMN load bigint;

-- The working directory of a list row, as in JSON. Labels, which a client chooses, come later in the row.
CREATE FUNCTION workdir_1(summary text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(substring(summary FROM '"workdir":"((?:[^"\\]|\\.)*)"'), '')
$$;

-- The node on which the working directory of a session is, as in JSON with its quotes: the one that its log names, else the
-- one that ran it last. No label can look like this: its value is a text.
CREATE FUNCTION home_1(summary text, node text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(substring(summary FROM '"place":\{"home":("(?:[^"\\]|\\.)+")'), to_json(node)::text)
$$;

-- Whether a directory, as in JSON, is below one of these.
CREATE FUNCTION below_1(directory text, paths text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT directory !~ '/\.\.?(/|$)' AND EXISTS (SELECT 1 FROM unnest(paths) AS path
    WHERE directory = path OR left(directory, length(path) + 1) = path || '/')
$$;

-- Whether the files of a session are wherever it runs: below a shared path, or in the store.
CREATE FUNCTION travels_1(summary text, paths text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(summary ~ '"place":\{(?:"home":"(?:[^"\\]|\\.)*",)?"kept":true', false)
    OR below_1(workdir_1(summary), paths)
$$;

-- The labels that a session requires of its node: plain words, so this part of the row is JSON for PostgreSQL, too.
CREATE FUNCTION requires_1(summary text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(substring(summary FROM '"requires":(\{[^{}]*\})')::jsonb, '{}')
$$;

-- Whether a node may run the tree of a session: it has the labels, and the directories are there. This is the one place that
-- decides so.
CREATE FUNCTION may_run_1(p_node bigint, p_root text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT requires_1(r.summary) <@ n.labels FROM session r WHERE r.uid = p_root), true)
    AND (coalesce((SELECT home_1(r.summary, r.node) IN ('""', to_json(n.name)::text) FROM session r WHERE r.uid = p_root), true)
      OR NOT EXISTS (SELECT 1 FROM session s WHERE s.root = p_root AND s.deleted_ms IS NULL AND NOT s.closed
                     AND NOT travels_1(s.summary, n.shared_paths)))
  FROM node n WHERE n.id = p_node
$$;

-- Joins a node, like join_1.
CREATE FUNCTION join_2(p_name text, p_identity text, p_address text, p_secret text, p_version text, ttl_ms bigint,
  p_shared_paths text[], p_labels text)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
  incarnation bigint;
BEGIN
  SELECT j INTO incarnation FROM join_1(p_name, p_identity, p_address, p_secret, p_version, ttl_ms) AS j;
  IF incarnation IS NOT NULL THEN
    UPDATE node SET shared_paths = p_shared_paths, labels = p_labels::jsonb WHERE id = incarnation;
    RETURN NEXT incarnation;
  END IF;
END $$;

-- Takes over a session: like claim_1, and 4 it may not run here: its files are not here, or the node lacks labels. With
-- `elsewhere` it is taken over even then, by someone who needs no files or names others; it stays where it is at home.
CREATE FUNCTION claim_2(p_uid text, me bigint, elsewhere boolean)
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
  UPDATE session s SET epoch = s.epoch + 1, owner = me, node = CASE WHEN away THEN s.node ELSE mine END
  WHERE s.id = found_id RETURNING s.epoch, s.head, home_1(s.summary, before) INTO new_epoch, at_head, before;
  moved := me IS NOT NULL AND NOT away AND before NOT IN ('""', to_json(mine)::text);
  RETURN NEXT;
END $$;

-- Takes over the trees that continue by themselves, have no live owner and may run here, and returns what continues: all
-- that are at home here and may run nowhere else, and this node's share of the others. A cordoned node gets none of these. An
-- owner that may not run a tree had it for a command that needs no files: it does not count.
CREATE FUNCTION adopt_2(me bigint)
RETURNS TABLE(uid text, wake_at_ms bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  mine text;
  mine_standing text;
  open_nodes bigint;
  owned bigint;
  everything bigint;
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
  SELECT array_agg(t.root) INTO chosen FROM (
    SELECT f.root, f.at_home, row_number() OVER (PARTITION BY f.at_home ORDER BY f.root) AS number FROM (
      SELECT s.root, coalesce(bool_or(home_1(r.summary, r.node) = to_json(mine)::text), false) AS at_home
      FROM session s LEFT JOIN node n ON n.id = s.owner LEFT JOIN session r ON r.uid = s.root
      WHERE (s.resumable OR s.wake_at_ms IS NOT NULL) AND s.deleted_ms IS NULL AND s.summary IS NOT NULL
        AND (s.owner IS NULL OR n.id IS NULL OR n.dead)
        AND NOT EXISTS (SELECT 1 FROM session r JOIN node o ON o.id = r.owner
                        WHERE r.root = s.root AND r.deleted_ms IS NULL AND r.owner <> me AND NOT o.dead
                          AND may_run_1(o.id, s.root))
      GROUP BY s.root) AS f
    WHERE may_run_1(me, f.root)) AS t
  WHERE (mine_standing = 'open' AND t.number <= greatest(ceil(everything::numeric / greatest(open_nodes, 1)) - owned, 1))
    OR (t.at_home AND NOT EXISTS (SELECT 1 FROM node l WHERE l.id <> me AND NOT l.dead AND l.lease_until > clock_timestamp()
                                  AND l.standing = 'open' AND may_run_1(l.id, t.root)));
  RETURN QUERY
  WITH taken AS (
    UPDATE session s SET owner = me, epoch = epoch + 1
    WHERE s.root = ANY (chosen) AND s.deleted_ms IS NULL AND s.owner IS DISTINCT FROM me
    RETURNING s.uid, s.resumable, s.wake_at_ms, s.summary)
  SELECT t.uid, CASE WHEN t.resumable THEN 0 ELSE t.wake_at_ms END FROM taken t
  WHERE t.summary IS NOT NULL AND (t.resumable OR t.wake_at_ms IS NOT NULL);
END $$;
