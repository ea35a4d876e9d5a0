// The state of the page: rows of the fleet, open approvals, the connection. ONE stream feeds it: the fleet's, or that of the
// session on display (`follow`), because a browser allows only six connections to a server for all its tabs.

import { applyEvent, asks, describe, settles } from './apply.js';

/** How often changed rows are read again. */
const REFRESH = 700;
/** Rows of one request; the daemon's default for `limits.list_rows`. */
const PAGE = 200;
/** Rows that are read at first, and whenever the table's window comes near the end of those. */
const FIRST_ROWS = 5_000;
const MORE_ROWS = 1_000;
/** Rows that the page keeps; the rest stays with the daemon. */
export const MOST_ROWS = 20_000;
/** Orders that the daemon knows. */
const SORTS = ['updated', 'name', 'model', 'state', 'steps', 'tokens', 'cost'];
/** States that can begin and end without an event, and how often they are read again. */
const MOVING = /^(queued|starting|backing_off|compacting|running|waiting\((permit|rate_limit|provider|child|quota|credentials|workspace))/;
const RECHECK = 3_000;
/** How far the page looks back for the last events, and which of them are short and say something. */
const RECALL = 2_000;
const RECALLED = ['turn.started', 'turn.finished', 'model.failed', 'tool.started', 'approval.asked', 'approval.decided', 'session.paused', 'session.resumed'];
/** Without a fleet stream, approvals are read this often. */
const POLL = 4_000;

/** @typedef {{states: string[], labels: string, search: string, sort: string, desc: boolean, all: boolean}} View */
/** @typedef {{items: import('./types.js').Row[], next: string|null}} Page */
/** @typedef {{rows: boolean, order: boolean, approvals: boolean, connection: boolean, changed: Set<string>}} Change */

/** A tab that is hidden has no frames. */
const NO_FRAME = 300;

/** Settles when the browser has painted what is in the document now, or cannot. */
const painted = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, NO_FRAME);
});

const nothing = () => ({ rows: false, order: false, approvals: false, connection: false, changed: new Set() });

export class Store {
  /**
   * @param {import('./client.js').Client} client
   * @param {Promise<Page|null>} early the first page, if somebody has asked for it
   */
  constructor(client, early = Promise.resolve(null)) {
    this.client = client;
    this.early = early;
    /** Settles once the first rows are on the screen. What can wait for that does: it would compete for the processor. */
    this.shown = early.then(painted);
    /** @type {Map<string, import('./types.js').Row>} */
    this.rows = new Map();
    /** @type {import('./types.js').Approval[]} */
    this.approvals = [];
    /** @type {import('./types.js').Connection} */
    this.connection = { state: 'connecting' };
    /** Whether the first page of the fleet and the approvals are here. */
    this.loaded = false;
    /** Whether all rows are here, and not only the newest. */
    this.complete = false;
    /** @type {View} */
    this.view = { states: [], labels: '', search: '', sort: 'created', desc: true, all: false };
    /** Where the next page begins. @type {string|null} */
    this.next = null;
    this.busy = false;
    this.rechecked = 0;
    /** What happened last in sessions that are silent since. @type {Map<string, string>} */
    this.lasts = new Map();
    this.recalled = false;
    /** @type {Error|null} */
    this.error = null;
    /** @type {Set<(change: Change) => void>} */
    this.listeners = new Set();
    /** @type {Change} */
    this.change = nothing();
    this.frame = 0;
    /** @type {Set<string>} */
    this.dirty = new Set();
    /** @type {string|null} */
    this.cursor = null;
    /** @type {AbortController|null} */
    this.fleet = null;
    this.loading = 0;
    this.timer = 0;
    this.approvalsAsked = false;
  }

  /**
   * `fn` is called at most once per animation frame, with what changed.
   * @param {(change: Change) => void} fn
   * @returns {() => void}
   */
  subscribe(fn) {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }

  /** @param {string} [row] */
  touch(row) {
    if (row) this.change.changed.add(row);
    if (this.frame) return;
    // A hidden tab has no frames, but its title counts.
    const later = document.hidden ? (/** @type {FrameRequestCallback} */ fn) => window.setTimeout(fn, 200) : requestAnimationFrame;
    this.frame = later(() => {
      this.frame = 0;
      this.tell();
    });
  }

  /** Tells the listeners what changed since the last time. */
  tell() {
    const change = this.change;
    this.change = nothing();
    for (const fn of [...this.listeners]) fn(change);
  }

