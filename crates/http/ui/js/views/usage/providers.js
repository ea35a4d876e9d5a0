// Who waits for which provider, why turns fail, and how providers and their keys do.

import { h } from '../../dom.js';
import { clock, count, exact, group, plural, stateWord, until } from '../../format.js';
import { oneLine, visibleText } from '../../text/visible.js';
import { ageOf, bar } from '../../ui.js';

/**
 * Sessions that wait, by provider and state.
 * @param {import('../../types.js').Row[]} rows
 * @param {Map<string, string>} providerOf the provider of each model
 */
export function waiting(rows, providerOf) {
  /** @type {Map<string, {provider: string, state: string, rows: number, since: string, until: string, models: Set<string>}>} */
  const found = new Map();
  for (const row of rows) {
    if (group(row.state) !== 'limited' && !['waiting(permit)', 'waiting(quota)', 'waiting(credentials)'].includes(row.state)) continue;
    const provider = providerOf.get(row.model) ?? row.model;
    const key = `${provider} ${row.state}`;
    const entry = found.get(key) ?? { provider, state: row.state, rows: 0, since: row.since, until: row.until ?? '', models: new Set() };
    entry.rows += 1;
    entry.models.add(row.model);
    if (row.since < entry.since) entry.since = row.since;
    if (row.until && (!entry.until || row.until < entry.until)) entry.until = row.until;
    found.set(key, entry);
  }
  if (!found.size) return h('p', { class: 'dim' }, 'No session waits for a provider.');
  return h('table', { class: 'plain' }, h('thead', null, h('tr', null, h('th', null, 'provider'), h('th', null, 'waits because of'), h('th', { class: 'num' }, 'sessions'), h('th', { class: 'num' }, 'longest'), h('th', { class: 'num' }, 'next try'))),
    h('tbody', null, [...found.values()].sort((a, b) => b.rows - a.rows).map((entry) => h('tr', null,
      h('td', null, h('a', { href: `#/fleet?state=limited,person,running&q=${encodeURIComponent([...entry.models][0] ?? '')}`, title: 'Show the sessions' }, oneLine(entry.provider, 40))),
      h('td', { class: `s-${group(entry.state)}` }, stateWord(entry.state)), h('td', { class: 'num' }, exact(entry.rows)), h('td', { class: 'num' }, ageOf(entry.since)), h('td', { class: 'num' }, until(entry.until) || '–')))));
}

/**
 * What ended the last turns.
 * @param {import('../../types.js').Row[]} rows
 * @param {boolean} all whether these are all sessions
 */
export function failures(rows, all) {
  /** @type {Map<string, {count: number, message: string, session: string}>} */
  const found = new Map();
  for (const { last_error: error, state, session } of rows) {
    if (!error || state === 'closed') continue;
    const name = error.class ?? 'error';
    const entry = found.get(name) ?? { count: 0, message: error.message, session };
    entry.count += 1;
    found.set(name, entry);
  }
  const some = !all && h('p', { class: 'dim' }, `Of the ${exact(rows.length)} sessions that this page has read.`);
  if (!found.size) return [h('p', { class: 'dim' }, 'No session ended its last turn with an error.'), some];
  return [h('table', { class: 'plain' }, h('thead', null, h('tr', null, h('th', null, 'class'), h('th', { class: 'num' }, 'sessions'), h('th', null, 'for example'))),
    h('tbody', null, [...found].sort((a, b) => b[1].count - a[1].count).map(([name, entry]) => h('tr', null,
      h('td', { class: 's-failed nowrap' }, name.replaceAll('_', ' ')), h('td', { class: 'num' }, exact(entry.count)), h('td', null, h('a', { href: `#/session/${entry.session}`, class: 'plain-link' }, oneLine(entry.message, 160))))))), some];
}

/** @param {any} key */
function credential(key) {
  const look = { ok: 's-good', cooling: 's-limited', probing: 's-person' }[/** @type {string} */ (key.health)] ?? '';
  return h('div', null, h('span', { class: look }, `${oneLine(key.name, 40)}: ${key.health}`),
    key.class && h('span', { class: 'dim' }, ` ${key.class.replaceAll('_', ' ')}`), key.failures > 0 && h('span', { class: 'dim' }, `, ${plural(key.failures, 'failure')} in a row`),
    key.until && h('span', { class: 'dim' }, `, until ${clock(key.until)}`));
}

