// The Context tab: what the model's window holds, what each part costs, and what the provider's cache gave.

import { h, put } from '../../dom.js';
import { clock, count, exact, money, moment, plural } from '../../format.js';
import { agentctl, blank, copies, curl, loading } from '../../ui.js';
import { line } from './pane.js';
import { requestsOf } from './window.js';

/**
 * @typedef {{kind: string, part: string, items: number, tokens: number, cached: number}} Part
 * @typedef {{seq: number, kind: string, tool: string, tokens: number}} Item
 * @typedef {{at: string, seq: number, why: string, tokens: number, cost_usd?: number}} Broken
 * @typedef {{window: number|null, tokens: number, counted: boolean, messages: number, cached: number, cache: {saved_usd: number, broken: Broken[]}, parts: Part[], largest: Item[]}} Shown
 */

/** The window changes with every event of a turn, and reading it folds the whole log. */
const PAUSE = 2000;

/**
 * @param {HTMLElement} root
 * @param {import('./log.js').Log} log
 */
export function context(root, log) {
  const stop = new AbortController();
  let timer = 0;
  let late = false;
  const read = async () => {
    timer = -1;
    late = false;
    try {
      draw(root, log, await log.ctx.client.get(`${log.path}/context`, {}, stop.signal));
    } catch (error) {
      if (stop.signal.aborted) return;
      put(root, blank('The window could not be read.', /** @type {Error} */ (error).message));
    }
    timer = window.setTimeout(() => {
      timer = 0;
      if (late) void read();
    }, PAUSE);
  };
  put(root, loading());
  void read();
  const unsubscribe = log.subscribe(({ items, all, summary }) => {
    if (!items && !all && !summary) return;
    late = true;
    if (timer === 0) void read();
  });
  return () => {
    stop.abort();
    clearTimeout(timer);
    unsubscribe();
  };
}

/** @param {HTMLElement} root @param {import('./log.js').Log} log @param {Shown} shown */
function draw(root, log, shown) {
  const { parts, largest, tokens: total, window, counted } = shown;
  if (parts.length === 0) {
    put(root, blank('The window is empty.', 'It fills with the first message.'));
    return;
  }
  const requests = requestsOf(log.events);
  const whole = Math.max(window ?? 0, total, 1);
  const name = new Map(parts.map(({ kind, part }) => [kind, part]));
  put(root,
    h('div', { class: 'toolbar' },
      h('strong', null, `about ${count(total)} tokens${window ? ` of ${count(window)} (${Math.round((100 * total) / window)}%)` : ''}`),
      h('span', { class: 'dim' }, `${exact(shown.messages)} messages, ${count(shown.cached)} tokens in the provider's cache${counted ? '' : '; without the system prompt and the tools until the provider has counted'}`),
      h('span', { class: 'grow' }), copies(() => ({ command: agentctl('show', '--window', log.session), curl: curl('GET', `/sessions/${log.session}/context`) }))),
    h('div', { class: 'window-bar', role: 'img', 'aria-label': parts.map(({ part, tokens }) => `${part}: ${exact(tokens)}`).join(', ') },
      parts.map(({ kind, part, tokens, cached }) => h('span', { class: `w-${kind}`, title: `${part}: ${exact(tokens)} tokens, ${exact(cached)} in the cache`, style: { width: `${(100 * tokens) / whole}%` } }))),
    h('ul', { class: 'window-key' }, parts.map(({ kind, part, items, tokens }) => h('li', null, h('i', { class: `w-${kind}`, 'aria-hidden': 'true' }), part, h('span', { class: 'dim', title: plural(items, 'item') }, ` ${count(tokens)}${items > 1 ? `, ${exact(items)} items` : ''}`)))),
    h('div', { class: 'two' },
      h('section', null, h('h2', null, 'Largest parts'), h('div', { class: 'scroll-x' }, h('table', { class: 'plain' },
        h('thead', null, h('tr', null, h('th', null, 'event'), h('th', null, 'part'), h('th', { class: 'num' }, 'tokens'), h('th', { class: 'num' }, 'share'))),
        h('tbody', null, largest.slice(0, 30).map(({ seq, kind, tool, tokens }) => h('tr', null,
          h('td', { class: 'num' }, h('a', { href: `#/session/${log.session}/transcript?at=${seq}` }, `#${seq}`)),
          h('td', { class: 'wrap' }, h('i', { class: `key w-${kind}`, 'aria-hidden': 'true' }), tool ? [line(tool, 60), h('span', { class: 'dim' }, ` ${name.get(kind)}`)] : name.get(kind)),
          h('td', { class: 'num' }, exact(tokens)), h('td', { class: 'num' }, `${((100 * tokens) / Math.max(1, total)).toFixed(1)}%`))))))),
      h('section', null, h('h2', null, 'Cache'), saved(shown, requests),
        requests.length > 0 && cache(requests, log.session))));
}

/** @param {Shown} shown @param {ReturnType<typeof requestsOf>} requests */
function saved({ cache: { saved_usd: usd, broken } }, requests) {
  const sum = requests.reduce((all, one) => ({ input: all.input + one.fresh + one.read + one.written, read: all.read + one.read }), { input: 0, read: 0 });
  const share = Math.round((100 * sum.read) / Math.max(1, sum.input));
  return [
    h('p', { class: 'dim' }, requests.length === 0 ? 'No request has been answered yet.' : `${share}% of the input came from it; it has saved ${money(usd)}.`),
    broken.length > 0 && h('ul', null, broken.slice(-10).map(({ at, why, tokens, cost_usd: cost }) => h('li', null,
      `Broken at ${clock(at)}: `, line(why, 200), `; ${count(tokens)} tokens again${cost ? `, ${money(cost)}` : ''}`))),
  ];
}

/** @param {ReturnType<typeof requestsOf>} requests @param {string} session */
function cache(requests, session) {
  const shown = requests.slice(-60).reverse();
  const most = Math.max(...shown.map(({ fresh, read, written }) => fresh + read + written), 1);
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'group', 'aria-label': 'Requests' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, h('th', null, 'time'), h('th', null, 'input'), h('th', { class: 'num' }, 'cached'), h('th', { class: 'num' }, 'new'), h('th', { class: 'num' }, 'out'), h('th', { class: 'num' }, 'cost'))),
    h('tbody', null, shown.map(({ seq, at, fresh, read, written, out, cost }) => h('tr', null,
      h('td', null, h('a', { href: `#/session/${session}/transcript?at=${seq}`, title: moment(at) }, clock(at))),
      h('td', { class: 'cache-cell' }, h('span', { class: 'window-bar thin', 'aria-hidden': 'true' },
        h('span', { class: 'c-read', style: { width: `${(100 * read) / most}%` } }), h('span', { class: 'c-written', style: { width: `${(100 * written) / most}%` } }), h('span', { class: 'c-fresh', style: { width: `${(100 * fresh) / most}%` } }))),
      h('td', { class: 'num' }, `${Math.round((100 * read) / Math.max(1, fresh + read + written))}%`),
      h('td', { class: 'num' }, count(fresh + written)), h('td', { class: 'num' }, count(out)), h('td', { class: 'num' }, money(cost)))))));
}
