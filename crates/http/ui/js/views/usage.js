// Usage and limits: tokens and money by model or label, in all and by day; who waits for which provider, and the health of its keys.

import { h, put } from '../dom.js';
import { count, exact, money, plural } from '../format.js';
import { oneLine } from '../text/visible.js';
import { agentctl, bar, blank, copies, curl, failure, loading } from '../ui.js';
import { MEASURES, chart, table as dayTable } from './usage/days.js';
import { failures, health, waiting } from './usage/providers.js';

const POLL = 5_000;
/** Groups that are no labels. */
const BUILT_IN = ['model', 'session'];

/**
 * @typedef {{group: string, sessions: number, steps: number, usage: import('../types.js').Usage, cost_usd: number}} Spent
 */

/** @type {import('../types.js').View} */
export const usage = {
  title: 'Usage and limits',
  mount(root, ctx, params) {
    const { store, client } = ctx;
    let by = params.query.get('by') ?? 'model';
    let labels = params.query.get('labels') ?? '';
    const go = () => {
      const query = new URLSearchParams();
      if (by !== 'model') query.set('by', by);
      if (labels) query.set('labels', labels);
      ctx.navigate(`#/usage${query.size ? `?${query}` : ''}`, { replace: true });
    };
    const grouping = h('select', { 'aria-label': 'Group by', on: { change: () => { by = grouping.value; go(); } } });
    const selector = h('input', { type: 'search', class: 'filter', placeholder: 'Labels, as team=a or !urgent', 'aria-label': 'Only sessions with these labels', value: labels, spellcheck: 'false', on: { change: () => { labels = selector.value.trim(); go(); } } });
    const sums = h('div', { class: 'figures' });
    const dayBox = h('div', { class: 'card flush' });
    /** @type {import('./usage/days.js').Measure} */
    let measure = 'cost';
    let chosen = false;
    const measures = h('div', { class: 'segments', role: 'group', 'aria-label': 'What the bars show' }, Object.keys(MEASURES).map((name) =>
      h('button', { type: 'button', data: { measure: name }, 'aria-pressed': String(name === measure), on: { click: () => show(/** @type {import('./usage/days.js').Measure} */ (name)) } }, name)));
    /** @type {import('./usage/days.js').Day[]} */
    let spentDaily = [];
    const table = h('div', { class: 'card flush' }, loading());
    const waits = h('div', { class: 'card' });
    const providers = h('div', { class: 'card flush' });
    const errors = h('div', { class: 'card' });
    root.append(
      h('header', { class: 'view-head' }, h('h1', null, 'Usage and limits'), h('span', { class: 'grow' }), copies(() => ({
        command: agentctl('usage', ...(by === 'model' ? [] : ['--by', by]), ...(labels ? ['--label', labels] : [])),
        curl: curl('GET', `/usage?${new URLSearchParams({ by, ...(labels ? { labels } : {}) })}`),
      }))),
      h('div', { class: 'grid' },
        h('section', { class: 'wide', 'aria-label': 'Usage' }, h('div', { class: 'toolbar' }, h('label', { class: 'inline' }, 'By ', grouping), selector), sums),
        h('section', { class: 'wide days-section' }, h('div', { class: 'section-head' }, h('h2', null, 'The last 31 days'), h('span', { class: 'grow' }), measures,
          copies(() => ({ command: agentctl('usage', '--daily', ...(by === 'model' ? [] : ['--by', by]), ...(labels ? ['--label', labels] : [])), curl: curl('GET', `/usage/daily?${new URLSearchParams({ by, ...(labels ? { labels } : {}) })}`) }))), dayBox),
        h('section', { class: 'wide' }, h('h2', null, 'Since the beginning'), table),
        h('section', null, h('h2', null, 'Who waits for which provider'), waits),
        h('section', null, h('h2', null, 'Errors of the last turns'), errors),
        h('section', { class: 'wide' }, h('h2', null, 'Providers, rate limits and keys'), providers)));

    function drawDays() {
      for (const button of measures.querySelectorAll('button')) button.setAttribute('aria-pressed', String(button.dataset.measure === measure));
      const open = dayBox.querySelector('details')?.open ?? false;
      put(dayBox, h('div', { class: 'days-box' }, chart(spentDaily, measure, Date.now())), spentDaily.length > 0 && dayTable(spentDaily, by));
      const details = dayBox.querySelector('details');
      if (details) details.open = open;
    }

    /** @param {import('./usage/days.js').Measure} name */
    function show(name) {
      measure = name;
      chosen = true;
      drawDays();
    }

    async function readDays() {
      const asked = `${by} ${labels}`;
      try {
        // Days are not kept for each session.
        const { items } = await client.get('/usage/daily', { by: by === 'session' ? 'model' : by, labels });
        if (asked !== `${by} ${labels}`) return;
        spentDaily = items;
        if (!chosen) measure = spentDaily.some(({ cost_usd: cost }) => cost > 0) ? 'cost' : 'tokens';
        if (!dayBox.contains(document.activeElement)) drawDays();
      } catch (error) {
        put(dayBox, failure(error, () => void readDays()));
      }
    }

    /** @type {Map<string, string>} */
    let providerOf = new Map();

    function groupings() {
      const keys = new Set();
      for (const row of store.rows.values()) for (const key of Object.keys(row.labels)) keys.add(key);
      const names = [...BUILT_IN, ...[...keys].filter((key) => !BUILT_IN.includes(key)).sort().slice(0, 40)];
      if (!names.includes(by)) names.push(by);
      if ([...grouping.options].map(({ value }) => value).join('\n') === names.join('\n')) {
        grouping.value = by;
        return;
      }
      put(grouping, names.map((name) => h('option', { value: name }, BUILT_IN.includes(name) ? name : `label ${oneLine(name, 40)}`)));
      grouping.value = by;
    }

    async function readUsage() {
      const asked = `${by} ${labels}`;
      try {
        const { items } = await client.get('/usage', { by, labels });
        if (asked !== `${by} ${labels}`) return;
        put(sums, totals(items));
        put(table, items.length ? spending(items, by, (id) => store.rows.get(id)?.name ?? '') : blank('Nothing was spent yet.'));
      } catch (error) {
        put(sums);
        put(table, failure(error, () => void readUsage()));
      }
    }

    async function readModels() {
      try {
        const { items } = await client.get('/models');
        providerOf = new Map(items.map((/** @type {any} */ model) => [model.name, model.provider]));
        const open = providers.querySelector('details')?.open ?? false;
        put(providers, health(items));
        const details = providers.querySelector('details');
        if (details) details.open = open;
        fromRows();
      } catch (error) {
        put(providers, failure(error, () => void readModels()));
      }
    }

    function fromRows() {
      groupings();
      const rows = [...store.rows.values()];
      put(waits, waiting(rows, providerOf));
      put(errors, failures(rows, store.complete));
    }

    const read = () => {
      if (document.hidden) return;
      void readUsage();
      void readDays();
      void readModels();
    };
    const timer = setInterval(read, POLL);
    let due = 0;
    const unsubscribe = store.subscribe((change) => {
      if (change.rows && !due) due = window.setTimeout(() => { due = 0; fromRows(); }, 500);
    });
    fromRows();
    read();
    return {
      dispose() {
        clearInterval(timer);
        clearTimeout(due);
        unsubscribe();
      },
      update(next) {
        by = next.query.get('by') ?? 'model';
        labels = next.query.get('labels') ?? '';
        grouping.value = by;
        selector.value = labels;
        void readUsage();
        void readDays();
      },
    };
  },
};

