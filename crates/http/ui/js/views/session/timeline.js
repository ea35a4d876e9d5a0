// The timeline: turns, attempts of the model, calls, questions and sub-agents over time. A picture to jump from.

import { h, put, say, svg } from '../../dom.js';
import { clock, duration } from '../../format.js';
import { visibleText } from '../../text/visible.js';
import { Axis, spansOf } from './spans.js';

/** @typedef {import('./spans.js').Span} Span */

const LEFT = 56;
const RIGHT = 10;
const ROW = 13;
const TURN = 15;
const AXIS = 18;
const GAP = 5;
/** Live changes are drawn this often. */
const REDRAW = 250;
/** More marks of cut silences than this say nothing. */
const MOST_CUTS = 40;

/** As many digits after the second as tell ticks apart. @param {number} time @param {number} span */
const fraction = (time, span) => (span < 15_000 ? `.${String(Math.floor(time % 1000)).padStart(3, '0').slice(0, span < 1500 ? 3 : 1)}` : '');

export class Timeline {
  /**
   * @param {import('./log.js').Log} log
   * @param {(seq: number) => void} jump
   */
  constructor(log, jump) {
    this.log = log;
    this.jump = jump;
    /** @type {Span[]} */
    this.spans = [];
    this.axis = new Axis([]);
    /** What is seen, as places of the axis; null: all. @type {[number, number]|null} */
    this.view = null;
    /** @type {Span|null} */
    this.chosen = null;
    this.frame = 0;
    this.later = 0;
    this.width = 0;
    this.picture = svg('svg', { class: 'tl-picture', 'aria-hidden': 'true' });
    this.said = h('span', { class: 'tl-said grow cut', role: 'status' });
    const button = (/** @type {string} */ label, /** @type {string} */ title, /** @type {() => void} */ run) =>
      h('button', { type: 'button', class: 'icon', title, 'aria-label': title, on: { click: run } }, label);
    this.box = h('div', {
      class: 'tl-box', tabindex: 0, role: 'group',
      'aria-label': 'Timeline. Left and right choose, Enter goes there, plus and minus zoom, 0 shows all.',
      on: {
        keydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
        pointermove: (/** @type {PointerEvent} */ event) => this.move(event),
        pointerleave: () => this.choose(null),
        pointerdown: (/** @type {PointerEvent} */ event) => this.down(event),
        pointerup: (/** @type {PointerEvent} */ event) => this.up(event),
      },
    }, this.picture);
    this.box.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.element = h('details', { class: 'timeline', open: globalThis.innerWidth > 760 && globalThis.innerHeight > 620 },
      h('summary', null, 'Timeline'),
      h('div', { class: 'tl-bar' }, this.said,
        button('−', 'Zoom out (−)', () => this.zoom(2)), button('+', 'Zoom in (+)', () => this.zoom(0.5)), button('⤢', 'Show all (0)', () => this.all())),
      this.box);
    this.element.addEventListener('toggle', () => this.soon());
    /** @type {{x: number, view: [number, number], moved: boolean}|null} */
    this.drag = null;
    this.stale = true;
    this.sizes = new ResizeObserver(() => this.soon());
    this.sizes.observe(this.box);
    this.unsubscribe = log.subscribe(({ items, all }) => {
      if (all) this.refresh();
      else if (items && !this.later) this.later = window.setTimeout(() => this.refresh(), REDRAW);
    });
    this.timer = setInterval(() => {
      if (this.spans.some(({ open }) => open)) this.refresh();
    }, 1000);
    this.hint();
  }

  dispose() {
    this.unsubscribe();
    this.sizes.disconnect();
    clearInterval(this.timer);
    clearTimeout(this.later);
    cancelAnimationFrame(this.frame);
  }

  refresh() {
    clearTimeout(this.later);
    this.later = 0;
    this.stale = true;
    this.soon();
  }

  soon() {
    if (!this.frame && this.element.open) this.frame = requestAnimationFrame(() => this.draw());
  }

  range() {
    return this.view ?? /** @type {[number, number]} */ ([0, this.axis.length]);
  }

  /** @param {number} place */
  x(place) {
    const [from, to] = this.range();
    return LEFT + ((place - from) / (to - from)) * (this.width - LEFT - RIGHT);
  }

