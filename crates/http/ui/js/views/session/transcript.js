// The transcript: items in chunks, of which only those near the window have elements. Live text goes straight to the
// element of its call.

import { h, put, say } from '../../dom.js';
import { until } from '../../format.js';
import { element } from './items.js';
import { LiveOutput, LiveProse } from './pane.js';

/** @typedef {import('./fold.js').Item} Item */

/** Items of a chunk, and how far outside the window chunks have elements. */
const CHUNK = 10;
const MARGIN = 1200;
/** Milliseconds of a frame for chunks that come near; the others wait for the next frame. */
const SHARE = 4;

/**
 * What items need from the view.
 * @typedef {object} Desk
 * @property {import('../../types.js').Context} ctx
 * @property {Map<string, boolean>} opened what a person opened or closed
 * @property {(seq: number) => string} eventLink
 * @property {(item: Item) => LiveOutput} outputOf
 * @property {(item: Item) => {element: HTMLElement}} liveOf
 * @property {Map<string, import('../../types.js').Approval[]>} asks open questions of sub-agents
 * @property {() => Item[]} running calls whose sub-agent works
 * @property {(at: number) => void} fork
 * @property {(at: number) => void} rewind
 */

/** Live text of a model call. */
class Live {
  constructor() {
    this.thinking = h('div', { class: 'live-thinking', hidden: true });
    this.prose = new LiveProse();
    this.calls = h('div', { class: 'live-calls mono dim', hidden: true });
    this.element = h('div', { class: 'live-call' }, this.thinking, this.prose.element, this.calls);
    this.attempt = 0;
    /** Bytes by block, to notice gaps. @type {Map<string, number>} */
    this.blocks = new Map();
  }

  /** @param {any} delta */
  push(delta) {
    if (delta.attempt < this.attempt) return;
    if (delta.attempt > this.attempt) {
      if (this.attempt > 0) this.clear();
      this.attempt = delta.attempt;
    }
    const key = `${delta.type}-${delta.block}`;
    const fresh = !this.blocks.has(key);
    this.blocks.set(key, delta.offset);
    if (delta.type === 'delta.text') {
      // What came before this page was opened was given as a whole.
      if (fresh && this.prose.text !== '' && delta.offset === 0) this.prose.push('\n\n');
      this.prose.push(delta.text);
    } else if (delta.type === 'delta.thinking') {
      this.thinking.hidden = false;
      const text = (this.thinking.textContent ?? '') + delta.text;
      this.thinking.textContent = text.length > 4000 ? `…${text.slice(-4000)}` : text;
      this.thinking.scrollTop = this.thinking.scrollHeight;
    } else {
      this.calls.hidden = false;
      this.calls.textContent = `writes a call… ${delta.offset + delta.text.length} bytes`;
    }
  }

  clear() {
    this.blocks.clear();
    this.prose.reset();
    this.thinking.textContent = this.calls.textContent = '';
    this.thinking.hidden = this.calls.hidden = true;
  }
}

export class Transcript {
  /**
   * @param {import('./log.js').Log} log
   * @param {Omit<Desk, 'outputOf'|'liveOf'|'opened'|'asks'|'running'>} desk
   */
  constructor(log, desk) {
    this.log = log;
    /** @type {Desk} */
    this.desk = { ...desk, opened: new Map(), asks: log.asks, running: () => log.fold.items.filter((item) => item.child && !item.childEnd && !item.imported), outputOf: (item) => this.outputOf(item), liveOf: (item) => this.liveOf(item) };
    /** @type {Map<string, LiveOutput>} */
    this.outputs = new Map();
    /** @type {Map<string, Live>} */
    this.lives = new Map();
    /** @type {{element: HTMLElement, from: number, height: number, shown: boolean}[]} */
    this.chunks = [];
    this.top = h('div', { class: 'older', role: 'status', hidden: true });
    this.list = h('div', { class: 'chunks' });
    this.end = h('div', { class: 'follow-end' });
    this.element = h('div', { class: 'transcript', tabindex: 0, role: 'region', 'aria-label': 'Transcript' }, this.top, this.list, this.end);
    this.jump = h('button', { type: 'button', class: 'follow', hidden: true, on: { click: () => this.lock() } }, '↓ Follow');
    this.following = true;
    this.lastTop = 0;
    this.fresh = 0;
    /** Chunks near the window without elements. @type {Set<Transcript['chunks'][number]>} */
    this.near = new Set();
    this.frame = 0;
    this.watcher = new IntersectionObserver((entries) => this.seen(entries), { root: this.element, rootMargin: `${MARGIN}px 0px` });
    this.element.addEventListener('scroll', () => this.scrolled(), { passive: true });
    // A card that opens, or an image that arrives, must not unlock.
    this.sizes = new ResizeObserver(() => this.settle());
    this.sizes.observe(this.list);
    this.sizes.observe(this.element);
    this.unsubscribe = log.subscribe((change) => this.changed(change));
    this.timer = setInterval(() => this.tick(), 1000);
    this.rebuild();
  }

