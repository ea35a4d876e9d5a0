// The audit files: who did what, newest first, and whether their hash chain is intact.

import { h, put } from '../dom.js';
import { clock, exact, moment, plural, short } from '../format.js';
import { oneLine, visibleText } from '../text/visible.js';
import { agentctl, blank, copies, curl, fail, failure, loading } from '../ui.js';

const PAGE = 200;
/** How often the newest page is read again. */
const POLL = 10_000;
const FILTERS = ['who', 'event', 'session'];
/** @type {[string, string][]} */
const TIMES = [['', 'any time'], ['1h', 'the last hour'], ['24h', 'the last day'], ['168h', 'the last week'], ['720h', 'the last 30 days']];
/** Keys that have columns of their own. */
const COLUMNS = new Set(['place', 'at', 'who', 'event', 'session', 'seq', 'cursor', 'trace_id', 'hash', 'prev', 'v']);
/** Colours of families of events, as in the events of a session. @type {Record<string, string>} */
const LOOKS = { approval: 's-person', verdict: 's-person', token: 's-limited', rule: 's-limited', node: 's-limited', tool: 's-good', model: 's-running' };
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** @type {import('../types.js').View} */
export const audit = {
  title: 'Audit',
  mount(root, ctx, params) {
    let query = read(params.query);
    /** @type {any[]} */
    let items = [];
    /** @type {any} */
    let next = null;
    let run = 0;
    let shown = '';
    const fields = FILTERS.map((name) => h('input', {
      type: 'search', name, placeholder: { who: 'who, such as token:ci', event: 'event, such as approval', session: 'session id' }[name], 'aria-label': name, value: query[name] ?? '', spellcheck: 'false',
      on: { change: () => go() },
    }));
    const since = h('select', { 'aria-label': 'Since', on: { change: () => go() } }, TIMES.map(([value, label]) => h('option', { value }, label)));
    since.value = query.since ?? '';
    const chain = h('div', { class: 'chain', role: 'status' });
    const check = h('button', { type: 'button', on: { click: () => void verify() } }, 'Verify the chain');
    const table = h('div', { class: 'card flush' }, loading());
    const more = h('button', { type: 'button', hidden: true, on: { click: () => void load(next) } }, 'Older entries');
    root.append(h('header', { class: 'view-head' }, h('h1', null, 'Audit'), chain, h('span', { class: 'grow' }), check, copies(() => ({
      command: agentctl('audit', 'ls', ...Object.entries(query).flatMap(([key, value]) => (value ? [`--${key}`, value] : []))), curl: curl('GET', `/audit?${new URLSearchParams(asked())}`),
    }))), h('div', { class: 'toolbar pad' }, fields, since), h('div', { class: 'pad' }, table, h('p', { class: 'more' }, more)));

    function go() {
      const to = new URLSearchParams();
      for (const field of fields) if (field.value.trim()) to.set(field.name, field.value.trim());
      if (since.value) to.set('since', since.value);
      ctx.navigate(`#/audit${to.size ? `?${to}` : ''}`, { replace: true });
    }

    /** The parameters of the request: a time in place of a duration. @returns {Record<string, string>} */
    function asked() {
      const hours = Number.parseInt(query.since ?? '', 10);
      return hours ? { ...query, since: new Date(Date.now() - hours * 3_600_000).toISOString() } : query;
    }

    async function verify() {
      check.disabled = true;
      put(chain, h('span', { class: 'dim' }, 'reading all audit files…'));
      try {
        put(chain, verdict(await ctx.client.get('/audit/check')));
      } catch (error) {
        put(chain);
        fail(error, 'The chain cannot be verified');
      }
      check.disabled = false;
    }

    /** @param {any} [before] */
    async function load(before = null) {
      const mine = ++run;
      try {
        const page = await ctx.client.get('/audit', { ...asked(), limit: PAGE, before });
        if (mine !== run) return;
        items = before ? [...items, ...page.items] : page.items;
        next = page.next ?? null;
        more.hidden = next === null;
        const newest = `${items[0]?.place} ${items.length}`;
        if (newest === shown) return;
        shown = newest;
        put(table, items.length ? rows(items) : blank('No entry matches.', 'Entries are written for approvals, rules, tokens and everything that changes a session.'));
      } catch (error) {
        if (mine !== run) return;
        shown = '';
        more.hidden = true;
        put(table, failure(error, () => void load()));
      }
    }

    // Whoever reads older entries is not disturbed.
    const timer = setInterval(() => {
      if (!document.hidden && items.length <= PAGE && !table.contains(document.activeElement)) void load();
    }, POLL);
    void load();
    return {
      dispose() {
        run += 1;
        clearInterval(timer);
      },
      update(changed) {
        query = read(changed.query);
        shown = '';
        void load();
      },
    };
  },
};

