// Parts that all views use: toasts, dialogs, copying, states.

import { h, say, svg } from './dom.js';
import { age, group, localTimes, quote, stateMark, stateWord, until } from './format.js';
import { visibleText as visible } from './text/visible.js';

/** @type {HTMLElement|null} */
let toasts = null;

/** Where toasts appear; screen readers announce them. */
export function toastRegion() {
  toasts = h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' });
  return toasts;
}

/**
 * @param {string} message
 * @param {{hint?: string|undefined, kind?: 'good'|'bad'|'plain'}} [options]
 */
export function toast(message, { hint, kind = 'plain' } = {}) {
  const close = h('button', { class: 'icon', 'aria-label': 'Dismiss', on: { click: () => box.remove() } }, '×');
  const box = h('div', { class: `toast ${kind}` },
    h('div', { class: 'grow' }, h('div', null, visible(message)), hint && h('div', { class: 'dim' }, visible(hint))), close);
  toasts?.append(box);
  while (toasts && toasts.children.length > 4) toasts.firstElementChild?.remove();
  setTimeout(() => box.remove(), kind === 'bad' ? 12_000 : 4_000);
}

/**
 * Shows an error with its hint.
 * @param {unknown} error
 * @param {string} [what] what was tried
 */
export function fail(error, what = '') {
  const { message, hint, name } = /** @type {any} */ (error);
  if (name === 'AbortError') return;
  toast(what ? `${what}: ${message}` : message, { hint, kind: 'bad' });
}

/**
 * A dialog. The promise gives the value of the button that was pressed; `null` after Escape.
 * @param {{title: string, body?: import('./dom.js').Child, actions: {label: string, value: string, kind?: string}[], wide?: boolean, focus?: HTMLElement}} options
 * @returns {Promise<string|null>}
 */
export function dialog({ title, body, actions, wide, focus }) {
  return new Promise((resolve) => {
    const form = h('form', { method: 'dialog' },
      h('h2', { id: 'dialog-title' }, title),
      h('div', { class: 'dialog-body', tabindex: 0 }, body),
      h('div', { class: 'actions' }, actions.map(({ label, value, kind }) => h('button', { value, class: kind ?? '' }, label))));
    const box = h('dialog', { 'aria-labelledby': 'dialog-title', class: wide ? 'wide' : '' }, form);
    box.addEventListener('close', () => {
      box.remove();
      resolve(box.returnValue || null);
    });
    box.addEventListener('click', (event) => {
      if (event.target === box) box.close('');
    });
    document.body.append(box);
    box.showModal();
    (focus ?? /** @type {HTMLElement|null} */ (box.querySelector('.actions button:last-child')))?.focus();
  });
}

/**
 * Asks before something that is hard to take back.
 * @param {{title: string, body?: import('./dom.js').Child, action: string, kind?: string}} options
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, body, action, kind = 'primary' }) {
  const actions = [{ label: 'Back', value: '' }, { label: action, value: 'yes', kind }];
  return (await dialog({ title, body, actions })) === 'yes';
}

/**
 * Asks for a line of text; `null` after Cancel.
 * @param {{title: string, label: string, value?: string, action: string, hint?: string, required?: boolean}} options
 * @returns {Promise<string|null>}
 */
export async function ask({ title, label, value = '', action, hint, required = false }) {
  const input = h('input', { type: 'text', value, required, autocomplete: 'off', maxlength: 1000 });
  const body = h('label', { class: 'field' }, label, input, hint && h('span', { class: 'dim' }, hint));
  // Enter presses the first button of a form: this hidden one.
  const first = h('button', { value: 'yes', class: 'hidden', tabindex: -1, 'aria-hidden': 'true' });
  const actions = [{ label: 'Back', value: '' }, { label: action, value: 'yes', kind: 'primary' }];
  const pressed = await dialog({ title, body: [first, body], actions, focus: input });
  return pressed === 'yes' ? input.value.trim() : null;
}

/** @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied ${what}.`, { kind: 'good' });
  } catch {
    // Without TLS, other machines get no clipboard: show the text instead.
    await dialog({ title: `Copy ${what}`, body: h('pre', { class: 'code', tabindex: 0 }, text), actions: [{ label: 'Close', value: '' }], wide: true });
  }
}

/** A command line of `agentctl`. @param {...string} words */
export const agentctl = (...words) => ['agentctl', ...words].map(quote).join(' ');

