// A session's log on this page: the newest part first, the rest behind it, and from then on the stream.

import { Fold } from './fold.js';

/** Events of the first page: enough to fill any screen. */
const TAIL = 800;
const PAGE = 1000;
/** The summary is read again at most this often. */
const REFRESH = 1000;

/** @typedef {import('../../types.js').LogEvent} LogEvent */
/** @typedef {import('./fold.js').Item} Item */
/** @typedef {{all?: boolean, items?: Set<Item>, summary?: boolean, delta?: any, older?: boolean}} Change */

export class Log {
  /**
   * @param {import('../../types.js').Context} ctx
   * @param {string} session
   */
  constructor(ctx, session) {
    this.ctx = ctx;
    this.session = session;
    this.stop = new AbortController();
    /** @type {LogEvent[]} without a gap, from `base + 1` on */
    this.events = [];
    /** Events up to this one are not loaded yet. */
    this.base = 0;
    this.fold = new Fold();
    /** @type {any} */
    this.summary = null;
    /** Tokens of the model's window; 0: unknown. */
    this.window = 0;
    /** Open questions of sub-agents, by sub-agent. @type {Map<string, import('../../types.js').Approval[]>} */
    this.asks = new Map();
    /** Text of the running call that was streamed before we came. */
    this.partial = '';
    /** How many events are loaded while `base` is not 0. */
    this.loaded = 0;
    /** @type {Set<(change: Change) => void>} */
    this.listeners = new Set();
    /** @type {any} */
    this.timer = 0;
    this.frame = 0;
    /** @type {any} */
    this.ended = null;
  }

  /** @param {(change: Change) => void} fn */
  subscribe(fn) {
    this.listeners.add(fn);
    return () => this.listeners.delete(fn);
  }

  /** @param {Change} change */
  tell(change) {
    for (const fn of this.listeners) fn(change);
  }

  get path() {
    return `/sessions/${encodeURIComponent(this.session)}`;
  }

  /** Loads the end of the log; the rest follows by itself. */
  async open() {
    const { client } = this.ctx;
    this.summary = await client.get(this.path, {}, this.stop.signal);
    this.session = this.summary.session;
    this.base = Math.max(0, this.summary.seq - TAIL);
    await this.read(this.base, this.events);
    this.rebuild();
    void this.follow();
    void this.older();
    void this.limits();
    void this.below();
  }

  dispose() {
    this.stop.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.listeners.clear();
  }

  /**
   * Reads events after `after` until the end, or until `to`.
   * @param {number} after
   * @param {LogEvent[]} into
   * @param {number} [to]
   */
  async read(after, into, to = Infinity) {
    for (let next = after; next !== null && next < to; ) {
      const limit = Math.min(PAGE, to - next);
      const page = await this.ctx.client.get(`${this.path}/events`, { after: next, limit }, this.stop.signal);
      for (const event of page.items) into.push(event);
      if (page.items.length === 0) break;
      next = page.next ?? Infinity;
      if (to !== Infinity) {
        this.loaded = into.length;
        this.tell({ older: true });
      }
    }
  }

  async older() {
    if (this.base === 0) return;
    /** @type {LogEvent[]} */
    const first = [];
    try {
      await this.read(0, first, this.base);
    } catch {
      if (!this.stop.signal.aborted) setTimeout(() => void this.older(), 3000);
      return;
    }
    this.events = first.slice(0, this.base).concat(this.events);
    this.base = 0;
    this.rebuild();
    this.tell({ older: true });
  }

  rebuild() {
    this.fold = new Fold();
    for (const event of this.events) this.fold.add(event);
    this.fold.dirty.clear();
    this.tell({ all: true });
  }

  follow() {
    const last = this.base + this.events.length;
    return this.ctx.store.follow(`${this.path}/events`, {
      after: last,
      query: { deltas: true, decides: this.ctx.can('approve') },
      signal: this.stop.signal,
      onEvent: (message) => this.heard(message),
      onEnd: (error) => {
        this.ended = error;
        this.tell({ summary: true });
      },
    });
  }

  /** @param {import('../../types.js').Message} message */
  heard({ event, data }) {
    if (event === '' && data) {
      // A reconnection may repeat an event; a gap cannot be.
      if (data.seq <= this.base + this.events.length) return;
      this.events.push(data);
      this.fold.add(data);
      this.soon();
      this.refresh();
    } else if (event === 'delta' && data) {
      if (data.type === 'status') this.status(data);
      else if (data.type === 'subagent.asks') this.asked(data.child, data.approvals ?? []);
      else this.tell({ delta: data });
    } else if (event === 'synced' && data?.status) {
      this.partial = data.partial ?? '';
      this.status(data.status);
      if (this.partial) this.tell({ delta: { type: 'partial', text: this.partial } });
    }
  }

  /** Changes are told once per frame. */
  soon() {
    if (this.frame) return;
    const tell = () => {
      this.frame = 0;
      const items = this.fold.dirty;
      this.fold.dirty = new Set();
      this.tell({ items });
    };
    // A hidden tab has no frames; it must not collect changes without end.
    this.frame = document.hidden ? window.setTimeout(tell, 500) : requestAnimationFrame(tell);
  }

  /** @param {any} status */
  status(status) {
    if (!this.summary) return;
    for (const name of ['until', 'attempt', 'position']) delete this.summary[name];
    const { type: _, ...rest } = status;
    Object.assign(this.summary, rest);
    this.tell({ summary: true });
    this.refresh();
  }

  /** The questions of sub-agents that are open already. */
  async below() {
    try {
      const { items } = await this.ctx.client.get('/approvals', { session: this.session }, this.stop.signal);
      /** @type {Map<string, any[]>} */
      const found = new Map();
      for (const one of items) if (one.session !== this.session) found.set(one.session, [...(found.get(one.session) ?? []), one]);
      for (const [child, approvals] of found) this.asked(child, approvals);
    } catch {
      // The sub-agent's own view shows them, too.
    }
  }

  /** @param {string} child @param {import('../../types.js').Approval[]} approvals */
  asked(child, approvals) {
    if (approvals.length > 0) this.asks.set(child, approvals);
    else this.asks.delete(child);
    for (const item of this.fold.items) if (item.child?.child === child || (item.child && !item.childEnd)) this.fold.dirty.add(item);
    this.soon();
  }

  refresh() {
    if (this.timer) return;
    this.timer = setTimeout(async () => {
      try {
        this.summary = await this.ctx.client.get(this.path, {}, this.stop.signal);
        this.tell({ summary: true });
      } catch {
        // The stream says what is wrong with the connection.
      } finally {
        this.timer = 0;
      }
    }, REFRESH);
  }

  /** The size of the model's window. */
  async limits() {
    try {
      const { items } = await this.ctx.client.get('/models', {}, this.stop.signal);
      const model = items.find((/** @type {any} */ row) => row.name === this.summary.model);
      this.window = model?.context_window ?? 0;
      this.tell({ summary: true });
    } catch {
      this.window = 0;
    }
  }

  /** What the last answer says about the window: its request and itself. */
  held() {
    for (let at = this.events.length - 1; at >= 0; at -= 1) {
      const event = this.events[at];
      if (event.type === 'model.finished' && event.usage) {
        const { input, cache_read, cache_write, output } = event.usage;
        return input + cache_read + cache_write + output;
      }
      if (event.type === 'context.compacted' || event.type === 'context.pruned') return event.tokens_after;
    }
    return 0;
  }
}