/** @param {URLSearchParams} params @returns {Record<string, string>} */
function read(params) {
  /** @type {Record<string, string>} */
  const query = {};
  for (const name of [...FILTERS, 'since']) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  return query;
}

/** What the check of the hash chain found. @param {any} found */
function verdict({ intact, lines, files, head, whole, unsealed, deletion_recorded: recorded, broken }) {
  if (!intact) {
    return h('p', { class: 's-failed' }, '✖ The chain is broken in ', h('code', null, visibleText(broken?.file ?? '')), broken?.line ? ` line ${exact(broken.line)}` : '', `: ${oneLine(broken?.what ?? '', 300)} `,
      h('span', { class: 'dim' }, `${plural(lines, 'line')} before it ${lines === 1 ? 'is' : 'are'} intact.`));
  }
  const notes = [unsealed && `${plural(unsealed, 'line')} before the chain cannot be verified`, recorded ? 'agentd deleted older files, which the chain records' : !whole && 'older files are missing'].filter(Boolean);
  return h('p', { class: 's-good' }, `✔ Intact: ${plural(lines, 'line')} in ${plural(files.length, 'file')}. `, h('span', { class: 'dim' }, head && ['Last hash ', h('code', { title: head }, head.slice(0, 16))], notes.map((note) => `; ${note}`)));
}

/** @param {any} value */
const word = (value) => (typeof value === 'string' ? (ID.test(value) ? short(value) : value) : Array.isArray(value) && value.every((one) => typeof one === 'string') ? value.join(', ') : JSON.stringify(value));

/** The pairs of a line's other keys; objects give their own. @param {Record<string, any>} item @returns {[string, any][]} */
export function pairs(item) {
  return Object.entries(item).filter(([key]) => !COLUMNS.has(key)).flatMap(([key, value]) => (value && typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : [/** @type {[string, any]} */ ([key, value])]))
    .filter(([, value]) => value !== null && value !== '' && !(typeof value === 'object' && Object.keys(value).length === 0));
}

/** @param {any[]} items */
function rows(items) {
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Audit log' }, h('table', { class: 'plain stacked' },
    h('thead', null, h('tr', null, ['time', 'who', 'event', 'session', 'details'].map((name) => h('th', null, name)))),
    h('tbody', null, items.map((item) => {
      const session = item.session ? String(item.session) : '';
      return h('tr', null,
        h('td', { title: `${moment(item.at)}, place ${item.place}`, class: 'nowrap num' }, clock(item.at)), h('td', { class: 'nowrap' }, oneLine(item.who, 60)),
        h('td', { class: `nowrap ${LOOKS[String(item.event).split('.')[0] ?? ''] ?? ''}` }, oneLine(item.event, 80)),
        h('td', null, session && h('a', { href: `#/session/${session}${item.seq ? `/events?at=${item.seq}` : ''}`, class: 'mono' }, short(session))),
        h('td', { class: 'details' }, pairs(item).map(([key, value]) => h('span', { class: 'pair' }, h('span', { class: 'dim' }, `${key.replaceAll('_', ' ')} `), oneLine(word(value), 300), ' '))));
    }))));
}
