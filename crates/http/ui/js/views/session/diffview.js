// A unified diff as a table, in one column or two.

import { h, nodes } from '../../dom.js';
import { changedParts, parseDiff, sideBySide } from '../../text/diff.js';
import { highlight, languageOf } from '../../text/highlight.js';
import { visible } from '../../text/visible.js';
import { pane } from './pane.js';

/** @typedef {import('../../text/diff.js').Row} Row */

/** Rows that are drawn at once; a button shows the next ones. */
const ROWS = 400;
/** Longer lines are cut; their whole text is in the tooltip's place, the Events tab. */
const LONG = 2000;

/**
 * @param {string} text
 * @param {{split?: boolean, heads?: boolean, path?: string}} [how]
 * @returns {HTMLElement}
 */
export function diffView(text, { split = false, heads = true, path = '' } = {}) {
  const files = parseDiff(text);
  if (files.length === 0) return pane(text, { lang: 'diff', label: 'Diff' });
  const box = h('div', { class: 'diffs' });
  for (const file of files) {
    const name = file.to || file.from || path;
    if (heads && files.length > 1) box.append(h('div', { class: 'diff-name mono' }, nodes(visible(name))));
    const body = h('tbody');
    const columns = split ? ['ln', 'lc', 'ln', 'lc'] : ['ln', 'ln', 'lc'];
    const table = h('table', { class: `diff${split ? ' split' : ''}` }, h('colgroup', null, columns.map((name) => h('col', { class: name }))), body);
    const lang = languageOf(name);
    /** @type {(() => HTMLElement)[]} */
    const rows = [];
    for (const hunk of file.hunks) {
      rows.push(() => h('tr', { class: 'hunk' }, h('td', { colspan: split ? 4 : 3 }, nodes(visible(hunk.head.slice(0, 300))))));
      const parts = changedParts(hunk.rows);
      if (split) for (const [left, right] of sideBySide(hunk.rows)) rows.push(() => h('tr', null, half(left, 'old', parts, lang), half(right, 'now', parts, lang)));
      else for (const row of hunk.rows) rows.push(() => whole(row, parts, lang));
    }
    let next = 0;
    const more = () => {
      const upto = Math.min(rows.length, next + ROWS);
      for (; next < upto; next += 1) body.append(rows[next]());
      if (next === rows.length) return;
      const button = h('button', { type: 'button', class: 'gap', on: { click: () => (tr.remove(), more()) } }, `⋯ ${rows.length - next} more lines`);
      const tr = h('tr', null, h('td', { colspan: 4 }, button));
      body.append(tr);
    };
    more();
    box.append(h('div', { class: 'diff-scroll', tabindex: 0, role: 'group', 'aria-label': `Changes of ${name.slice(0, 200)}` }, table));
  }
  return box;
}

/** @param {Row} row @param {Map<Row, [number, number]>} parts @param {string} lang */
function whole(row, parts, lang) {
  const kind = { '+': 'add', '-': 'del', ' ': '', '\\': 'meta' }[row.kind];
  return h('tr', { class: kind },
    h('td', { class: 'ln', 'data-n': row.old || '' }),
    h('td', { class: 'ln', 'data-n': row.now || '' }),
    h('td', { class: 'lc' }, h('span', { class: 'sign' }, row.kind === '\\' ? ' ' : row.kind), content(row, parts, lang)));
}

/** @param {Row|null} row @param {'old'|'now'} side @param {Map<Row, [number, number]>} parts @param {string} lang */
function half(row, side, parts, lang) {
  if (!row) return [h('td', { class: 'ln none' }), h('td', { class: 'lc none' })];
  const kind = row.kind === ' ' ? '' : side === 'old' ? 'del' : 'add';
  return [
    h('td', { class: `ln ${kind}`, 'data-n': row[side] || '' }),
    h('td', { class: `lc ${kind}` }, content(row, parts, lang)),
  ];
}

/** @param {Row} row @param {Map<Row, [number, number]>} parts @param {string} lang @returns {Node} */
function content(row, parts, lang) {
  const text = row.text.length > LONG ? `${row.text.slice(0, LONG)}…` : row.text;
  const part = parts.get(row);
  if (!part || part[0] >= part[1] || part[1] > text.length) return nodes(row.kind === '\\' ? visible(text) : highlight(text, lang));
  const [from, to] = part;
  return nodes([
    ...highlight(text.slice(0, from), lang),
    { tag: 'mark', children: visible(text.slice(from, to)) },
    ...highlight(text.slice(to), lang),
  ]);
}
