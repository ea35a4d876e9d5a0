// The arithmetic of the session view: items of a log, spans of the timeline, parts of the window.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Fold, openQuestion, toolState } from '../../../crates/http/ui/js/views/session/fold.js';
import { Axis, spansOf } from '../../../crates/http/ui/js/views/session/spans.js';
import { requestsOf } from '../../../crates/http/ui/js/views/session/window.js';

const START = Date.parse('2026-01-01T00:00:00Z');

/** A log: each entry is the seconds since the start, the type and the keys. */
function log(...entries) {
  return entries.map(([second, type, keys = {}], n) => ({ seq: n + 1, at: new Date(START + second * 1000).toISOString(), by: 'agentd', type, turn: 't1', ...keys }));
}

/** @param {any[]} events */
function fold(events) {
  const folded = new Fold();
  for (const event of events) folded.add(event);
  return folded;
}

const USAGE = { input: 100, output: 10, cache_read: 300, cache_write: 0, reasoning: 0 };

const TURN = log(
  [0, 'session.created', { workdir: '/w', model: 'm', mode: 'default' }],
  [1, 'input.accepted', { input: 'i1', delivery: 'start', content: [{ type: 'text', text: 'hello world!' }] }],
  [1, 'turn.started', { inputs: ['i1'] }],
  [1, 'model.started', { call: 'c1', attempt: 1, step: 1, inputs: ['i1'], model: 'm' }],
  [2, 'model.failed', { call: 'c1', attempt: 1, class: 'overloaded', message: 'full', retry_at: '2026-01-01T00:00:05.000Z' }],
  [5, 'model.started', { call: 'c1', attempt: 2, step: 1, model: 'm' }],
  [7, 'model.finished', { call: 'c1', attempt: 2, stop_reason: 'tool_use', usage: USAGE, content: [{ type: 'text', text: 'I look.' }, { type: 'tool_use', id: 'x1', name: 'Bash', input: { command: 'ls' } }] }],
  [7, 'tool.proposed', { tool_call: 'x1', name: 'Bash', input: { command: 'ls' }, index: 0 }],
  [7, 'verdict.given', { tool_call: 'x1', verdict: 'ask', rule: 'r', reason: 'why' }],
  [7, 'approval.asked', { approval: 'a1', kind: 'tool', tool_call: 'x1', title: 'Bash ls', detail: 'ls' }],
  [3607, 'approval.decided', { approval: 'a1', decision: 'allow', scope: 'once' }],
  [3607, 'tool.started', { tool_call: 'x1', title: 'Bash ls', effect: 'exec', sandbox: 'isolated' }],
  [3609, 'tool.finished', { tool_call: 'x1', status: 'ok', llm_text: 'a b c d', duration_ms: 2000 }],
  [3610, 'turn.finished', { reason: 'completed', steps: 1, tool_calls: 1 }],
);

test('a log becomes items, each with all that belongs to it', () => {
  const { items } = fold(TURN);
  assert.deepEqual(items.map(({ kind, seq, last }) => [kind, seq, last]), [['note', 1, 1], ['input', 2, 3], ['turn', 3, 3], ['model', 4, 7], ['tool', 8, 13], ['end', 14, 14]]);
  const [, input, , model, tool, end] = items;
  assert.equal(input.joined?.seq, 3);
  assert.deepEqual(model.attempts?.map(({ number, failed, finished }) => [number, failed?.class, finished?.seq]), [[1, 'overloaded', undefined], [2, undefined, 7]]);
  assert.equal(tool.verdicts?.length, 1);
  assert.equal(toolState(tool), 'ok');
  assert.equal(end.begin?.seq, 3);
});

test('a call goes through its states', () => {
  const states = TURN.map((_, n) => {
    const item = fold(TURN.slice(0, n + 1)).items.find(({ kind }) => kind === 'tool');
    return item && toolState(item);
  });
  assert.deepEqual(states.slice(7), ['proposed', 'proposed', 'asks', 'proposed', 'running', 'ok', 'ok']);
});

test('only what changed is dirty', () => {
  const folded = fold(TURN.slice(0, 12));
  folded.dirty.clear();
  folded.add(TURN[12]);
  assert.deepEqual([...folded.dirty].map(({ key }) => key), ['tool-x1']);
});

test('a rewind marks what no longer counts', () => {
  const rewound = { ...TURN[13], seq: 15, type: 'session.rewound', to_seq: 1, from_seq: 14 };
  const { items } = fold([...TURN, rewound]);
  assert.deepEqual(items.map(({ past }) => past === true), [false, true, true, true, true, true, false]);
});

test('nothing in an imported log can be answered', () => {
  const { items } = fold(TURN.slice(0, 10).map((event, n) => ({ ...event, seq: n + 1, type: 'imported.event', event })));
  const tool = items.find(({ kind }) => kind === 'tool');
  assert.ok(tool?.imported);
  assert.equal(openQuestion(tool), null);
  assert.deepEqual(spansOf(items, START), []);
});

test('the end of a log without its start makes no trouble', () => {
  for (let from = 0; from < TURN.length; from += 1) {
    const { items } = fold(TURN.slice(from));
    new Axis(spansOf(items, START + 4e6));
  }
});

test('spans: attempts, waits, questions and calls', () => {
  const spans = spansOf(fold(TURN).items, START + 4e6);
  assert.deepEqual(spans.map(({ kind, from, to }) => [kind, (from - START) / 1000, (to - START) / 1000]), [
    ['turn', 1, 3610], ['model-bad', 1, 2], ['wait', 2, 5], ['model', 5, 7], ['ask', 7, 3607], ['tool-ok', 3607, 3609]]);
});

test('calls at the same time get rows of their own', () => {
  const calls = [1, 2, 3].flatMap((n) => [[n, 'tool.proposed', { tool_call: `x${n}`, name: 'Read', input: {} }], [n, 'tool.started', { tool_call: `x${n}`, title: 'Read', effect: 'read' }]]);
  const ends = [1, 2, 3].map((n) => [n === 1 ? 2.5 : 9, 'tool.finished', { tool_call: `x${n}`, status: 'ok' }]);
  const rows = spansOf(fold(log(...calls, ...ends)).items, START + 1e5).map(({ row }) => row);
  assert.deepEqual(rows, [0, 1, 0]);
});

test('the axis cuts silence, keeps the order, and can be read backwards', () => {
  const spans = spansOf(fold(TURN).items, START + 4e6);
  const axis = new Axis(spans);
  assert.ok(axis.length < 20_000, String(axis.length));
  assert.equal(axis.cuts.length, 2);
  const times = [1, 2, 5, 7, 3607, 3609, 3610].map((second) => START + second * 1000);
  const places = times.map((time) => axis.at(time));
  assert.deepEqual(places, [...places].sort((a, b) => a - b));
  for (const [n, time] of times.entries()) assert.ok(Math.abs(axis.time(places[n]) - time) < 1, String(n));
  assert.equal(new Axis([]).length, 1);
});

test('what each request took from the cache', () => {
  assert.deepEqual(requestsOf(TURN).map(({ fresh, read }) => [fresh, read]), [[100, 300]]);
});
