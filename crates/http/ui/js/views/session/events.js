// The raw log: one line per event, filtered, each as its JSON. Only the lines in the window have elements.

import { h, put } from '../../dom.js';
import { clock, moment } from '../../format.js';
import { agentctl, copies, copy, curl } from '../../ui.js';
import { words } from './items.js';
import { json, line } from './pane.js';

/** @typedef {import('../../types.js').LogEvent} LogEvent */

const HEIGHT = 24;

/**
 * @param {HTMLElement} root
 * @param {import('./log.js').Log} log
 * @param {{seq: number, transcript: (seq: number) => void}} how
 */
export function events(root, log, { seq, transcript }) {
  /** @type {LogEvent[]} */
  let shown = [];
  let chosen = seq;
  let follow = !seq;
  let frame = 0;
  const filter = h('input', { type: 'search', placeholder: 'Filter: type, id, text', 'aria-label': 'Filter events', autocomplete: 'off' });
  const number = h('span', { class: 'dim' });
  const space = h('div', { class: 'ev-space' });
  const rows = h('div', { class: 'ev-rows' });
  const list = h('div', { class: 'ev-list', tabindex: 0, role: 'listbox', 'aria-label': 'Events' }, space, rows);
  const detail = h('aside', { class: 'ev-detail', 'aria-label': 'Event' });
  put(root,
    h('div', { class: 'toolbar' }, filter, number, h('span', { class: 'grow' }),
      h('button', { type: 'button', class: 'quiet', title: 'Copy the events that match, as JSON lines', on: { click: () => copy(shown.slice(-5000).map((event) => JSON.stringify(event)).join('\n'), `${Math.min(5000, shown.length)} events`) } }, 'Copy all'),
      copies(() => ({ command: agentctl('export', log.session), curl: curl('GET', `/sessions/${log.session}/events?after=0`) }))),
    h('div', { class: 'ev-main' }, list, detail));

  const matches = () => {
    const terms = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (terms.length === 0) return log.events;
    return log.events.filter((event) => {
      const head = `${event.seq} ${event.type} ${event.by} ${event.tool_call ?? ''} ${event.turn ?? ''} ${event.call ?? ''}`.toLowerCase();
      return terms.every((term) => head.includes(term) || (term.length > 2 && JSON.stringify(event).toLowerCase().includes(term)));
    });
  };

  const draw = () => {
    frame = 0;
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 10);
    const last = Math.min(shown.length, first + Math.ceil(list.clientHeight / HEIGHT) + 20);
    rows.style.transform = `translateY(${first * HEIGHT}px)`;
    put(rows, shown.slice(first, last).map((event) => h('div', {
      class: `ev-row f-${event.type.split('.')[0]}`, role: 'option', id: `ev-${event.seq}`, 'aria-selected': String(event.seq === chosen), data: { seq: event.seq },
    },
    h('span', { class: 'ev-seq' }, event.seq), h('span', { class: 'ev-at', title: moment(event.at) }, clock(event.at)), h('span', { class: 'ev-type' }, line(event.type, 40)), h('span', { class: 'ev-text' }, line(brief(event), 200)))));
    list.setAttribute('aria-activedescendant', rows.querySelector(`#ev-${chosen}`) ? `ev-${chosen}` : '');
  };
  const soon = () => {
    if (!frame) frame = requestAnimationFrame(draw);
  };
  const refresh = () => {
    const atEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - HEIGHT * 2;
    shown = matches();
    number.textContent = shown.length === log.events.length ? `${shown.length}` : `${shown.length} of ${log.events.length}`;
    space.style.height = `${shown.length * HEIGHT}px`;
    if (follow && atEnd) list.scrollTop = list.scrollHeight;
    soon();
  };
  /** @param {number} to */
  const choose = (to) => {
    const event = log.events[to - log.base - 1];
    chosen = to;
    if (!event) return;
    put(detail,
      h('div', { class: 'toolbar' }, h('strong', { class: 'mono' }, `#${event.seq}`), h('span', { class: 'mono cut grow' }, line(event.type, 60)),
        h('button', { type: 'button', class: 'quiet', on: { click: () => transcript(event.seq) } }, 'In the transcript'),
        h('button', { type: 'button', class: 'quiet', on: { click: () => copy(JSON.stringify(event, null, 2), `event ${event.seq}`) } }, 'Copy'),
        h('button', { type: 'button', class: 'icon', 'aria-label': 'Close the event', on: { click: () => (put(detail), detail.classList.remove('open'), list.focus()) } }, '×')),
      json(event, `Event ${event.seq}`));
    detail.classList.add('open');
    soon();
  };
  /** @param {number} index */
  const bring = (index) => {
    const top = index * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
  };

  filter.addEventListener('input', refresh);
  list.addEventListener('scroll', () => {
    follow = list.scrollTop + list.clientHeight >= list.scrollHeight - HEIGHT * 2;
    soon();
  }, { passive: true });
  list.addEventListener('click', (event) => {
    const row = /** @type {HTMLElement|null} */ (/** @type {HTMLElement} */ (event.target).closest('.ev-row'));
    if (row) choose(Number(row.dataset.seq));
  });
  list.addEventListener('keydown', (event) => {
    const at = shown.findIndex((one) => one.seq === chosen);
    const page = Math.floor(list.clientHeight / HEIGHT);
    const to = { ArrowDown: at + 1, ArrowUp: at === -1 ? shown.length - 1 : at - 1, j: at + 1, k: at - 1, Home: 0, End: shown.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (event.key === 'Enter' && at >= 0) return transcript(chosen);
    if (to === undefined || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const index = Math.max(0, Math.min(shown.length - 1, to));
    if (!shown[index]) return;
    bring(index);
    choose(shown[index].seq);
  });
  const sizes = new ResizeObserver(soon);
  sizes.observe(list);
  let timer = 0;
  const unsubscribe = log.subscribe(({ items, all }) => {
    if ((!items && !all) || timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      refresh();
    }, 150);
  });
  refresh();
  if (seq) {
    choose(seq);
    list.scrollTop = Math.max(0, (seq - log.base) * HEIGHT - list.clientHeight / 2);
  } else {
    list.scrollTop = list.scrollHeight;
  }
  return () => {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    sizes.disconnect();
    unsubscribe();
  };
}