/** @param {import('../types.js').Usage} used */
const hits = (used) => {
  const read = used.input + used.cache_read + used.cache_write;
  return read ? used.cache_read / read : 0;
};
const percent = (/** @type {number} */ share) => `${Math.round(share * 100)}%`;

/** @param {string} value @param {string} word @param {string} [title] */
const figure = (value, word, title = '') => h('div', { class: 'figure', title }, h('strong', null, value), h('span', null, word));

/** @param {Spent[]} items */
function totals(items) {
  const sum = { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0 };
  let [cost, sessions, steps] = [0, 0, 0];
  for (const item of items) {
    for (const key of /** @type {(keyof typeof sum)[]} */ (Object.keys(sum))) sum[key] += item.usage[key] ?? 0;
    cost += item.cost_usd;
    sessions += item.sessions;
    steps += item.steps;
  }
  return [figure(money(cost), 'cost'), figure(count(sum.input + sum.cache_read + sum.cache_write), 'tokens read', exact(sum.input + sum.cache_read + sum.cache_write)),
    figure(count(sum.output), 'tokens written', exact(sum.output)), figure(percent(hits(sum)), 'read from cache'), figure(count(sessions), 'sessions'), figure(count(steps), 'steps')];
}

/** @param {Spent[]} items @param {string} by @param {(id: string) => string} nameOf */
function spending(items, by, nameOf) {
  const most = Math.max(...items.map(({ cost_usd: cost }) => cost), 0);
  const largest = Math.max(...items.map(({ usage: used }) => used.input + used.output + used.cache_read), 1);
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Usage by group' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, h('th', null, by), h('th', null, 'share'), ['sessions', 'steps', 'read', 'from cache', 'written', 'cost'].map((name) => h('th', { class: 'num' }, name)))),
    h('tbody', null, items.slice(0, 500).map((item) => {
      const share = most ? item.cost_usd / most : (item.usage.input + item.usage.output + item.usage.cache_read) / largest;
      const name = by === 'session' ? nameOf(item.group) : '';
      const shown = oneLine(name || item.group, 80);
      return h('tr', null,
        h('td', null, by === 'session' && name ? h('a', { href: `#/session/${item.group}` }, shown) : shown), h('td', null, bar(share, `${percent(share)} of the largest`, true)),
        h('td', { class: 'num' }, exact(item.sessions)), h('td', { class: 'num' }, exact(item.steps)),
        h('td', { class: 'num', title: exact(item.usage.input + item.usage.cache_read) }, count(item.usage.input + item.usage.cache_read + item.usage.cache_write)), h('td', { class: 'num' }, percent(hits(item.usage))),
        h('td', { class: 'num', title: exact(item.usage.output) }, count(item.usage.output)), h('td', { class: 'num' }, money(item.cost_usd)));
    }))), items.length > 500 && h('p', { class: 'dim pad' }, `and ${plural(items.length - 500, 'more group')}; agentctl usage lists all of them`));
}

