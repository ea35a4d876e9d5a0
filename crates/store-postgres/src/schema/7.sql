-- Where and how the sessions of a token may work. A token of an earlier version has no rights until a node settles them.
ALTER TABLE token ADD COLUMN rights text;