/** @param {any} bucket */
const limit = (bucket) => h('div', { class: 'bucket' }, bar(bucket.limit ? 1 - bucket.left / bucket.limit : 0, `${exact(bucket.left)} of ${exact(bucket.limit)} left`),
  h('span', null, `${count(bucket.left)} of ${count(bucket.limit)} ${bucket.kind.replaceAll('_', ' ')}`), h('span', { class: 'dim' }, `, ${count(bucket.per_minute)} a minute`));

/** What a provider does now. @param {any} model */
function stateOf(model) {
  const paused = until(model.paused_until);
  if (paused) return ['s-limited', `paused, goes on ${paused}`];
  if (model.circuit && model.circuit !== 'closed') return ['s-failed', `circuit ${model.circuit.replaceAll('_', ' ')}`];
  return model.untried ? ['dim', 'not tried yet'] : ['s-good', 'circuit closed'];
}

/** @param {any} model @param {number} models */
function providerRow(model, models) {
  const [look, word] = stateOf(model);
  const call = model.last_call;
  return h('tr', { class: 'provider' },
    h('th', { scope: 'rowgroup' }, oneLine(model.provider, 60), h('span', { class: 'dim' }, ` ${plural(models, 'model')}`)),
    h('td', { class: look ?? '' }, word),
    h('td', { class: 'num' }, model.permits ? `${exact(model.running)} of ${exact(model.permits)}` : exact(model.running)), h('td', { class: `num${model.waiting ? ' s-limited' : ''}` }, exact(model.waiting)),
    h('td', { colspan: 2 }, call ? ['last call ', h('span', { class: call.failed ? 's-failed' : 's-good' }, call.failed ? call.failed.replaceAll('_', ' ') : 'answered'), h('span', { class: 'dim' }, ' ', ageOf(call.at), ' ago')] : h('span', { class: 'dim' }, 'no call yet')));
}

/** @param {any} model */
function modelRow(model) {
  const buckets = model.credentials.flatMap((/** @type {any} */ key) => key.buckets ?? []);
  return h('tr', null,
    h('td', { class: 'under', colspan: 4 }, oneLine(model.name, 60), model.default && h('span', { class: 'tag' }, 'default'), model.model !== model.name && h('span', { class: 'dim mono' }, ` ${oneLine(model.model, 60)}`)),
    h('td', null, model.credentials.length ? model.credentials.map(credential) : h('span', { class: 'dim' }, 'needs no key')),
    h('td', null, buckets.length ? buckets.map(limit) : h('span', { class: 'dim' }, 'no limit known')));
}

/** @param {any[]} models */
export function health(models) {
  /** @type {Map<string, any[]>} */
  const providers = new Map();
  for (const model of models) if (model.usable) providers.set(model.provider, [...(providers.get(model.provider) ?? []), model]);
  const busy = (/** @type {any[]} */ of) => of.some((model) => model.default || model.last_call || model.running);
  const sorted = [...providers.values()].sort((a, b) => Number(busy(b)) - Number(busy(a)) || a[0].provider.localeCompare(b[0].provider));
  const unusable = models.filter((model) => !model.usable);
  return [
    sorted.length > 0 && h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Providers and keys' }, h('table', { class: 'plain providers' },
      h('thead', null, h('tr', null, h('th', null, 'provider'), h('th', null, 'state'), h('th', { class: 'num' }, 'running'), h('th', { class: 'num' }, 'waiting'), h('th', null, 'keys'), h('th', null, 'rate limits left'))),
      sorted.map((of) => h('tbody', null, providerRow(of[0], of.length), of.sort((a, b) => Number(b.default) - Number(a.default) || a.name.localeCompare(b.name)).map(modelRow))))),
    unusable.length > 0 && h('details', { class: 'pad unusable' }, h('summary', null, `${plural(unusable.length, 'model')} that cannot be used yet`), h('ul', null, unusable.map((model) => h('li', null, h('strong', null, oneLine(model.name, 60)), h('span', { class: 'dim' }, ` ${visibleText(model.note)}`))))),
  ];
}
