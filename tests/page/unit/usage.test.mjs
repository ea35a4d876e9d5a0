// The pure parts of the usage and audit views.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pairs } from '../../../crates/http/ui/js/views/audit.js';
import { ceiling, days, stacks } from '../../../crates/http/ui/js/views/usage/days.js';

const NOW = Date.parse('2026-11-24T00:30:00Z');
const row = (day, group, cost_usd) => ({ day, group, steps: 1, usage: { input: 10, output: 1, cache_read: 0, cache_write: 0, reasoning: 0 }, cost_usd });

test('a month of days ends today, in UTC', () => {
  const all = days(NOW);
  assert.deepEqual([all.length, all[0], all.at(-1)], [31, '2026-10-25', '2026-11-24']);
});

test('bars have the largest group first, and small groups share one part', () => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((group, n) => row('2026-11-23', group, n + 1));
  const { groups, bars, most } = stacks([...rows, row('2026-11-24', 'a', 40), row('2026-01-01', 'old', 0)], 'cost', NOW);
  assert.deepEqual(groups, ['a', 'g', 'f', 'e', 'd', '2 others']);
  assert.deepEqual(bars.at(-2)?.values, [1, 7, 6, 5, 4, 5]);
  assert.deepEqual([bars.at(-1)?.sum, most], [40, 40]);
});

test('six groups have six colours', () => {
  const rows = ['a', 'b', 'c', 'd', 'e', 'f'].map((group, n) => row('2026-11-24', group, n + 1));
  assert.deepEqual(stacks(rows, 'steps', NOW).groups.length, 6);
  assert.equal(stacks([], 'tokens', NOW).most, 0);
});

test('the axis ends at a round number', () => {
  assert.deepEqual([0.36, 0.4, 41, 1, 99, 1001].map(ceiling), [0.4, 0.4, 50, 1, 100, 2000]);
});

test('the details of an audit line are pairs, without empty ones and without its columns', () => {
  const line = { at: 'x', who: 'y', event: 'z', what: { decision: 'allow', labels: {}, by: null }, why: 'because', hash: '1', scopes: ['read'] };
  assert.deepEqual(pairs(line), [['decision', 'allow'], ['why', 'because'], ['scopes', ['read']]]);
});
