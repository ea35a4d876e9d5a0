// The audit files: who did what, newest first.

import { h, put } from '../dom.js';
import { clock, moment, short } from '../format.js';
import { oneLine } from '../text/visible.js';
import { agentctl, blank, copies, curl, failure, loading } from '../ui.js';

const PAGE = 200;
const FILTERS = ['who', 'event', 'session'];
/** Keys that have columns of their own. */
const COLUMNS = new Set(['place', 'at', 'who', 'event', 'session', 'seq', 'cursor', 'trace_id', 'hash', 'prev']);

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
    const fields = FILTERS.map((name) => h('input', {
      type: 'search', placeholder: name, 'aria-label': name, value: query[name] ?? '', spellcheck: 'false',
      on: { change: () => go() },
    }));
    const table = h('div', { class: 'card flush' }, loading());
    const more = h('button', { type: 'button', hidden: true, on: { click: () => void load(next) } }, 'Older entries');
    root.append(h('header', { class: 'view-head' }, h('h1', null, 'Audit'), h('span', { class: 'grow' }), copies(() => ({
      command: agentctl('audit', 'ls', ...Object.entries(query).flatMap(([key, value]) => (value ? [`--${key}`, value] : []))), curl: curl('GET', `/audit?${new URLSearchParams(query)}`),
    }))), h('div', { class: 'toolbar pad' }, fields), h('div', { class: 'pad' }, table, h('p', { class: 'more' }, more)));

    function go() {
      const next = new URLSearchParams();
      for (const field of fields) if (field.value.trim()) next.set(field.placeholder, field.value.trim());
      ctx.navigate(`#/audit${next.size ? `?${next}` : ''}`, { replace: true });
    }

    /** @param {any} [before] */
    async function load(before = null) {
      const mine = ++run;
      try {
        const page = await ctx.client.get('/audit', { ...query, limit: PAGE, before });
        if (mine !== run) return;
        items = before ? [...items, ...page.items] : page.items;
        next = page.next ?? null;
        more.hidden = next === null;
        put(table, items.length ? rows(items) : blank('No entry matches.', 'Entries are written for approvals, rules, tokens and everything that changes a session.'));
      } catch (error) {
        if (mine !== run) return;
        put(table, failure(error, () => void load()));
      }
    }

    void load();
    return {
      dispose() {
        run += 1;
      },
      update(changed) {
        query = read(changed.query);
        void load();
      },
    };
  },
};

/** @param {URLSearchParams} params @returns {Record<string, string>} */
function read(params) {
  /** @type {Record<string, string>} */
  const query = {};
  for (const name of FILTERS) {
    const value = params.get(name);
    if (value) query[name] = value;
  }
  return query;
}

/** @param {any[]} items */
function rows(items) {
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Audit log' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, ['time', 'who', 'event', 'session', 'details'].map((name) => h('th', null, name)))),
    h('tbody', null, items.map((item) => {
      const rest = Object.entries(item).filter(([key, value]) => !COLUMNS.has(key) && value !== null && value !== '');
      const session = item.session ? String(item.session) : '';
      return h('tr', null,
        h('td', { title: moment(item.at), class: 'nowrap' }, clock(item.at)), h('td', { class: 'nowrap' }, oneLine(item.who, 60)), h('td', { class: 'nowrap' }, oneLine(item.event, 80)),
        h('td', null, session && h('a', { href: `#/session/${session}`, class: 'mono' }, short(session))),
        h('td', { class: 'details' }, rest.map(([key, value]) => h('span', { class: 'pair' }, h('span', { class: 'dim' }, `${key} `), oneLine(typeof value === 'string' ? value : JSON.stringify(value), 300)))));
    }))));
}
