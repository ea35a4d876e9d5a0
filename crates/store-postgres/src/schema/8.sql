-- The public keys of nodes, as hexadecimal digits. Who reads this table cannot pose as a node.
CREATE TABLE node_key(
  key text COLLATE "C" NOT NULL,
  name text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- In force until then; NULL: as long as it is not removed.
  until timestamptz,
  -- No node joins with it any more.
  removed boolean NOT NULL DEFAULT false,
  -- Two nodes have the same key if the data directory of one is a copy.
  PRIMARY KEY (key, name));
CREATE INDEX node_key_by_name ON node_key(name);

-- The names of nodes whose keys were removed: they join again only after someone admits them.
CREATE TABLE node_barred(
  name text PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp());

-- Nodes of earlier versions read this column until they are upgraded. It cannot hold anything.
ALTER TABLE node DROP COLUMN secret;
ALTER TABLE node ADD COLUMN secret text GENERATED ALWAYS AS (''::text) STORED;
-- The current key of the incarnation; empty: its version has none.
ALTER TABLE node ADD COLUMN key text NOT NULL DEFAULT '';

-- What nodes of earlier versions join with.
DROP FUNCTION join_1;
CREATE OR REPLACE FUNCTION join_2(p_name text, p_identity text, p_address text, p_secret text, p_version text, ttl_ms bigint,
  p_shared_paths text[], p_labels text)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'this database was upgraded: nodes need keys; upgrade this node';
END $$;

-- Joins a node: 0 done, 1 a live node has the name, 2 its key was removed, 3 the keys of the name were removed and nobody
-- admitted it again. `replaced`: the name had another key.
CREATE FUNCTION join_3(p_name text, p_identity text, p_address text, p_key text, p_version text, ttl_ms bigint,
  p_shared_paths text[], p_labels text)
RETURNS TABLE(outcome int, incarnation bigint, replaced boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  made bigint;
  others boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(112603926429699);
  IF EXISTS (SELECT 1 FROM node_key WHERE key = p_key AND removed) THEN
    RETURN QUERY SELECT 2, NULL::bigint, false;
    RETURN;
  END IF;
  IF EXISTS (SELECT 1 FROM node_barred WHERE name = p_name) THEN
    RETURN QUERY SELECT 3, NULL::bigint, false;
    RETURN;
  END IF;
  UPDATE node SET dead = true WHERE identity = p_identity AND NOT dead;
  IF EXISTS (SELECT 1 FROM node WHERE name = p_name AND NOT dead AND lease_until > clock_timestamp()) THEN
    RETURN QUERY SELECT 1, NULL::bigint, false;
    RETURN;
  END IF;
  UPDATE node SET dead = true WHERE name = p_name AND NOT dead;
  DELETE FROM node n WHERE n.dead AND n.lease_until < clock_timestamp() - interval '1 hour'
    AND NOT EXISTS (SELECT 1 FROM session s WHERE s.owner = n.id);
  WITH before AS (
    UPDATE node_key SET until = clock_timestamp() WHERE name = p_name AND key <> p_key AND until IS NULL AND NOT removed RETURNING 1)
  SELECT EXISTS (SELECT 1 FROM before) INTO others;
  INSERT INTO node_key(key, name) SELECT p_key, p_name WHERE p_key <> ''
  ON CONFLICT (key, name) DO UPDATE SET until = NULL;
  INSERT INTO node(name, identity, address, key, version, standing, lease_until, shared_paths, labels)
  VALUES (p_name, p_identity, p_address, p_key, p_version,
    -- A node stays cordoned over a restart.
    coalesce((SELECT o.standing FROM node o WHERE o.name = p_name AND o.standing = 'cordoned'
              AND o.id = (SELECT max(l.id) FROM node l WHERE l.name = p_name)), 'open'),
    clock_timestamp() + ttl_ms * interval '1 ms', p_shared_paths, p_labels::jsonb)
  RETURNING id INTO made;
  RETURN QUERY SELECT 0, made, others;
END $$;

-- Replaces the key of a node. Returns whether the node is a member.
CREATE FUNCTION rotate_key_1(me bigint, p_key text, grace_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  mine text;
BEGIN
  PERFORM pg_advisory_xact_lock(112603926429699);
  SELECT n.name INTO mine FROM node n WHERE n.id = me AND NOT n.dead;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE node_key SET removed = true, until = clock_timestamp() + grace_ms * interval '1 ms'
  WHERE name = mine AND NOT removed AND until IS NULL;
  INSERT INTO node_key(key, name) VALUES (p_key, mine);
  UPDATE node SET key = p_key WHERE id = me;
  RETURN true;
END $$;

-- Removes the keys of a node for good, and ends its membership. Returns whether it had one.
CREATE FUNCTION remove_key_1(p_name text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(112603926429699);
  IF NOT EXISTS (SELECT 1 FROM node_key WHERE name = p_name) THEN
    RETURN false;
  END IF;
  UPDATE node_key SET removed = true, until = NULL WHERE key IN (SELECT key FROM node_key WHERE name = p_name);
  INSERT INTO node_barred(name) VALUES (p_name) ON CONFLICT DO NOTHING;
  UPDATE node SET dead = true WHERE name = p_name AND NOT dead;
  RETURN true;
END $$;
