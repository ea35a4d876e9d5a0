// Questions in the lines that the daemon renders for every face, and how much of them a person has seen. An answer that
// allows something counts only after the end was seen, and carries the hash of the lines.

import { h, put } from './dom.js';

/** @typedef {{text: string, mark?: 'hidden'|'added'|'removed'}} Span */
/** @typedef {{voice: 'ours'|'risk'|'content'|'model', label?: string, quoted?: boolean, spans: Span[]}} Line */
/** @typedef {{approval: string, lines: Line[], shown: string}} Question */

/** Lines that are added at once; the next ones follow before a person gets there. */
const PORTION = 400;
/** This many pixels before the end of what is there, more is added. */
const AHEAD = 2000;
/** Keys shortly after a question appears were typed before a person could read it. */
const GUARD = 700;
/** A change of the layout causes no event. */
const LOOK = 300;
/** A question that could not be read is asked for again after this long. */
const AGAIN = 2000;
/** After this many looks without its element on the page, it stops to look. */
const MOST_AWAY = 100;
/** What a person reads who answers too early. */
export const NOT_YET = 'Not accepted: scroll through the whole question first. “Deny” counts at any time.';

/**
 * How far a person has seen a text without a gap, in pixels from its start.
 * @param {number} seen
 * @param {number} top the part on display
 * @param {number} bottom
 */
export function advance(seen, top, bottom) {
  // A fraction of a pixel is no gap.
  return bottom > top && top <= seen + 1 ? Math.max(seen, bottom) : seen;
}

/** One line as an element. Bars before untrusted text are borders, so no text can imitate or leave them. @param {Line} line */
export function lineElement({ voice, label, quoted, spans }) {
  const change = spans.find(({ mark }) => mark === 'added' || mark === 'removed')?.mark ?? '';
  return h('div', { class: `q-line q-${voice} ${quoted ? 'q-quoted' : ''} ${change ? `q-${change}` : ''}` },
    label !== undefined && h('span', { class: 'q-label' }, label),
    h('span', { class: 'q-text' }, spans.map(({ text, mark }) => mark === 'hidden' ? h('span', { class: 'ctl' }, text) : text)));
}

export class Shown {
  /**
   * @param {import('./client.js').Client} client
   * @param {{change: () => void, cover?: () => Element|null}} options `change`: it became ready, or is no longer; `cover`:
   *   what may cover the lower end of the question
   */
  constructor(client, { change, cover = () => null }) {
    this.client = client;
    this.change = change;
    this.cover = cover;
    this.element = h('div', { class: 'q-lines', role: 'group', 'aria-label': 'The lines of the question', tabindex: 0 });
    /** @type {string[]} */
    this.ids = [];
    /** @type {Map<string, string>} */
    this.hashes = new Map();
    /** @type {Line[]} */
    this.rest = [];
    this.loaded = false;
    this.seen = 0;
    this.size = '';
    this.since = 0;
    this.wasReady = false;
    this.turn = 0;
    this.look = () => this.check();
    this.timer = 0;
    this.away = 0;
    /** When to ask again; 0: not. */
    this.againAt = 0;
    this.listen();
  }

  /** Follows what is on display. */
  listen() {
    this.away = 0;
    if (this.timer) return;
    document.addEventListener('scroll', this.look, { capture: true, passive: true });
    window.addEventListener('resize', this.look);
    this.timer = window.setInterval(this.look, LOOK);
  }

  dispose() {
    document.removeEventListener('scroll', this.look, { capture: true });
    window.removeEventListener('resize', this.look);
    clearInterval(this.timer);
    this.timer = 0;
  }

  /** Shows these questions, one after the other. @param {string[]} ids @param {boolean} [again] */
  async show(ids, again = false) {
    if (!again && ids.join() === this.ids.join()) return;
    const turn = ++this.turn;
    Object.assign(this, { ids, rest: [], loaded: false, seen: 0, size: '', againAt: 0, hashes: new Map() });
    put(this.element, h('p', { class: 'dim' }, 'Reading the question…'));
    this.check();
    try {
      const all = await Promise.all(ids.map((id) => this.client.get(`/approvals/${id}/question`)));
      if (turn !== this.turn) return;
      put(this.element);
      this.rest = all.flatMap(({ lines }) => lines);
      this.hashes = new Map(all.map(({ shown }, at) => [ids[at] ?? '', shown]));
      this.loaded = true;
      this.since = Date.now();
      this.more();
      this.check();
    } catch (error) {
      if (turn !== this.turn) return;
      this.againAt = Date.now() + AGAIN;
      put(this.element, h('p', { class: 'q-failed', role: 'alert' }, `The question cannot be shown, so only “Deny” counts: ${/** @type {Error} */ (error).message}`));
    }
  }

  more() {
    this.element.append(...this.rest.splice(0, PORTION).map(lineElement));
    this.size = this.measure();
  }

  measure() {
    const { width, height } = this.element.getBoundingClientRect();
    return `${Math.round(width)}x${Math.round(height)}`;
  }

  /** The part of the element that is on display, in pixels from its start. @returns {[number, number]} */
  inSight() {
    const own = this.element.getBoundingClientRect();
    let [top, bottom] = [Math.max(own.top, 0), Math.min(own.bottom, innerHeight)];
    for (let above = this.element.parentElement; above; above = above.parentElement) {
      if (getComputedStyle(above).overflowY === 'visible') continue;
      const box = above.getBoundingClientRect();
      top = Math.max(top, box.top);
      bottom = Math.min(bottom, box.bottom);
    }
    const cover = this.cover()?.getBoundingClientRect();
    if (cover && cover.height > 0) bottom = Math.min(bottom, cover.top);
    return [top - own.top, bottom - own.top];
  }

  check() {
    this.away = this.element.isConnected ? 0 : this.away + 1;
    if (this.away > MOST_AWAY) this.dispose();
    if (this.againAt > 0 && Date.now() >= this.againAt && this.element.isConnected) void this.show(this.ids, true);
    if (this.loaded && this.element.isConnected && !document.hidden) {
      const size = this.measure();
      // Another width or font: the rows have moved, so none of them was seen.
      if (size !== this.size) Object.assign(this, { size, seen: 0 });
      const [top, bottom] = this.inSight();
      this.seen = advance(this.seen, top, bottom);
      if (this.rest.length > 0 && this.element.getBoundingClientRect().height - this.seen < AHEAD) this.more();
    }
    if (this.ready !== this.wasReady) {
      this.wasReady = this.ready;
      this.change();
    }
  }

  /** Whether the end was seen. */
  get ended() {
    const { height } = this.element.getBoundingClientRect();
    return this.loaded && this.rest.length === 0 && height > 0 && this.seen >= height - 1;
  }

  /** Whether an answer counts. */
  get ready() {
    return this.ended && Date.now() - this.since >= GUARD;
  }

  /**
   * What an answer to a question says about what was shown. A denial needs nothing.
   * @param {string} id
   * @param {{decision?: string}} body
   * @returns {Record<string, string>}
   */
  proof(id, { decision }) {
    const shown = this.hashes.get(id);
    return decision === 'deny' || !this.ready || shown === undefined ? {} : { shown };
  }
}