/** What an event says, in a few words. @param {LogEvent} event */
function brief(event) {
  switch (event.type) {
    case 'input.accepted': return event.content?.find((/** @type {any} */ block) => block.type === 'text')?.text ?? '';
    case 'turn.started': return '';
    case 'turn.finished': return `${event.reason} · ${event.text ?? ''}`;
    case 'model.started': return `${event.configured ?? event.model} step ${event.step} attempt ${event.attempt}`;
    case 'model.finished': return event.content?.map((/** @type {any} */ block) => block.text ?? block.name ?? block.type).join(' ') ?? '';
    case 'model.failed': return `${event.class} ${event.message}`;
    case 'tool.proposed': return `${event.name} ${JSON.stringify(event.input)}`;
    case 'tool.started': return event.title;
    case 'tool.finished': return `${event.status} ${event.display ?? event.llm_text ?? ''}`;
    case 'verdict.given': return `${event.verdict} ${event.rule} ${event.reason}`;
    case 'approval.asked': return event.title;
    case 'approval.decided': return `${event.decision} ${event.scope}${event.basis === 'policy' ? ' by policy' : ''} ${event.message ?? ''}`;
    case 'subagent.started': return event.purpose;
    case 'subagent.finished': return `${event.reason ?? ''} ${event.result ?? ''}`;
    case 'hook.finished': return `${event.hook} ${event.event} ${event.status}`;
    case 'imported.event': return event.event?.type ?? '';
    default: {
      const [, head, text] = words(event);
      return head === event.type ? '' : `${head} ${text}`;
    }
  }
}