  dispose() {
    this.unsubscribe();
    clearInterval(this.timer);
    this.watcher.disconnect();
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
  }

  /** @param {import('./log.js').Change} change */
  changed(change) {
    if (change.all) this.rebuild();
    if (change.older) this.older();
    if (change.items) this.update(change.items);
    if (change.delta) this.delta(change.delta);
  }

  /** Waits count down. */
  tick() {
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll('[data-until]'))) {
      const left = until(element.dataset.until);
      say(element, left ? `tries again ${left}` : 'tries again now');
    }
  }

  older() {
    this.top.hidden = this.log.base === 0;
    if (this.log.base > 0) this.top.textContent = `Loading ${this.log.base} earlier events… ${this.log.loaded}`;
  }

  rebuild() {
    const before = this.element.scrollHeight - this.element.scrollTop;
    for (const chunk of this.chunks) this.watcher.unobserve(chunk.element);
    this.near.clear();
    put(this.list);
    this.chunks = [];
    this.grow();
    this.older();
    // The end of the list is what people look at: it is shown at once.
    for (const chunk of this.chunks.slice(-3)) this.show(chunk);
    if (this.following) this.settle();
    else this.element.scrollTop = this.element.scrollHeight - before;
  }

  /** Adds chunks for new items. */
  grow() {
    const { items } = this.log.fold;
    for (let from = this.chunks.length * CHUNK; from < items.length; from += CHUNK) {
      const element = h('div', { class: 'chunk', data: { chunk: this.chunks.length } });
      const chunk = { element, from, shown: false, height: guess(items.slice(from, from + CHUNK)) };
      element.style.height = `${chunk.height}px`;
      this.chunks.push(chunk);
      this.list.append(element);
      this.watcher.observe(element);
    }
  }

  /** @param {IntersectionObserverEntry[]} entries */
  seen(entries) {
    for (const { target, isIntersecting } of entries) {
      const chunk = this.chunks[Number(/** @type {HTMLElement} */ (target).dataset.chunk)];
      if (chunk?.element !== target) continue;
      if (isIntersecting && !chunk.shown) this.near.add(chunk);
      if (isIntersecting) continue;
      this.near.delete(chunk);
      this.hide(chunk);
    }
    this.pump();
  }

  /** Fills the chunks that came near, those in the window first, a few per frame. */
  pump() {
    if (this.near.size === 0 || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const middle = this.element.scrollTop + this.element.clientHeight / 2;
      const order = [...this.near].map((chunk) => ({ chunk, far: Math.abs(chunk.element.offsetTop + chunk.element.offsetHeight / 2 - middle) }));
      order.sort((a, b) => a.far - b.far);
      const end = performance.now() + SHARE;
      for (const { chunk } of order) {
        this.near.delete(chunk);
        this.show(chunk);
        if (performance.now() > end) break;
      }
      this.pump();
    });
  }

  /** @param {Transcript['chunks'][number]} chunk */
  show(chunk) {
    if (chunk.shown) return;
    chunk.shown = true;
    chunk.element.style.height = '';
    put(chunk.element, this.log.fold.items.slice(chunk.from, chunk.from + CHUNK).map((item) => element(item, this.desk)));
  }

  /** @param {Transcript['chunks'][number]} chunk */
  hide(chunk) {
    const last = chunk === this.chunks.at(-1);
    if (!chunk.shown || last || chunk.element.contains(document.activeElement)) return;
    chunk.height = chunk.element.offsetHeight;
    chunk.shown = false;
    chunk.element.style.height = `${chunk.height}px`;
    put(chunk.element);
  }

  /** @param {Set<Item>} changed */
  update(changed) {
    const { items } = this.log.fold;
    for (const item of changed) {
      const { index } = item;
      const chunk = this.chunks[Math.floor(index / CHUNK)];
      if (!chunk?.shown) continue;
      const old = chunk.element.children[index - chunk.from];
      const focus = document.activeElement;
      const inside = old?.contains(focus);
      // An open question keeps its card, which moves from the old element, with what a person has begun to write.
      const made = element(item, this.desk);
      if (!old) chunk.element.append(made);
      else {
        old.replaceWith(made);
        if (inside && made.contains(focus)) /** @type {HTMLElement} */ (focus).focus({ preventScroll: true });
        else if (inside) (made.querySelector('summary') ?? this.element).focus({ preventScroll: true });
      }
    }
    this.forget(changed);
    const length = items.length;
    this.grow();
    const last = this.chunks.at(-1);
    if (last && this.following) this.show(last);
    if (!this.following) this.count(length);
    this.settle();
  }

  /** Live parts of what is over. @param {Set<Item>} changed */
  forget(changed) {
    for (const item of changed) {
      if (item.kind === 'tool' && item.finished) this.outputs.delete(item.key);
      if (item.kind === 'model' && item.attempts?.at(-1)?.finished) this.lives.delete(item.key);
    }
  }

  /** @param {any} delta */
  delta(delta) {
    if (delta.type === 'tool.output') {
      const item = this.log.fold.tools.get(delta.tool_call);
      if (item && !item.finished) this.outputOf(item).push(delta.text);
    } else if (delta.type === 'partial') {
      const item = [...this.log.fold.calls.values()].at(-1);
      if (item && !item.attempts?.at(-1)?.finished) {
        const live = /** @type {Live} */ (this.liveOf(item));
        if (live.blocks.size === 0) live.prose.reset(delta.text);
      }
    } else if (delta.call) {
      const item = this.log.fold.calls.get(delta.call);
      if (item && !item.attempts?.at(-1)?.finished) /** @type {Live} */ (this.liveOf(item)).push(delta);
    }
  }

  /** @param {Item} item @returns {LiveOutput} */
  outputOf(item) {
    let output = this.outputs.get(item.key);
    if (!output) this.outputs.set(item.key, (output = new LiveOutput()));
    return output;
  }

  /** @param {Item} item @returns {Live} */
  liveOf(item) {
    let live = this.lives.get(item.key);
    if (!live) this.lives.set(item.key, (live = new Live()));
    return live;
  }

  atEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    return scrollTop + clientHeight >= scrollHeight - 48;
  }

  scrolled() {
    if (!this.element.isConnected) return;
    const { scrollTop } = this.element;
    const up = scrollTop < this.lastTop - 2;
    this.lastTop = scrollTop;
    if (this.atEnd()) this.follow(true);
    else if (up) this.follow(false);
  }

  /** @param {boolean} following */
  follow(following) {
    this.following = following;
    this.jump.hidden = following;
    if (following) {
      this.fresh = this.log.fold.items.length;
      this.jump.textContent = '↓ Follow';
    }
  }

  /** Where the window is; kept while another tab is on display. */
  get scrollTop() {
    return this.lastTop;
  }

  /** The transcript is on display again. @param {number} top */
  back(top) {
    if (this.following) this.settle();
    else this.element.scrollTop = top;
  }

  /** @param {number} length */
  count(length) {
    const fresh = length - this.fresh;
    this.jump.textContent = fresh > 0 ? `↓ ${fresh} new` : '↓ Follow';
    this.jump.hidden = false;
  }

  lock() {
    this.follow(true);
    const last = this.chunks.at(-1);
    if (last) this.show(last);
    this.settle();
  }

  settle() {
    if (!this.following || !this.element.isConnected) return;
    this.element.scrollTop = this.element.scrollHeight;
    // Content that shrank and grew again is no person who scrolls up.
    this.lastTop = this.element.scrollTop;
  }

  /**
   * Scrolls to the item of an event.
   * @param {number} seq
   */
  reveal(seq) {
    const { items } = this.log.fold;
    let index = items.findIndex((item) => item.seq <= seq && seq <= item.last && item.kind !== 'turn');
    if (index === -1) index = items.findIndex((item) => item.seq >= seq);
    const chunk = this.chunks[Math.floor(index / CHUNK)];
    const item = items[index];
    if (!chunk || !item) return;
    this.follow(false);
    this.show(chunk);
    const target = /** @type {HTMLElement|undefined} */ (chunk.element.children[index - chunk.from]);
    if (!target) return;
    for (const near of this.chunks.slice(Math.max(0, Math.floor(index / CHUNK) - 2), Math.floor(index / CHUNK) + 3)) this.show(near);
    const aim = () => target.scrollIntoView({ block: 'center' });
    aim();
    // Chunks on the way got their real heights.
    requestAnimationFrame(aim);
    this.list.querySelector('.found')?.classList.remove('found');
    target.classList.add('found');
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
  }

  /** Moves to the next or previous item of a kind. @param {1|-1} step @param {(item: Item) => boolean} wanted */
  step(step, wanted) {
    const top = this.element.getBoundingClientRect().top + this.element.clientHeight / 3;
    const shown = /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll('.entry')]);
    const at = shown.findLast((element) => element.getBoundingClientRect().top <= top + 4);
    const seq = Number(at?.dataset.seq ?? 0);
    const { items } = this.log.fold;
    const found = step > 0 ? items.find((item) => item.seq > seq && wanted(item)) : items.findLast((item) => item.seq < seq && wanted(item));
    if (found) this.reveal(found.seq);
  }
}

/** A rough height, good enough for the scroll bar. @param {Item[]} items */
function guess(items) {
  return items.reduce((sum, item) => {
    if (item.kind === 'tool') return sum + 38;
    if (item.kind === 'note' || item.kind === 'turn') return sum + 28;
    if (item.kind === 'end') return sum + 44;
    const blocks = item.attempts?.at(-1)?.finished?.content ?? item.event.content ?? [];
    const letters = blocks.reduce((/** @type {number} */ all, /** @type {any} */ block) => all + (block.type === 'text' ? block.text.length : 0), 0);
    return sum + 48 + Math.min(4000, Math.ceil(letters / 100) * 20);
  }, 0);
}
