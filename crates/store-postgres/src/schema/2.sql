-- How many calls to a provider a node may have in flight. Nodes change their rows under an advisory lock.
CREATE TABLE provider_share(
  provider text COLLATE "C" NOT NULL,
  node bigint NOT NULL REFERENCES node(id) ON DELETE CASCADE,
  wanted bigint NOT NULL,
  permits bigint NOT NULL,
  PRIMARY KEY(provider, node)) WITH (fillfactor = 50);
