-- What a node wants of a provider, by lane and group: a JSON list. Text, because a group may contain \u0000. Nodes of an
-- earlier version leave it empty.
ALTER TABLE provider_share ADD COLUMN wants text NOT NULL DEFAULT '[]';