/**
 * A request as `curl` makes it. The token stays a variable: a copied command must not contain it.
 * @param {string} verb
 * @param {string} path below `/v1`
 * @param {any} [body]
 */
export function curl(verb, path, body) {
  const data = body === undefined ? '' : ` --json ${quote(JSON.stringify(body))}`;
  const as = verb === 'GET' || (verb === 'POST' && data) ? '' : ` -X ${verb}`;
  return `curl -sS${as}${data} -H "Authorization: Bearer $TOKEN" ${quote(`${location.origin}/v1${path}`)}`;
}

const copyIcon = () => svg('svg', { class: 'glyph', viewBox: '0 0 16 16', 'aria-hidden': 'true' },
  svg('rect', { x: 5.5, y: 5.5, width: 8, height: 8, rx: 1.5 }), svg('path', { d: 'M3 10.5h-.5V3.5a1 1 0 0 1 1-1h7V3' }));

/**
 * Two buttons: "copy as agentctl" and "copy as curl".
 * @param {() => {command: string, curl: string}} make
 */
export function copies(make) {
  return h('span', { class: 'copies' },
    h('button', { type: 'button', class: 'quiet', title: 'Copy as agentctl command', on: { click: () => void copy(make().command, 'the agentctl command') } }, copyIcon(), 'agentctl'),
    h('button', { type: 'button', class: 'quiet', title: 'Copy as curl command', on: { click: () => void copy(make().curl, 'the curl command') } }, copyIcon(), 'curl'));
}

/**
 * A state as mark and word.
 * @param {{state: string}} row
 */
export function stateChip(row) {
  return h('span', { class: `state s-${group(row.state)}` }, h('span', { class: 'mark', 'aria-hidden': 'true' }, stateMark(row.state)), stateWord(row.state));
}

/**
 * What a view shows in place of content: empty, an error, still loading.
 * @param {string} title
 * @param {...import('./dom.js').Child} more what to do
 */
export const blank = (title, ...more) => h('div', { class: 'blank' }, h('p', { class: 'blank-title' }, title), more.map((part) => h('p', null, part)));

/** @param {unknown} error @param {() => void} again */
export function failure(error, again) {
  const { message, hint } = /** @type {any} */ (error);
  return blank(visible(message), hint && visible(hint), h('button', { type: 'button', on: { click: again } }, 'Try again'));
}

export const loading = () => h('div', { class: 'blank', 'aria-busy': 'true' }, h('span', { class: 'spinner', 'aria-hidden': 'true' }), 'Loading…');

/**
 * A little line chart without axes; a label says the figures.
 * @param {number[]} values
 * @param {string} label
 */
export function spark(values, label) {
  const [width, height] = [96, 22];
  const most = Math.max(1, ...values);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, n) => `${(n * step).toFixed(1)},${(height - 2 - (value / most) * (height - 4)).toFixed(1)}`);
  return svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, preserveAspectRatio: 'none' },
    svg('polygon', { class: 'spark-area', points: `0,${height} ${points.join(' ')} ${width},${height}` }),
    svg('polyline', { class: 'spark-line', points: points.join(' ') }));
}

/**
 * A bar that shows a share, such as of a budget; a full one is an alarm, unless `calm`.
 * @param {number} share 0 to 1
 * @param {string} label
 * @param {boolean} [calm]
 */
export function bar(share, label, calm = false) {
  const part = Math.max(0, Math.min(1, share));
  return h('span', { class: `bar${calm ? '' : part > 0.9 ? ' full' : part > 0.7 ? ' high' : ''}`, role: 'img', 'aria-label': label },
    h('span', { style: { width: `${(part * 100).toFixed(1)}%` } }));
}

/** Text of a state: why, and until when. @param {import('./types.js').Row} row */
export function why(row) {
  const left = until(row.until);
  const parts = [localTimes(row.reason)];
  if (row.attempt && row.attempt > 1 && !row.reason.includes('attempt')) parts.push(`attempt ${row.attempt}`);
  if (row.position && !/in line/.test(row.reason)) parts.push(`place ${row.position}`);
  if (left) parts.push(left);
  return parts.filter(Boolean).join(' · ');
}

/** An element whose text is the age of `at`; `tick` brings it up to date. @param {string|null|undefined} at */
export const ageOf = (at) => h('time', { class: 'age', datetime: at ?? '', data: { at: at ?? '' } }, age(at));

/** Brings all ages below `root` up to date. @param {ParentNode} root */
export function tick(root) {
  const now = Date.now();
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll('time.age'))) say(element, age(element.dataset.at, now));
}