  draw() {
    this.frame = 0;
    const width = this.box.clientWidth;
    if (width === 0) return;
    this.width = width;
    if (this.stale) {
      this.stale = false;
      const chosen = this.chosen;
      this.spans = spansOf(this.log.fold.items, Date.now());
      this.axis = new Axis(this.spans);
      this.chosen = chosen && (this.spans.find(({ seq, kind }) => seq === chosen.seq && kind === chosen.kind) ?? null);
    }
    const rows = (/** @type {string} */ lane) => this.spans.reduce((most, span) => (span.lane === lane ? Math.max(most, span.row + 1) : most), 0);
    /** @type {{lane: string, top: number, label: string}[]} */
    const lanes = [];
    let top = 2;
    for (const [lane, label, size] of /** @type {[string, string, number][]} */ ([['turn', 'Turns', TURN], ['model', 'Model', ROW], ['tool', 'Calls', ROW], ['agent', 'Agents', ROW]])) {
      const count = rows(lane);
      if (count === 0 && lane === 'agent') continue;
      lanes.push({ lane, top, label });
      top += Math.max(1, count) * (size + 2) + GAP;
    }
    const height = top + AXIS;
    this.picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.picture.setAttribute('width', String(width));
    this.picture.setAttribute('height', String(height));
    const parts = [];
    for (const lane of lanes) parts.push(svg('text', { class: 'tl-label', x: 0, y: lane.top + 10 }, lane.label));
    parts.push(...this.ticks(top));
    const tops = new Map(lanes.map((lane) => [lane.lane, lane.top]));
    /** @type {Map<string, number>} where the last sliver of a row was drawn */
    const drawn = new Map();
    const [from, to] = this.range();
    for (const span of this.spans) {
      const start = this.axis.at(span.from);
      const end = this.axis.at(span.to);
      if (end < from || start > to) continue;
      const left = Math.max(LEFT, this.x(start));
      const right = Math.min(width - RIGHT, this.x(end));
      const size = span.lane === 'turn' ? TURN : ROW;
      const key = `${span.lane}${span.row}`;
      const bad = span.kind.endsWith('bad') || span.kind.endsWith('error') || span.kind === 'ask';
      const sliver = bad ? `${key}!` : key;
      if (right - left < 1.5 && (drawn.get(sliver) ?? -9) >= Math.floor(left)) continue;
      drawn.set(sliver, Math.floor(left) + 1);
      const y = (tops.get(span.lane) ?? 0) + span.row * (size + 2);
      const chosen = span === this.chosen;
      parts.push(svg('rect', { class: `tl-span k-${span.kind}${chosen ? ' chosen' : ''}${span.open ? ' open' : ''}`, x: left.toFixed(1), y, width: Math.max(2, right - left - 0.5).toFixed(1), height: size, rx: 2 }));
      const room = Math.floor((right - left - 8) / 6.2);
      if (room > 2 && (span.lane === 'turn' || room > 7)) {
        const text = visibleText(span.label);
        parts.push(svg('text', { class: `tl-text k-${span.kind}`, x: (left + 4).toFixed(1), y: y + (span.lane === 'turn' ? 11 : 10) }, text.length > room ? `${text.slice(0, room - 1)}…` : text));
      }
    }
    put(this.picture, parts);
  }

  /** @param {number} top */
  ticks(top) {
    const parts = [];
    const [from, to] = this.range();
    const cuts = this.axis.cuts.filter(({ at }) => at >= from && at <= to);
    for (const { at, cut } of cuts.length > MOST_CUTS ? [] : cuts) {
      const x = this.x(at).toFixed(1);
      parts.push(svg('line', { class: 'tl-cut', x1: x, x2: x, y1: 2, y2: top }, svg('title', null, `${duration(cut)} without work`)));
    }
    const step = Math.max(96, (this.width - LEFT - RIGHT) / 8);
    for (let x = LEFT; x < this.width - 60; x += step) {
      const time = this.axis.time(from + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (to - from));
      parts.push(svg('line', { class: 'tl-tick', x1: x, x2: x, y1: 2, y2: top }), svg('text', { class: 'tl-time', x: x + 3, y: top + 12 }, time > 0 ? `${clock(time)}${fraction(time, to - from)}` : ''));
    }
    return parts;
  }

