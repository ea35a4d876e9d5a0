// Tokens and money of the last days, as stacked bars: one bar a day, one colour a group.

import { h } from '../../dom.js';
import { count, exact, money, tokens } from '../../format.js';
import { oneLine } from '../../text/visible.js';

/** @typedef {{day: string, group: string, steps: number, usage: import('../../types.js').Usage, cost_usd: number}} Day */
/** @typedef {'cost'|'tokens'|'steps'} Measure */

const DAYS = 31;
const DAY = 24 * 60 * 60 * 1000;
/** Groups with a colour of their own; the others share one. */
const COLOURS = 5;

/** @type {Record<Measure, {of: (row: Day) => number, say: (value: number) => string}>} */
export const MEASURES = {
  cost: { of: (row) => row.cost_usd, say: money },
  tokens: { of: (row) => tokens(row.usage), say: count },
  steps: { of: (row) => row.steps, say: exact },
};

/** The days up to today, as the daemon counts them: in UTC. @param {number} now */
export const days = (now) => Array.from({ length: DAYS }, (_, n) => new Date(now - (DAYS - 1 - n) * DAY).toISOString().slice(0, 10));

/**
 * The parts of each bar, the largest group of all at the bottom.
 * @param {Day[]} rows
 * @param {Measure} measure
 * @param {number} now
 */
export function stacks(rows, measure, now) {
  const { of } = MEASURES[measure];
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const row of rows) sums.set(row.group, (sums.get(row.group) ?? 0) + of(row));
  const order = [...sums].filter(([, sum]) => sum > 0).sort((a, b) => b[1] - a[1]).map(([group]) => group);
  const own = order.slice(0, order.length > COLOURS + 1 ? COLOURS : COLOURS + 1);
  const groups = order.length > own.length ? [...own, `${order.length - own.length} others`] : own;
  const bars = days(now).map((day) => {
    const values = groups.map(() => 0);
    for (const row of rows) {
      if (row.day !== day) continue;
      const at = own.indexOf(row.group);
      const place = at < 0 ? groups.length - 1 : at;
      values[place] = (values[place] ?? 0) + of(row);
    }
    return { day, values, sum: values.reduce((all, one) => all + one, 0) };
  });
  return { groups, bars, most: Math.max(...bars.map(({ sum }) => sum)) };
}

/** The next number with one digit, for the top of the axis. @param {number} most */
export function ceiling(most) {
  const unit = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 5, 8, 10].map((n) => n * unit).find((n) => n >= most) ?? most;
}

const month = (/** @type {string} */ day) => new Date(`${day}T00:00:00Z`).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/**
 * @param {Day[]} rows
 * @param {Measure} measure
 * @param {number} now
 */
export function chart(rows, measure, now) {
  const { groups, bars, most } = stacks(rows, measure, now);
  const { say } = MEASURES[measure];
  if (!most) return h('p', { class: 'dim pad' }, measure === 'cost' ? 'Nothing with a known price was spent in these days.' : 'Nothing happened in these days.');
  const top = ceiling(most);
  const words = (/** @type {typeof bars[number]} */ { day, values, sum }) => `${month(day)}: ${say(sum)}${sum ? `\n${groups.map((group, n) => [group, values[n] ?? 0]).filter(([, value]) => value).map(([group, value]) => `${oneLine(String(group), 40)} ${say(Number(value))}`).join('\n')}` : ''}`;
  return [
    h('div', { class: 'days', role: 'img', 'aria-label': `${measure} of each day: ${bars.filter(({ sum }) => sum).map(({ day, sum }) => `${month(day)} ${say(sum)}`).join(', ')}` },
      h('span', { class: 'days-axis' }, [top, top / 2, 0].map((value) => h('span', null, say(value)))),
      bars.map((one, n) => h('span', { class: 'day', title: words(one) },
        h('span', { class: 'day-bar', style: { height: `${(100 * one.sum) / top}%` } },
          one.values.map((value, at) => value > 0 && h('span', { class: `g${at}`, style: { height: `${(100 * value) / one.sum}%` } }))),
        h('span', { class: 'day-name' }, n > 2 && (bars.length - 1 - n) % 7 === 0 ? month(one.day) : '')))),
    h('ul', { class: 'window-key' }, groups.map((group, n) => h('li', null, h('i', { class: `g${n}`, 'aria-hidden': 'true' }), oneLine(group, 60)))),
  ];
}

/** The same as a table, for screen readers and exact figures. @param {Day[]} rows @param {string} by */
export function table(rows, by) {
  return h('details', { class: 'pad' }, h('summary', null, 'The figures of each day'), h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Usage by day' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, h('th', null, 'day (UTC)'), h('th', null, by), ['steps', 'read', 'written', 'cost'].map((name) => h('th', { class: 'num' }, name)))),
    h('tbody', null, rows.slice(0, 400).map(({ day, group, steps, usage, cost_usd: cost }) => h('tr', null,
      h('td', { class: 'nowrap' }, day), h('td', null, oneLine(group, 80)), h('td', { class: 'num' }, exact(steps)),
      h('td', { class: 'num' }, exact(usage.input + usage.cache_read + usage.cache_write)), h('td', { class: 'num' }, exact(usage.output)), h('td', { class: 'num' }, money(cost))))))));
}
