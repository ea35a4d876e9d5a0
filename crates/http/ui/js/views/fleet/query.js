// What the fleet's table shows: filters, order, tree. Pure; the fragment's parameters are the only state.

import { group, tokens } from '../../format.js';

/**
 * @typedef {import('../../types.js').Row} Row
 * @typedef {{states: string[], text: string, sort: string, desc: boolean, tree: boolean, all: boolean}} Query
 * @typedef {{row: Row, depth: number, children: number}} Line
 */

/** States of each group, as the daemon names them. @type {Record<string, string[]>} */
export const STATES = {
  running: ['running', 'queued', 'starting', 'compacting', 'waiting(child)', 'waiting(permit)'],
  person: ['waiting(approval)', 'waiting(question)', 'waiting(limit)', 'waiting(quota)', 'waiting(credentials)'],
  limited: ['waiting(rate_limit)', 'waiting(provider)', 'backing_off'],
  failed: ['failed', 'faulted', 'waiting(workspace)'],
  idle: ['idle'],
  paused: ['paused'],
};
export const GROUPS = Object.keys(STATES);

/** What needs a person comes first. */
const URGENCY = ['person', 'failed', 'limited', 'running', 'paused', 'idle', 'closed'];

/** @type {Record<string, (row: Row) => string|number>} */
const KEYS = {
  created: (row) => row.created_at,
  updated: (row) => row.updated_at,
  name: (row) => row.name.toLowerCase(),
  state: (row) => -URGENCY.indexOf(group(row.state)),
  reason: (row) => row.reason,
  since: (row) => row.since,
  model: (row) => row.model,
  steps: (row) => row.steps,
  tokens: (row) => tokens(row.usage),
  cost: (row) => row.cost_usd,
};

/** Orders that begin with the smallest. */
export const ASCENDING = ['name', 'model', 'reason'];

/**
 * @param {URLSearchParams} params
 * @returns {Query}
 */
export function read(params) {
  const sort = params.get('sort') ?? 'created';
  const known = Object.hasOwn(KEYS, sort) ? sort : 'created';
  const states = (params.get('state') ?? '').split(',').filter((state) => GROUPS.includes(state));
  const order = params.get('order');
  return {
    states,
    text: params.get('q') ?? '',
    sort: known,
    desc: order ? order === 'desc' : !ASCENDING.includes(known),
    tree: params.get('tree') !== 'off',
    all: params.get('closed') === 'shown',
  };
}

/**
 * The fragment of a query, without what is the default.
 * @param {Query} query
 */
export function write(query) {
  const params = new URLSearchParams();
  if (query.states.length) params.set('state', query.states.join(','));
  if (query.text.trim()) params.set('q', query.text.trim());
  if (query.sort !== 'created') params.set('sort', query.sort);
  if (query.desc === ASCENDING.includes(query.sort)) params.set('order', query.desc ? 'desc' : 'asc');
  if (!query.tree) params.set('tree', 'off');
  if (query.all) params.set('closed', 'shown');
  const text = params.toString().replaceAll('%2C', ',').replaceAll('%3D', '=');
  return `#/fleet${text ? `?${text}` : ''}`;
}

/**
 * The words of the filter: `key=value` selects by label, every other word must occur.
 * @param {string} text
 */
export function words(text) {
  const all = text.trim().split(/\s+/).filter(Boolean);
  return {
    labels: all.filter((word) => /^[^=!]+=/.test(word)),
    plain: all.filter((word) => !/^[^=!]+=/.test(word)).map((word) => word.toLowerCase()),
  };
}

/**
 * @param {Query} query
 * @returns {(row: Row) => boolean}
 */
export function matcher(query) {
  const { labels, plain } = words(query.text);
  const states = new Set(query.states);
  return (row) => {
    if (!query.all && row.state === 'closed') return false;
    if (states.size && !states.has(group(row.state))) return false;
    for (const word of labels) {
      const at = word.indexOf('=');
      if (row.labels[word.slice(0, at)] !== word.slice(at + 1)) return false;
    }
    return plain.every((word) =>
      row.name.toLowerCase().includes(word) || row.session.includes(word) || row.model.toLowerCase().includes(word)
      || row.state.includes(word) || row.reason.toLowerCase().includes(word) || row.workdir.toLowerCase().includes(word)
      || Object.values(row.labels).some((value) => value.toLowerCase().includes(word)));
  };
}

/**
 * The lines of the table.
 * @param {Iterable<Row>} rows
 * @param {Query} query
 * @param {Set<string>} folded sessions whose sub-agents are hidden
 * @returns {Line[]}
 */
export function lines(rows, query, folded) {
  const wanted = matcher(query);
  const key = KEYS[query.sort] ?? KEYS.created ?? (() => 0);
  /** @type {{row: Row, key: string|number}[]} */
  const found = [];
  for (const row of rows) if (wanted(row)) found.push({ row, key: key(row) });
  const sign = query.desc ? -1 : 1;
  found.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : a.row.session < b.row.session ? 1 : -1));
  if (!query.tree) return found.map(({ row }) => ({ row, depth: 0, children: 0 }));
  const ids = new Set(found.map(({ row }) => row.session));
  /** @type {Map<string, Row[]>} */
  const below = new Map();
  /** @type {Row[]} */
  const roots = [];
  for (const { row } of found) {
    if (row.parent && ids.has(row.parent)) {
      const list = below.get(row.parent);
      if (list) list.push(row);
      else below.set(row.parent, [row]);
    } else {
      roots.push(row);
    }
  }
  /** @type {Line[]} */
  const out = [];
  /** @type {Line[]} */
  const stack = roots.reverse().map((row) => ({ row, depth: 0, children: 0 }));
  for (let line = stack.pop(); line; line = stack.pop()) {
    const children = below.get(line.row.session) ?? [];
    out.push({ ...line, children: children.length });
    if (folded.has(line.row.session)) continue;
    for (const row of [...children].reverse()) stack.push({ row, depth: line.depth + 1, children: 0 });
  }
  return out;
}

/**
 * How many rows each group has.
 * @param {Iterable<Row>} rows
 * @returns {Record<string, number>}
 */
export function tally(rows) {
  /** @type {Record<string, number>} */
  const counts = {};
  for (const name of GROUPS) counts[name] = 0;
  for (const { state } of rows) {
    const name = group(state);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