  /** Starts the fleet stream. */
  start() {
    if (this.fleet) return;
    const stop = new AbortController();
    this.fleet = stop;
    // Once the stream runs, the rows are read again.
    if (!this.loaded) void this.load();
    void this.shown.then(() => this.client.stream('/events', {
      after: this.cursor,
      signal: stop.signal,
      onState: (connection) => this.connect(connection),
      onEnd: (error) => {
        // A cursor of another data directory: start over.
        this.cursor = null;
        this.error = error;
        this.fleet = null;
        if (error.status === 400) this.start();
        else this.connect({ state: 'waiting', why: error.message, retryAt: Date.now() + 3_600_000 });
      },
      onEvent: (message) => this.heard(message),
    }));
  }

  stop() {
    this.fleet?.abort();
    this.fleet = null;
    clearTimeout(this.timer);
    this.timer = 0;
  }

  /**
   * Follows another stream in place of the fleet's, until `signal` aborts. Approvals stay current meanwhile, and the fleet
   * continues afterwards without a gap.
   * @param {string} path
   * @param {import('./client.js').StreamOptions & {query?: Record<string, any>, signal: AbortSignal}} options
   */
  follow(path, options) {
    this.stop();
    const poll = setInterval(() => this.readApprovals(), POLL);
    if (!this.loaded) void this.load();
    options.signal.addEventListener('abort', () => {
      clearInterval(poll);
      this.start();
    }, { once: true });
    return this.client.stream(path, {
      ...options,
      onState: (connection) => {
        this.connect(connection);
        options.onState?.(connection);
      },
      onEvent: (message) => {
        if (message.event === '' && message.data) this.happened(message.data);
        options.onEvent(message);
      },
    });
  }

  /** @param {import('./types.js').Connection} connection */
  connect(connection) {
    this.connection = connection;
    this.change.connection = true;
    this.touch();
  }

  /** @param {import('./types.js').Message} message */
  heard(message) {
    if (message.id !== null) this.cursor = message.id;
    if (message.event === '' && message.data) {
      this.happened(message.data);
    } else if (message.event === 'synced') {
      if (message.data?.cursor !== undefined) this.cursor = String(message.data.cursor);
      // Whatever was read before the stream began may be old by now.
      void this.load();
      if (!this.recalled) void this.recall(Number(this.cursor));
    }
  }

  /**
   * Reads the latest events before this cursor, for the column "last event" of sessions that are silent now.
   * @param {number} cursor
   */
  async recall(cursor) {
    this.recalled = true;
    try {
      const { items } = await this.client.get('/events', { after: Math.max(0, cursor - RECALL), kinds: RECALLED, limit: 1000 });
      for (const { event } of items) {
        const row = this.rows.get(event.session);
        if (row && (!row.last || this.lasts.has(event.session))) row.last = describe(event);
        this.lasts.set(event.session, describe(event));
      }
      this.change.rows = true;
      this.touch();
    } catch {
      // Without it, the column shows times.
    }
  }

  /** @param {import('./types.js').LogEvent} event */
  happened(event) {
    this.lasts.delete(event.session);
    const old = this.rows.get(event.session);
    const row = applyEvent(old, event);
    if (row) this.rows.set(event.session, row);
    this.change.rows = true;
    if (!old) {
      this.change.order = true;
      this.trim();
    }
    if (event.type === 'session.deleted') this.forget(event.session);
    if (asks(event)) this.readApprovals();
    else if (settles(event) && this.approvals.some((open) => open.session === event.session)) this.readApprovals();
    this.mark(event.session);
    this.touch(event.session);
  }

  /** A page that stays open for days must not keep every session that ever was. */
  trim() {
    if (this.rows.size < MOST_ROWS * 1.1) return;
    this.complete = false;
    for (const [id, { state }] of this.rows) {
      if (this.rows.size <= MOST_ROWS) return;
      if (state === 'closed' || state === 'idle' || state === 'failed') this.rows.delete(id);
    }
  }

  /** @param {string} session */
  forget(session) {
    this.rows.delete(session);
    this.change.rows = true;
    this.change.order = true;
    this.touch();
  }

  /** The row is out of date. @param {string} session */
  mark(session) {
    this.dirty.add(session);
    if (!this.timer) this.timer = window.setTimeout(() => void this.refresh(), REFRESH);
  }

