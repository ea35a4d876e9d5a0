// Keys: of the page and of the view on display. A key may have two parts: `g f`.

import { h } from './dom.js';
import { dialog } from './ui.js';

/** How long the first part of a key waits for the second. */
const PAUSE = 1500;

/** @typedef {{help: string, run: (event: KeyboardEvent) => void}} Key */

/** @type {Set<Record<string, Key>>} */
const layers = new Set();
let first = '';
let timer = 0;

/**
 * @param {Record<string, Key>} keys
 * @returns {() => void} removes them
 */
export function bind(keys) {
  layers.add(keys);
  return () => layers.delete(keys);
}

/** @param {EventTarget|null} target */
const types = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) && /** @type {HTMLInputElement} */ (target).type !== 'checkbox');

/** @param {string} key */
function find(key) {
  for (const layer of [...layers].reverse()) if (layer[key]) return layer[key];
  return null;
}

/** @param {string} part */
const begins = (part) => [...layers].some((layer) => Object.keys(layer).some((key) => key.startsWith(`${part} `)));

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector('dialog[open]')) return;
  if (types(event.target)) {
    if (event.key === 'Escape') /** @type {HTMLElement} */ (event.target).blur();
    return;
  }
  // Buttons and links have Enter and Space for themselves.
  if (['Enter', ' '].includes(event.key) && event.target instanceof HTMLElement && event.target.closest('button, a, summary, input')) return;
  const key = first ? `${first} ${event.key}` : event.key;
  first = '';
  clearTimeout(timer);
  const found = find(key);
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if (begins(key)) {
    first = key;
    timer = window.setTimeout(() => (first = ''), PAUSE);
  }
}

/** Starts to listen, and adds `?`. */
export function listen() {
  document.addEventListener('keydown', pressed);
  bind({ '?': { help: 'show these keys', run: () => void help() } });
}

export function help() {
  const rows = [...layers].reverse().flatMap((layer) => Object.entries(layer)).filter(([, { help: text }]) => text);
  const body = h('dl', { class: 'keys' }, rows.map(([key, { help: text }]) =>
    h('div', null, h('dt', null, key.split(' ').map((part) => h('kbd', null, part === '' ? 'Space' : part))), h('dd', null, text))));
  return dialog({ title: 'Keys', body, actions: [{ label: 'Close', value: '' }], wide: true });
}
