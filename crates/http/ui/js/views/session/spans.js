// The timeline's arithmetic: what happened when, in lanes, on an axis without long silences. Pure.

import { toolState } from './fold.js';

/** @typedef {import('./fold.js').Item} Item */
/** @typedef {'turn'|'model'|'tool'|'agent'} Lane */
/** @typedef {{lane: Lane, row: number, from: number, to: number, kind: string, seq: number, label: string, open: boolean}} Span */

/** Rows of calls that run at the same time; more share the last one. */
const ROWS = 4;

/**
 * @param {Item[]} items
 * @param {number} now
 * @returns {Span[]}
 */
export function spansOf(items, now) {
  /** @type {Span[]} */
  const spans = [];
  /** @type {Map<string, Span>} */
  const turns = new Map();
  /** @type {Record<string, number[]>} the ends of the rows of a lane */
  const ends = { tool: [], agent: [] };
  const ms = (/** @type {any} */ event) => Date.parse(event.at);
  /** @param {Lane} lane @param {number} from @param {number} to */
  const row = (lane, from, to) => {
    const rows = ends[lane];
    let free = rows.findIndex((end) => end <= from);
    if (free === -1) free = rows.length < ROWS ? rows.length : ROWS - 1;
    rows[free] = Math.max(rows[free] ?? 0, to);
    return free;
  };
  for (const item of items) {
    if (item.imported) continue;
    if (item.kind === 'turn') {
      const span = { lane: /** @type {Lane} */ ('turn'), row: 0, from: ms(item.event), to: now, kind: 'turn', seq: item.seq, label: `Turn ${item.turn}`, open: true };
      turns.set(item.event.turn ?? '', span);
      spans.push(span);
    } else if (item.kind === 'end') {
      const span = turns.get(item.event.turn ?? '');
      if (!span) continue;
      Object.assign(span, { to: ms(item.event), open: false, kind: item.event.reason === 'completed' ? 'turn' : 'turn-bad' });
      span.label = `${span.label}: ${String(item.event.reason).replaceAll('_', ' ')}, ${item.event.steps} ${item.event.steps === 1 ? 'step' : 'steps'}`;
    } else if (item.kind === 'model') {
      attempts(item, spans, now);
    } else if (item.kind === 'tool') {
      const begin = ms(item.proposed ?? item.event);
      const end = item.finished ? ms(item.finished) : now;
      const at = row(item.child ? 'agent' : 'tool', begin, end);
      const title = item.started?.title ?? item.questions?.[0]?.asked.title ?? item.proposed?.name ?? 'tool';
      for (const question of item.questions ?? []) {
        spans.push({ lane: item.child ? 'agent' : 'tool', row: at, from: ms(question.asked), to: question.decided ? ms(question.decided) : now, kind: 'ask', seq: question.asked.seq, label: `${title}: ${question.decided ? question.decided.decision : 'waits for a person'}`, open: !question.decided });
      }
      const state = toolState(item);
      const started = item.started ?? (item.finished && !item.questions ? item.finished : null);
      if (started) spans.push({ lane: item.child ? 'agent' : 'tool', row: at, from: ms(started), to: end, kind: item.child ? `agent-${state}` : `tool-${state}`, seq: item.seq, label: `${title}: ${state}`, open: !item.finished });
    } else if (item.kind === 'question') {
      for (const question of item.questions ?? []) {
        const to = question.decided ? ms(question.decided) : now;
        spans.push({ lane: 'tool', row: row('tool', ms(question.asked), to), from: ms(question.asked), to, kind: 'ask', seq: item.seq, label: question.asked.title, open: !question.decided });
      }
    }
  }
  return spans;
}

/** @param {Item} item @param {Span[]} spans @param {number} now */
function attempts(item, spans, now) {
  for (const { number, started, failed, finished } of item.attempts ?? []) {
    const from = Date.parse(started.at);
    const end = finished ?? failed;
    const to = end ? Date.parse(end.at) : now;
    const name = `${started.configured ?? started.model ?? 'model'}, step ${started.step ?? '?'}${number > 1 ? `, attempt ${number}` : ''}`;
    const kind = finished ? 'model' : failed ? (failed.class === 'cancelled' ? 'model-cut' : 'model-bad') : 'model-live';
    spans.push({ lane: 'model', row: 0, from, to, kind, seq: (end ?? started).seq, label: failed ? `${name}: ${failed.class.replaceAll('_', ' ')}` : name, open: !end });
    if (failed?.retry_at) {
      const retry = Date.parse(failed.retry_at);
      const next = item.attempts?.find((one) => one.number === number + 1);
      const until = next ? Date.parse(next.started.at) : Math.min(retry, Math.max(now, to));
      if (until > to) spans.push({ lane: 'model', row: 0, from: to, to: until, kind: 'wait', seq: failed.seq, label: `waits after ${failed.class.replaceAll('_', ' ')}`, open: !next });
    }
  }
}

/** Time without long silences: what is between spans of work is cut to a small part of the whole. */
export class Axis {
  /** @param {Span[]} spans */
  constructor(spans) {
    const work = spans.filter(({ kind }) => kind !== 'ask' && !kind.startsWith('turn') && kind !== 'wait').map(({ from, to }) => [from, Math.max(to, from + 1)]);
    const all = spans.map(({ from, to }) => [from, to]).flat();
    work.sort((a, b) => a[0] - b[0]);
    /** @type {number[][]} */
    const busy = [];
    for (const [from, to] of work) {
      const last = busy.at(-1);
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else busy.push([from, to]);
    }
    const total = busy.reduce((sum, [from, to]) => sum + to - from, 0);
    const most = Math.max(1500, total * 0.04);
    /** Real time, and its place on the axis. @type {[number, number][]} */
    this.points = [];
    /** Places where time is cut, with how much. @type {{at: number, cut: number}[]} */
    this.cuts = [];
    let place = 0;
    let before = all.reduce((least, at) => Math.min(least, at), Infinity);
    const end = all.reduce((greatest, at) => Math.max(greatest, at), -Infinity);
    const silence = (/** @type {number} */ from, /** @type {number} */ to) => {
      if (to <= from) return;
      this.points.push([from, place]);
      const kept = Math.min(to - from, most);
      if (kept < to - from) this.cuts.push({ at: place + kept / 2, cut: to - from - kept });
      place += kept;
    };
    if (Number.isFinite(before)) {
      for (const [from, to] of busy) {
        silence(before, from);
        this.points.push([from, place]);
        place += to - from;
        before = to;
      }
      silence(before, end);
      this.points.push([Math.max(end, before), place]);
    } else {
      this.points.push([0, 0]);
    }
    this.length = Math.max(1, place);
  }

  /** The place of a time. @param {number} time */
  at(time) {
    return this.map(time, 0, 1);
  }

  /** The time of a place. @param {number} place */
  time(place) {
    return this.map(place, 1, 0);
  }

  /** @param {number} value @param {0|1} from @param {0|1} to */
  map(value, from, to) {
    const { points } = this;
    let low = 0;
    let high = points.length - 1;
    while (low < high - 1) {
      const middle = (low + high) >> 1;
      if (points[middle][from] <= value) low = middle;
      else high = middle;
    }
    const [a, b] = [points[low], points[Math.min(low + 1, points.length - 1)]];
    const share = b[from] === a[from] ? 0 : (value - a[from]) / (b[from] - a[from]);
    return a[to] + Math.max(0, Math.min(1, share)) * (b[to] - a[to]);
  }
}