  /** @param {PointerEvent|WheelEvent} event @returns {Span|null} */
  under(event) {
    const box = this.box.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const target = /** @type {Element} */ (event.target);
    if (!target.classList?.contains('tl-span') && !target.classList?.contains('tl-text')) return null;
    const lanes = new Map();
    let top = 2;
    for (const lane of ['turn', 'model', 'tool', 'agent']) {
      const count = this.spans.reduce((most, span) => (span.lane === lane ? Math.max(most, span.row + 1) : most), 0);
      if (count === 0 && lane === 'agent') continue;
      lanes.set(lane, top);
      top += Math.max(1, count) * ((lane === 'turn' ? TURN : ROW) + 2) + GAP;
    }
    const hits = this.spans.filter((span) => {
      const size = span.lane === 'turn' ? TURN : ROW;
      const own = lanes.get(span.lane) + span.row * (size + 2);
      return y >= own - 1 && y <= own + size + 1 && x >= this.x(this.axis.at(span.from)) - 2 && x <= Math.max(this.x(this.axis.at(span.to)), this.x(this.axis.at(span.from)) + 2) + 2;
    });
    return hits.at(-1) ?? null;
  }

  /** @param {Span|null} span */
  choose(span) {
    if (span === this.chosen) return;
    this.chosen = span;
    if (span) say(this.said, `${visibleText(span.label).slice(0, 160)} · ${duration(span.to - span.from)} · ${clock(span.from)} · event ${span.seq}`);
    else this.hint();
    this.soon();
  }

  hint() {
    const words = 'Click goes to the event; Ctrl and the wheel zoom; dragging moves.';
    say(this.said, words);
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (this.drag && event.buttons === 1) {
      const [from, to] = this.drag.view;
      const by = ((event.clientX - this.drag.x) / (this.width - LEFT - RIGHT)) * (to - from);
      if (Math.abs(event.clientX - this.drag.x) > 4) this.drag.moved = true;
      if (this.drag.moved && this.view) this.look(from - by, to - by);
      return;
    }
    const span = this.under(event);
    this.box.classList.toggle('aims', span !== null);
    if (span || document.activeElement !== this.box) this.choose(span);
  }

  /** @param {PointerEvent} event */
  down(event) {
    this.drag = { x: event.clientX, view: this.range(), moved: false };
  }

  /** @param {PointerEvent} event */
  up(event) {
    const moved = this.drag?.moved;
    this.drag = null;
    if (moved) return;
    const span = this.under(event);
    if (span) this.jump(span.seq);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const box = this.box.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / (this.width - LEFT - RIGHT);
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, share)));
    } else if (this.view && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      const by = (event.deltaX / this.width) * (this.view[1] - this.view[0]);
      this.look(this.view[0] + by, this.view[1] + by);
    }
  }

  /** @param {number} factor @param {number} [share] what stays in its place */
  zoom(factor, share = 0.5) {
    const [from, to] = this.range();
    const size = Math.max(20, (to - from) * factor);
    const middle = from + (to - from) * share;
    this.look(middle - size * share, middle + size * (1 - share));
  }

  /** @param {number} from @param {number} to */
  look(from, to) {
    const size = Math.min(to - from, this.axis.length);
    const start = Math.max(0, Math.min(from, this.axis.length - size));
    this.view = size >= this.axis.length ? null : [start, start + size];
    this.soon();
  }

  all() {
    this.view = null;
    this.soon();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = this.chosen ? this.spans.indexOf(this.chosen) : -1;
    if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      const next = event.key === 'ArrowRight' ? Math.min(this.spans.length - 1, at + 1) : at === -1 ? this.spans.length - 1 : Math.max(0, at - 1);
      const span = this.spans[next];
      if (span) {
        this.choose(span);
        const [from, to] = this.range();
        const place = this.axis.at(span.from);
        if (place < from || place > to) this.look(place - (to - from) / 2, place + (to - from) / 2);
      }
    } else if (event.key === 'Enter') {
      if (this.chosen) this.jump(this.chosen.seq);
    } else if (event.key === '+' || event.key === '=') {
      const place = this.chosen ? this.axis.at(this.chosen.from) : null;
      const [from, to] = this.range();
      this.zoom(0.5, place === null ? 0.5 : Math.max(0, Math.min(1, (place - from) / (to - from))));
    } else if (event.key === '-') {
      this.zoom(2);
    } else if (event.key === '0') {
      this.all();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
