// The pure parts of the fleet: events to rows, filters, order and tree, streams, figures.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyEvent, describe as describeEvent } from '../../../crates/http/ui/js/apply.js';
import { age, clock, count, duration, exact, group, localTimes, moment, money, quote } from '../../../crates/http/ui/js/format.js';
import { Frames } from '../../../crates/http/ui/js/frames.js';
import { lines, matcher, read, words, write } from '../../../crates/http/ui/js/views/fleet/query.js';

const at = '2026-01-02T03:04:05.000Z';
const created = { session: 's1', seq: 1, at, by: 'user:ana', type: 'session.created', title: 'one', model: 'm', labels: { team: 'a' } };
const row = (session, more = {}) => ({ ...applyEvent(undefined, { ...created, session, title: session }), ...more });

test('a created session is a row; other events of unknown sessions are none', () => {
  assert.equal(applyEvent(undefined, created).name, 'one');
  assert.equal(applyEvent(undefined, { ...created, type: 'turn.started' }), undefined);
});

test('events change the state, and old ones do not', () => {
  let now = applyEvent(undefined, created);
  now = applyEvent(now, { session: 's1', seq: 2, at, by: 'agentd', type: 'model.failed', message: '429', retry_at: at });
  assert.deepEqual([now.state, now.until], ['backing_off', at]);
  now = applyEvent(now, { session: 's1', seq: 3, at, by: 'agentd', type: 'tool.started', title: 'Read a' });
  assert.deepEqual([now.state, now.until], ['running(tool)', undefined]);
  const old = applyEvent(now, { session: 's1', seq: 2, at, by: 'agentd', type: 'turn.finished', reason: 'completed' });
  assert.equal(old.state, 'running(tool)');
  const ended = applyEvent(now, { session: 's1', seq: 4, at, by: 'agentd', type: 'turn.finished', reason: 'model_error', error: { message: 'no' } });
  assert.deepEqual([ended.state, ended.reason], ['failed', 'no']);
});

test('usage and cost add up', () => {
  const usage = { input: 5, output: 2, cache_read: 1, cache_write: 0, reasoning: 0 };
  let now = applyEvent(undefined, created);
  for (const seq of [2, 3]) now = applyEvent(now, { session: 's1', seq, at, by: 'agentd', type: 'model.finished', usage, cost_usd: 0.5, content: [] });
  assert.deepEqual([now.usage.input, now.steps, now.cost_usd], [10, 2, 1]);
});

test('an event in words is one line', () => {
  assert.equal(describeEvent({ ...created, type: 'tool.finished', status: 'ok', display: 'a\nb' }), 'ok: a');
  assert.ok(describeEvent({ ...created, type: 'approval.asked', title: 'x'.repeat(500) }).length <= 120);
});

test('the fragment says everything that differs from the default', () => {
  for (const hash of ['#/fleet', '#/fleet?state=person,failed&sort=state', '#/fleet?q=team=a&sort=cost&order=asc&tree=off&closed=shown', '#/fleet?sort=name&order=desc']) {
    assert.equal(write(read(new URLSearchParams(hash.split('?')[1] ?? ''))), hash);
  }
  assert.deepEqual(read(new URLSearchParams('state=nonsense&sort=__proto__')).states, []);
});

test('filters: labels, words, groups', () => {
  assert.deepEqual(words('team=a Hello  x=1'), { labels: ['team=a', 'x=1'], plain: ['hello'] });
  const find = (text, states = []) => [row('alpha'), row('beta', { state: 'failed', labels: {} })].filter(matcher({ ...read(new URLSearchParams()), text, states })).map(({ session }) => session);
  assert.deepEqual(find('team=a'), ['alpha']);
  assert.deepEqual(find('BET'), ['beta']);
  assert.deepEqual(find('', ['failed']), ['beta']);
  assert.deepEqual(find('team=b'), []);
});

test('the order and the tree', () => {
  const rows = [row('a', { cost_usd: 1 }), row('b', { cost_usd: 3 }), row('c', { cost_usd: 2, parent: 'a' }), row('d', { cost_usd: 9, parent: 'gone' })];
  const show = (query, folded = new Set()) => lines(rows, { ...read(new URLSearchParams(query)) }, folded).map(({ row: { session }, depth }) => session + depth);
  assert.deepEqual(show('sort=cost'), ['d0', 'b0', 'a0', 'c1']);
  assert.deepEqual(show('sort=cost&tree=off'), ['d0', 'b0', 'c0', 'a0']);
  assert.deepEqual(show('sort=cost', new Set(['a'])), ['d0', 'b0', 'a0']);
});

test('a stream in arbitrary parts gives whole messages', () => {
  const text = ': comment\n\nid: 7\ndata: {"a":"ä"}\n\nevent: synced\ndata: {"cursor":9}\n\n';
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size < bytes.length; size += 1) {
    const frames = new Frames();
    const found = [];
    for (let from = 0; from < bytes.length; from += size) found.push(...frames.push(bytes.slice(from, from + size)));
    assert.deepEqual(found, [{ id: '7', event: '', data: { a: 'ä' } }, { id: null, event: 'synced', data: { cursor: 9 } }], `parts of ${size} bytes`);
  }
});

test('figures', () => {
  assert.deepEqual([0, 999, 1_000, 1_234_567.4, -12_345].map(exact), ['0', '999', '1,000', '1,234,567', '-12,345']);
  const local = new Date(2026, 0, 2, 3, 4, 5);
  assert.deepEqual([clock(local.getTime()), moment(local.toISOString()), clock(null), moment('nonsense')], ['03:04:05', '2026-01-02 03:04:05', '–', '–']);
  assert.deepEqual([0, 999, 1500, 41_234, 2_500_000, NaN].map(count), ['0', '999', '1.5k', '41k', '2.5M', '–']);
  assert.deepEqual([5, 1500, 61_000, 3_700_000, 200_000_000].map(duration), ['5ms', '1.5s', '1m1s', '1h1m', '2d']);
  assert.deepEqual([0, 0.001, 0.5, 1234.5].map(money), ['$0', '<$0.01', '$0.50', '$1,235']);
  assert.deepEqual([age(at, Date.parse(at) + 42_000), age(null), age('nonsense')], ['42s', '–', '–']);
  assert.deepEqual(['waiting(approval)', 'backing_off', 'faulted', 'running(tool)', 'idle', 'something new'].map(group), ['person', 'limited', 'failed', 'running', 'idle', 'running']);
  assert.match(localTimes(`tried again at ${at}`), /^tried again at \d\d:\d\d:05$/);
  assert.deepEqual([quote('a-b'), quote("it's"), quote('')], ['a-b', "'it'\\''s'", "''"]);
});
