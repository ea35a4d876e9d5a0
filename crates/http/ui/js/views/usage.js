// Usage and limits: tokens and money by model, label or day; who waits for which provider, and the health of its keys.

import { HAS } from '../abilities.js';
import { h, put } from '../dom.js';
import { clock, count, exact, group, money, plural, stateWord, until } from '../format.js';
import { oneLine, visibleText } from '../text/visible.js';
import { agentctl, ageOf, bar, blank, copies, curl, failure, loading } from '../ui.js';

const POLL = 5_000;
/** Groups that are no labels. */
const BUILT_IN = ['model', ...(HAS.days ? ['day'] : []), 'session'];

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
        h('section', { class: 'wide', 'aria-label': 'Usage' }, h('div', { class: 'toolbar' }, h('label', { class: 'inline' }, 'By ', grouping), selector), sums, table),
        h('section', null, h('h2', null, 'Who waits'), waits),
        h('section', null, h('h2', null, 'Errors of sessions'), errors),
        h('section', { class: 'wide' }, h('h2', null, 'Providers and keys'), providers)));

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
        put(providers, health(items));
      } catch (error) {
        put(providers, failure(error, () => void readModels()));
      }
    }

    function fromRows() {
      groupings();
      put(waits, waiting([...store.rows.values()]));
      put(errors, failures([...store.rows.values()]));
    }

    const read = () => {
      if (document.hidden) return;
      void readUsage();
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

/** Sessions that wait for a provider, by model and state. @param {import('../types.js').Row[]} rows */
function waiting(rows) {
  /** @type {Map<string, {model: string, state: string, rows: number, since: string, until: string}>} */
  const found = new Map();
  for (const row of rows) {
    if (group(row.state) !== 'limited' && !['waiting(permit)', 'waiting(quota)', 'waiting(credentials)'].includes(row.state)) continue;
    const key = `${row.model} ${row.state}`;
    const entry = found.get(key) ?? { model: row.model, state: row.state, rows: 0, since: row.since, until: row.until ?? '' };
    entry.rows += 1;
    if (row.since < entry.since) entry.since = row.since;
    if (row.until && (!entry.until || row.until < entry.until)) entry.until = row.until;
    found.set(key, entry);
  }
  if (!found.size) return h('p', { class: 'dim' }, 'No session waits for a provider.');
  return h('table', { class: 'plain' }, h('thead', null, h('tr', null, h('th', null, 'model'), h('th', null, 'waits for'), h('th', { class: 'num' }, 'sessions'), h('th', { class: 'num' }, 'longest'), h('th', { class: 'num' }, 'next'))),
    h('tbody', null, [...found.values()].sort((a, b) => b.rows - a.rows).map((entry) => h('tr', null,
      h('td', null, h('a', { href: `#/fleet?state=limited,person,running&q=${encodeURIComponent(entry.model)}` }, oneLine(entry.model, 40))),
      h('td', { class: `s-${group(entry.state)}` }, stateWord(entry.state)), h('td', { class: 'num' }, exact(entry.rows)), h('td', { class: 'num' }, ageOf(entry.since)), h('td', { class: 'num' }, until(entry.until) || '–')))));
}

/** What ended the last turns. @param {import('../types.js').Row[]} rows */
function failures(rows) {
  /** @type {Map<string, {count: number, message: string}>} */
  const found = new Map();
  for (const { last_error: error, state } of rows) {
    if (!error || state === 'closed') continue;
    const name = error.class ?? 'error';
    const entry = found.get(name) ?? { count: 0, message: error.message };
    entry.count += 1;
    found.set(name, entry);
  }
  if (!found.size) return h('p', { class: 'dim' }, 'No session ended its last turn with an error.');
  return h('table', { class: 'plain' }, h('thead', null, h('tr', null, h('th', null, 'class'), h('th', { class: 'num' }, 'sessions'), h('th', null, 'for example'))),
    h('tbody', null, [...found].sort((a, b) => b[1].count - a[1].count).map(([name, entry]) => h('tr', null,
      h('td', { class: 's-failed' }, name.replaceAll('_', ' ')), h('td', { class: 'num' }, exact(entry.count)), h('td', { class: 'dim' }, oneLine(entry.message, 160))))));
}

/** @param {any} key */
function credential(key) {
  const look = { ok: 's-good', cooling: 's-limited', probing: 's-person' }[/** @type {string} */ (key.health)] ?? '';
  const buckets = (key.buckets ?? []).map((/** @type {any} */ bucket) => h('span', { class: 'bucket' }, bucket.kind.replaceAll('_', ' '), ' ',
    bar(bucket.limit ? 1 - bucket.left / bucket.limit : 0, `${exact(bucket.left)} of ${exact(bucket.limit)} left`), ` ${count(bucket.left)} left`));
  return h('div', null, h('span', { class: look }, `${oneLine(key.name, 40)}: ${key.health}`),
    key.class && h('span', { class: 'dim' }, ` ${key.class.replaceAll('_', ' ')}`), key.failures > 0 && h('span', { class: 'dim' }, `, ${plural(key.failures, 'failure')} in a row`),
    key.until && h('span', { class: 'dim' }, `, until ${clock(key.until)}`), buckets);
}

/** @param {any[]} models */
function health(models) {
  const sorted = [...models].sort((a, b) => Number(b.default) - Number(a.default) || Number(b.usable && !b.untried) - Number(a.usable && !a.untried) || a.name.localeCompare(b.name));
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Providers and keys' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, h('th', null, 'model'), h('th', null, 'provider'), h('th', { class: 'num' }, 'running'), h('th', { class: 'num' }, 'waiting'), h('th', null, 'state'), h('th', null, 'keys'), h('th', null, 'last call'))),
    h('tbody', null, sorted.map((model) => {
      const paused = until(model.paused_until);
      const [look, word] = !model.usable ? ['dim', 'not usable'] : paused ? ['s-limited', `paused, goes on ${paused}`]
        : model.circuit && model.circuit !== 'closed' ? ['s-failed', `circuit ${model.circuit.replaceAll('_', ' ')}`] : model.untried ? ['dim', 'not tried yet'] : ['s-good', 'usable'];
      return h('tr', null,
        h('td', null, h('strong', null, oneLine(model.name, 60)), model.default && h('span', { class: 'tag' }, 'default')), h('td', { title: visibleText(model.model) }, oneLine(model.provider, 60)),
        h('td', { class: 'num' }, exact(model.running)), h('td', { class: `num${model.waiting ? ' s-limited' : ''}` }, exact(model.waiting)),
        h('td', null, h('span', { class: look }, word), h('div', { class: 'dim note' }, visibleText(model.note))),
        h('td', null, model.credentials.length ? model.credentials.map(credential) : h('span', { class: 'dim' }, '–')),
        h('td', null, model.last_call ? [h('span', { class: model.last_call.failed ? 's-failed' : 's-good' }, model.last_call.failed ? model.last_call.failed.replaceAll('_', ' ') : 'answered'), h('div', { class: 'dim' }, ageOf(model.last_call.at), ' ago')] : h('span', { class: 'dim' }, '–')));
    }))));
}
