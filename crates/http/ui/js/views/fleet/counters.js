// Counters by state, with the last hour of each; a click filters.

import { HAS } from '../../abilities.js';
import { h, put, say } from '../../dom.js';
import { count, exact, groupWord } from '../../format.js';
import { spark } from '../../ui.js';
import { GROUPS, tally } from './query.js';

/** How often the daemon is asked for the last hour; without a history of its own, how often the page counts. */
const POLL = 15_000;
/** Samples of an hour. */
const HOUR = 240;
/** What the page has counted itself since it was opened; kept when another view is shown. @type {Record<string, number>[]} */
const samples = [];
/** The daemon's names of the groups. @type {Record<string, string>} */
const NAMES = { person: 'waiting_person', limited: 'rate_limited' };

export class Counters {
  /** @param {{ctx: import('../../types.js').Context, onToggle: (group: string) => void}} options */
  constructor({ ctx, onToggle }) {
    this.ctx = ctx;
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
    if (HAS.history) void this.ask();
    else {
      this.minutes = samples;
      this.draw();
    }
  }

  dispose() {
    clearInterval(this.timer);
  }

  async ask() {
    if (!HAS.history) {
      if (!this.ctx.store.complete) return;
      samples.push(tally(this.ctx.store.rows.values()));
      if (samples.length > HOUR) samples.shift();
      this.draw();
      return;
    }
    if (document.hidden && this.minutes) return;
    try {
      const history = await this.ctx.client.get('/fleet/history');
      this.minutes = history.minutes ?? [];
      this.totals = history.totals ?? null;
      this.draw();
    } catch {
      // The connection says what is wrong; the next poll tries again.
    }
  }

  draw() {
    for (const [name, { chart, number }] of this.tiles) {
      const values = (this.minutes ?? []).map((minute) => minute[HAS.history ? NAMES[name] ?? name : name] ?? 0);
      const span = HAS.history ? `last ${values.length} minutes` : 'since this page opened';
      if (values.length > 1) put(chart, spark(values, `${groupWord(name)}, ${span}: from ${values[0]} to ${number.textContent}, at most ${Math.max(...values)}`));
    }
  }

  /** @param {string[]} pressed */
  update(pressed) {
    const { store } = this.ctx;
    // With all rows here, the page counts live; otherwise the daemon does.
    const counts = store.complete || !this.totals ? tally(store.rows.values()) : this.totals;
    if (!HAS.history && store.complete && !samples.length) samples.push(counts);
    for (const [name, { button, number }] of this.tiles) {
      const value = counts[name] ?? counts[NAMES[name] ?? ''] ?? 0;
      const known = store.complete || this.totals;
      say(number, store.loaded ? `${value < 10_000 ? exact(value) : count(value)}${known ? '' : '+'}` : '–');
      button.classList.toggle('zero', value === 0);
      button.setAttribute('aria-pressed', String(pressed.includes(name)));
    }
  }
}
