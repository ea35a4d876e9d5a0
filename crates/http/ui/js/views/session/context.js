// The Context tab: what the model's window holds, what each part costs, and what the provider's cache gave.

import { h, put } from '../../dom.js';
import { clock, count, exact, money, moment } from '../../format.js';
import { agentctl, blank, copies, curl } from '../../ui.js';
import { line } from './pane.js';
import { partWord, requestsOf, windowOf } from './window.js';

const ORDER = ['system', 'summary', 'input', 'note', 'answer', 'thinking', 'call', 'result'];

/**
 * @param {HTMLElement} root
 * @param {import('./log.js').Log} log
 */
export function context(root, log) {
  const draw = () => {
    const { parts } = windowOf(log.events);
    const { window } = log;
    const total = parts.reduce((sum, part) => sum + part.tokens, 0);
    const requests = requestsOf(log.events);
    if (parts.length === 0) {
      put(root, blank('The window is empty.', 'It fills with the first message.'));
      return;
    }
    const kinds = ORDER.map((kind) => ({ kind, tokens: parts.filter((part) => part.kind === kind).reduce((sum, part) => sum + part.tokens, 0) })).filter(({ tokens }) => tokens > 0);
    const whole = Math.max(window, total);
    const largest = [...parts].sort((a, b) => b.tokens - a.tokens).slice(0, 30);
    const sum = requests.reduce((all, one) => ({ fresh: all.fresh + one.fresh, read: all.read + one.read, written: all.written + one.written }), { fresh: 0, read: 0, written: 0 });
    const hit = sum.read / Math.max(1, sum.fresh + sum.read + sum.written);
    put(root,
      h('div', { class: 'toolbar' },
        h('strong', null, `about ${count(total)} tokens${window ? ` of ${count(window)} (${Math.round((100 * total) / window)}%)` : ''}`),
        h('span', { class: 'dim' }, 'Estimated from the log and the last count of the provider'),
        h('span', { class: 'grow' }), copies(() => ({ command: agentctl('show', '--window', log.session), curl: curl('GET', `/sessions/${log.session}/events?after=0`) }))),
      h('div', { class: 'window-bar', role: 'img', 'aria-label': kinds.map(({ kind, tokens }) => `${partWord(kind)}: ${exact(tokens)}`).join(', ') },
        kinds.map(({ kind, tokens }) => h('span', { class: `w-${kind}`, title: `${partWord(kind)}: ${exact(tokens)} tokens`, style: { width: `${(100 * tokens) / whole}%` } }))),
      h('ul', { class: 'window-key' }, kinds.map(({ kind, tokens }) => h('li', null, h('i', { class: `w-${kind}`, 'aria-hidden': 'true' }), partWord(kind), h('span', { class: 'dim' }, ` ${count(tokens)}`)))),
      h('div', { class: 'two' },
        h('section', null, h('h2', null, 'Largest parts'), h('div', { class: 'scroll-x' }, h('table', { class: 'plain' },
          h('thead', null, h('tr', null, h('th', null, 'event'), h('th', null, 'part'), h('th', { class: 'num' }, 'tokens'), h('th', { class: 'num' }, 'share'))),
          h('tbody', null, largest.map((part) => h('tr', null,
            h('td', { class: 'num' }, part.seq ? h('a', { href: `#/session/${log.session}/transcript?at=${part.seq}` }, `#${part.seq}`) : ''),
            h('td', { class: 'wrap' }, h('i', { class: `key w-${part.kind}`, 'aria-hidden': 'true' }), line(part.kind === 'result' || part.kind === 'call' ? `${part.name} ${part.kind}` : part.name || partWord(part.kind), 100), part.note && h('span', { class: 'dim' }, ` ${part.note}`)),
            h('td', { class: 'num' }, exact(part.tokens)), h('td', { class: 'num' }, `${((100 * part.tokens) / total).toFixed(1)}%`))))))),
        h('section', null, h('h2', null, `Cache: ${Math.round(hit * 100)}% of the input came from it`),
          requests.length === 0 ? h('p', { class: 'dim' }, 'No request has been answered yet.') : cache(requests, log.session))));
  };
  draw();
  let timer = 0;
  const unsubscribe = log.subscribe(({ items, all, summary }) => {
    if ((!items && !all && !summary) || timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      draw();
    }, 1000);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
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
