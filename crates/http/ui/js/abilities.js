// What the API of this daemon has. The page is a part of the same program, so this is known when it is built.

export const HAS = {
  /** `fleet.history`: counters of the last hour. */
  history: true,
  /** `session.list` takes `sessions`: some rows with one request. */
  batches: true,
  /** `session.list` takes `sort`, `ascending` and `search`. */
  sorts: true,
  /** `audit.query`. */
  audit: true,
  /** `usage.query` groups by `day`. */
  days: false,
  /** `node.log`: the tail of the log file. */
  log: true,
};
