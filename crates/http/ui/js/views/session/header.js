// The head of the session view: what it does and why, what it has used of its limits, and what a person can do about it.

import { h, put, say } from '../../dom.js';
import { count, duration, exact, money, moment, short, tokens } from '../../format.js';
import { visibleText } from '../../text/visible.js';
import { ageOf, agentctl, bar, copies, curl, stateChip, why } from '../../ui.js';
import { line } from './pane.js';

/** States in which nothing runs that could be cancelled. */
const REST = new Set(['idle', 'failed', 'closed', 'faulted']);

export class Header {
  /**
   * @param {import('./log.js').Log} log
   * @param {import('./actions.js').Actions} actions
   */
  constructor(log, actions) {
    this.log = log;
    this.actions = actions;
    this.chip = h('span');
    this.name = h('h1', { class: 'grow cut' });
    this.reason = h('p', { class: 'reason', role: 'status' });
    this.facts = h('dl', { class: 'session-facts' });
    this.buttons = h('div', { class: 'session-actions' });
    this.more = h('details', { class: 'more-menu' }, h('summary', { class: 'button', 'aria-label': 'More actions' }, 'More ▾'), h('div', { class: 'more-list' }));
    this.toggle = h('button', { type: 'button', class: 'quiet facts-toggle', 'aria-expanded': 'false', on: { click: () => this.fold() } }, 'Details');
    this.element = h('header', { class: 'session-head' },
      h('div', { class: 'session-top' }, this.chip, this.name, this.toggle, this.buttons),
      this.reason, this.facts);
    this.element.addEventListener('click', (event) => {
      if (/** @type {HTMLElement} */ (event.target).closest('.more-list button')) this.more.open = false;
    });
    this.outside = (/** @type {Event} */ event) => {
      if (this.more.open && !this.more.contains(/** @type {Node} */ (event.target))) this.more.open = false;
    };
    this.escape = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== 'Escape' || !this.more.open) return;
      this.more.open = false;
      this.more.querySelector('summary')?.focus();
    };
    document.addEventListener('pointerdown', this.outside);
    document.addEventListener('keydown', this.escape);
    this.shape = '';
    this.state = '';
    this.unsubscribe = log.subscribe((change) => {
      if (change.summary || change.all) this.update();
    });
    this.timer = setInterval(() => this.tick(), 1000);
    this.update();
  }

  dispose() {
    this.unsubscribe();
    clearInterval(this.timer);
    document.removeEventListener('pointerdown', this.outside);
    document.removeEventListener('keydown', this.escape);
  }

  fold() {
    const open = this.element.classList.toggle('open');
    this.toggle.setAttribute('aria-expanded', String(open));
  }

  tick() {
    if (this.log.summary) say(this.reason, visibleText(this.reasonOf()));
  }

  reasonOf() {
    const row = this.log.summary;
    const text = why(row);
    return this.log.ended ? `${text} · ${this.log.ended.message}` : text;
  }

  update() {
    const row = this.log.summary;
    if (!row) return;
    if (this.state !== row.state) {
      put(this.chip, stateChip(row));
      this.state = row.state;
    }
    say(this.name, visibleText(row.name));
    this.name.title = `${visibleText(row.name)} · ${row.session}`;
    this.tick();
    if (!this.facts.contains(document.activeElement)) put(this.facts, this.all(row));
    // The buttons stay while their meaning does, so that focus stays.
    const shape = `${row.state === 'closed'}${row.paused}${row.state === 'paused'}${REST.has(row.state)}${row.state.startsWith('waiting')}`;
    if (shape === this.shape) return;
    this.shape = shape;
    this.act(row);
  }

  /** @param {any} row */
  all(row) {
    const held = this.log.held();
    const { window } = this.log;
    const labels = Object.entries(row.labels ?? {});
    const { budget = {}, below = {} } = row;
    const used = tokens(row.usage) + (below.tokens ?? 0);
    return [
      fact('model', line(row.model, 60)),
      fact('mode', line(row.mode, 30)),
      fact('steps', meter(row.steps + (below.steps ?? 0), budget.steps, count), `${exact(row.steps)} steps`),
      fact('tokens', meter(used, budget.tokens, count), figures(row.usage)),
      fact('cost', meter(row.cost_usd + (below.usd ?? 0), budget.usd, money)),
      fact('time', meter(row.time_ms + (below.time_ms ?? 0), budget.time_ms, duration), 'Time inside turns'),
      fact('context', window ? meter(held, window, count) : count(held), `The last request and its answer hold about ${exact(held)} tokens`),
      fact('since', ageOf(row.since), `${row.state} since ${moment(row.since)}`),
      fact('workdir', h('span', { class: 'mono cut' }, line(row.workdir, 300)), visibleText(row.workdir)),
      labels.length > 0 && fact('labels', labels.slice(0, 12).map(([key, value]) => h('a', { class: 'tag', href: `#/fleet?labels=${encodeURIComponent(`${key}=${value}`)}` }, line(`${key}=${value}`, 60)))),
      row.parent && fact('parent', h('a', { href: `#/session/${row.parent}/transcript` }, short(row.parent))),
      (row.children ?? []).length > 0 && fact('sub-agents', row.children.slice(0, 12).map((/** @type {string} */ id) => [h('a', { href: `#/session/${id}/transcript` }, short(id)), ' '])),
      (row.jobs ?? []).length > 0 && fact('jobs', row.jobs.map((/** @type {any} */ job) => h('code', null, line(`${job.job}: ${job.command}`, 60)))),
      fact('id', h('code', null, short(row.session)), row.session),
      row.last_error && row.state === 'failed' && fact('error', h('span', { class: 's-failed' }, line(row.last_error.message, 400))),
    ];
  }

  /** @param {any} row */
  act(row) {
    const { actions } = this;
    const id = row.session;
    const can = actions.ctx.can('steer');
    const closed = row.state === 'closed';
    const stuck = row.paused || row.state === 'paused' || row.state === 'faulted' || /^waiting\((rate_limit|provider|quota|credentials|workspace)/.test(row.state) || row.state === 'backing_off';
    const button = (/** @type {string} */ label, /** @type {string} */ key, /** @type {() => unknown} */ run, kind = '') =>
      h('button', { type: 'button', class: kind, title: key ? `${label} (${key})` : label, on: { click: () => void run() } }, label);
    const menu = /** @type {HTMLElement} */ (this.more.lastElementChild);
    put(menu,
      can && !closed && [
        button('Undo the last change of files…', 'u', () => actions.undo()),
        button('Fork the session…', '', () => actions.fork()),
        button('Rename…', '', () => actions.rename()),
        button('Change the mode…', '', () => actions.mode()),
        button('Change the model…', '', () => actions.model()),
        button('Compact the conversation', '', () => actions.simple('compact', 'Compaction asked')),
        button('Write a summary', '', () => actions.simple('summarize', 'Summary asked')),
        button('Close the session…', '', () => actions.close(), 'danger'),
      ],
      can && closed && button('Fork the session…', '', () => actions.fork()),
      h('div', { class: 'more-copies' }, h('span', { class: 'dim small' }, 'Copy as'),
        copies(() => ({ command: agentctl('show', id), curl: curl('GET', `/sessions/${id}`) }))));
    put(this.buttons,
      can && !closed && (stuck ? button('Resume', 'p', () => actions.resume(), 'primary') : button('Pause', 'p', () => actions.pause())),
      can && !closed && !REST.has(row.state) && button('Cancel turn', 'C', () => actions.cancel(), 'danger'),
      this.more);
  }
}

/**
 * @param {string} name
 * @param {import('../../dom.js').Child} value
 * @param {string} [title]
 */
function fact(name, value, title = '') {
  return h('div', { title: title || null }, h('dt', null, name), h('dd', null, value));
}

/**
 * A figure, with a bar if it has a limit.
 * @param {number} used
 * @param {number} limit
 * @param {(n: number) => string} show
 */
function meter(used, limit, show) {
  if (!limit) return show(used);
  return [`${show(used)} of ${show(limit)} `, bar(used / limit, `${Math.round((100 * used) / limit)}% used`)];
}

/** @param {import('../../types.js').Usage|undefined} usage */
function figures(usage) {
  if (!usage) return '';
  return `${exact(usage.input)} in, ${exact(usage.cache_read)} from the cache, ${exact(usage.cache_write)} into the cache, ${exact(usage.output)} out (${exact(usage.reasoning)} thinking)`;
}

