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