  /** Reads the rows that changed. */
  async refresh() {
    const ids = [...this.dirty].slice(0, PAGE);
    for (const id of ids) this.dirty.delete(id);
    try {
      await this.readRows(ids);
      this.error = null;
    } catch (error) {
      this.error = /** @type {Error} */ (error);
    }
    this.timer = this.dirty.size ? window.setTimeout(() => void this.refresh(), REFRESH) : 0;
  }

  /** @param {string[]} ids */
  async readRows(ids) {
    if (!ids.length) return;
    const { items } = await this.client.get('/sessions', { sessions: ids, all: true });
    this.take(items);
    const found = new Set(items.map((/** @type {import('./types.js').Row} */ row) => row.session));
    for (const id of ids) if (!found.has(id)) this.forget(id);
  }

  /** @param {import('./types.js').Row[]} rows */
  take(rows) {
    for (const row of rows) {
      const old = this.rows.get(row.session);
      // An answer that was on its way while events came is older than the row.
      if (old && old.seq > row.seq) {
        this.mark(row.session);
        continue;
      }
      if (!old) this.change.order = true;
      const last = old?.last ?? this.lasts.get(row.session);
      if (last) row.last = last;
      this.rows.set(row.session, row);
      this.change.changed.add(row.session);
    }
    this.change.rows = true;
    this.touch();
  }

  /**
   * What the fleet's table shows. If not all rows are here, the daemon filters and sorts them.
   * @param {View} view
   */
  setView(view) {
    const same = JSON.stringify(view) === JSON.stringify(this.view);
    const closed = view.all && !this.view.all;
    this.view = view;
    if (closed) this.complete = false;
    if (!same && this.loaded && !this.complete) void this.load();
  }

  /** Loads the next rows, if there are more: the table's window is near its end. */
  more() {
    if (this.next && !this.busy) void this.load(this.next);
  }

  /**
   * Reads the fleet, page by page, and the approvals. A later call ends an earlier one.
   * @param {string|null} [after] continue after this session
   */
  async load(after = null) {
    const run = ++this.loading;
    if (!after) this.readApprovals();
    const { states, labels, search, sort, desc, all } = this.view;
    const filtered = Boolean(states.length || labels || search);
    const seen = new Set();
    const before = new Set(this.rows.keys());
    const most = after ? MORE_ROWS : FIRST_ROWS;
    this.busy = true;
    this.next = after;
    try {
      do {
        const order = { sort: SORTS.includes(sort) ? sort : null, ascending: !desc, search };
        const early = this.loaded ? null : await this.early;
        /** @type {Page} */
        const page = early ?? await this.client.get('/sessions', { limit: PAGE, after: this.next, all, states, labels, ...order });
        const first = !this.loaded;
        this.loaded = true;
        this.take(page.items);
        this.change.order = true;
        // The very first rows belong in the first frame.
        if (first) {
          this.tell();
          await this.shown;
        }
        if (run !== this.loading) return;
        for (const row of page.items) seen.add(row.session);
        this.error = null;
        this.next = page.next;
      } while (this.next && seen.size < most && this.rows.size < MOST_ROWS);
      if (!this.next && !filtered) {
        this.complete = true;
        // What is gone meanwhile: closed or deleted.
        if (!after) for (const id of before) if (!seen.has(id) && !this.dirty.has(id)) this.rows.delete(id);
      }
      if (this.rows.size >= MOST_ROWS) this.next = null;
      this.change.order = true;
      this.change.rows = true;
    } catch (error) {
      if (run !== this.loading) return;
      this.error = /** @type {Error} */ (error);
      this.change.rows = true;
    }
    this.busy = false;
    this.touch();
  }

  /**
   * Reads rows again that can change without an event, such as those that wait for a permit.
   * @param {string[]} ids
   */
  recheck(ids) {
    const now = Date.now();
    if (now - this.rechecked < RECHECK) return;
    this.rechecked = now;
    for (const id of ids) if (MOVING.test(this.rows.get(id)?.state ?? '')) this.mark(id);
  }

  /** Reads the open approvals, at most one request at a time. */
  readApprovals() {
    if (this.approvalsAsked) return;
    this.approvalsAsked = true;
    setTimeout(async () => {
      this.approvalsAsked = false;
      try {
        const { items } = await this.client.get('/approvals');
        this.approvals = items;
        this.change.approvals = true;
        this.touch();
      } catch (error) {
        this.error = /** @type {Error} */ (error);
      }
    }, 60);
  }
}
