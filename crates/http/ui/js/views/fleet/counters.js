// Counters by state, with the last hour of each; a click filters.

import { h, put, say } from '../../dom.js';
import { count, exact, groupWord } from '../../format.js';
import { spark } from '../../ui.js';
import { GROUPS, tally } from './query.js';

/** How often the daemon is asked for the last hour. */
const POLL = 15_000;
/** The daemon's names of the groups. @type {Record<string, string>} */
const NAMES = { person: 'waiting_person', limited: 'rate_limited' };

export class Counters {
  /** @param {{ctx: import('../../types.js').Context, onToggle: (group: string) => void, onCounted: () => void}} options */
  constructor({ ctx, onToggle, onCounted }) {
    this.ctx = ctx;
    this.onCounted = onCounted;
    /** @type {Record<string, number>[]|null} */
    this.minutes = null;
    /** @type {Record<string, number>|null} */
    this.totals = null;
    this.tiles = new Map(GROUPS.map((name) => {
      const number = h('span', { class: 'tile-number' }, '–');
      const chart = h('span', { class: 'tile-chart' });
      const button = h('button', { type: 'button', class: `tile s-${name}`, 'aria-pressed': 'false', on: { click: () => onToggle(name) } },
        h('span', { class: 'tile-top' }, number, chart), h('span', { class: 'tile-word' }, groupWord(name)));
      return [name, { button, number, chart }];
    }));
    this.element = h('div', { class: 'tiles', role: 'group', 'aria-label': 'Sessions by state' }, [...this.tiles.values()].map(({ button }) => button));
    this.timer = window.setInterval(() => void this.ask(), POLL);
    void ctx.store.shown.then(() => this.ask());
  }

  dispose() {
    clearInterval(this.timer);
  }

  async ask() {
    if (document.hidden && this.minutes) return;
    try {
      const history = await this.ctx.client.get('/fleet/history');
      this.minutes = history.minutes ?? [];
      this.totals = history.totals ?? null;
      this.draw();
      this.onCounted();
    } catch {
      // The connection says what is wrong; the next poll tries again.
    }
  }

  /** How many sessions the daemon has, without closed ones; null: unknown. */
  get all() {
    return this.totals ? Object.values(this.totals).reduce((sum, one) => sum + one, 0) : null;
  }

  draw() {
    for (const [name, { chart, number }] of this.tiles) {
      const values = (this.minutes ?? []).map((minute) => minute[NAMES[name] ?? name] ?? 0);
      if (values.length > 1) put(chart, spark(values, `${groupWord(name)}, last ${values.length} minutes: from ${values[0]} to ${number.textContent}, at most ${Math.max(...values)}`));
    }
  }

  /** @param {string[]} pressed */
  update(pressed) {
    const { store } = this.ctx;
    // With all rows here, the page counts live; otherwise the daemon does.
    const counts = store.complete || !this.totals ? tally(store.rows.values()) : this.totals;
    for (const [name, { button, number }] of this.tiles) {
      const value = counts[name] ?? counts[NAMES[name] ?? ''] ?? 0;
      const known = store.complete || this.totals;
      say(number, store.loaded ? `${value < 10_000 ? exact(value) : count(value)}${known ? '' : '+'}` : '–');
      button.classList.toggle('zero', value === 0);
      button.setAttribute('aria-pressed', String(pressed.includes(name)));
    }
  }
}
