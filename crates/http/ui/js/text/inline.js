// Inline Markdown: emphasis, code, links. One pass with a stack of open delimiters, so that the time is linear in the
// length of the text, whatever it contains.

import { link, safeUrl } from './links.js';
import { visible } from './visible.js';

/** @typedef {import('./visible.js').Piece} Piece */
/** @typedef {{mark: string, pieces: Piece[]}} Open */

/** @type {Record<string, string>} */
const TAGS = { '*': 'em', _: 'em', '**': 'strong', __: 'strong', '~~': 's' };
/** More delimiters than this in one paragraph are no emphasis. */
const DEEPEST = 32;
const WORD = /[\p{L}\p{N}]/u;

/**
 * @param {string} text
 * @returns {Piece[]}
 */
export function inline(text) {
  return new Inline(text).run();
}

class Inline {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.plain = '';
    /** @type {Open[]} */
    this.open = [{ mark: '', pieces: [] }];
    /** @type {Map<number, number[]> | null} */
    this.ticks = null;
    this.nextClose = -1;
  }

  run() {
    while (this.at < this.text.length) {
      if (!this.step(this.text[this.at])) {
        // Everything up to the next special character at once.
        const next = special(this.text, this.at + 1);
        this.plain += this.text.slice(this.at, next);
        this.at = next;
      }
    }
    this.flush();
    while (this.open.length > 1) this.unwrap();
    return this.open[0].pieces;
  }

  /** @param {string} char @returns {boolean} whether it was consumed */
  step(char) {
    switch (char) {
      case '\\':
        if (!/[!-/:-@[-`{-~]/.test(this.text[this.at + 1] ?? '')) return false;
        this.plain += this.text[this.at + 1];
        this.at += 2;
        return true;
      case '`':
        return this.code();
      case '*':
      case '_':
      case '~':
        return this.emphasis(char);
      case '!':
        if (this.text[this.at + 1] !== '[') return false;
        return this.bracket('![');
      case '[':
        return this.bracket('[');
      case ']':
        return this.close();
      case 'h':
        return this.address();
      default:
        return false;
    }
  }

  flush() {
    if (this.plain === '') return;
    this.top().pieces.push(...visible(this.plain));
    this.plain = '';
  }

  top() {
    return this.open[this.open.length - 1];
  }

  /** The innermost open delimiter is text after all. */
  unwrap() {
    const open = /** @type {Open} */ (this.open.pop());
    const pieces = this.top().pieces;
    pieces.push(open.mark);
    for (const piece of open.pieces) pieces.push(piece);
  }

  code() {
    if (!this.ticks) this.ticks = tickRuns(this.text);
    let size = 1;
    while (this.text[this.at + size] === '`') size += 1;
    const start = this.at + size;
    const runs = this.ticks.get(size) ?? [];
    // The runs are in reverse order; those before here are not needed any more.
    while (runs.length > 0 && runs[runs.length - 1] < start) runs.pop();
    const end = runs.pop();
    if (end === undefined) {
      this.plain += this.text.slice(this.at, start);
      this.at = start;
      return true;
    }
    let inner = this.text.slice(start, end).replaceAll('\n', ' ');
    if (inner.startsWith(' ') && inner.endsWith(' ') && inner.trim() !== '') inner = inner.slice(1, -1);
    this.flush();
    this.top().pieces.push({ tag: 'code', children: visible(inner) });
    this.at = end + size;
    return true;
  }

  /** @param {string} char */
  emphasis(char) {
    let size = 1;
    while (this.text[this.at + size] === char) size += 1;
    const before = this.text[this.at - 1] ?? ' ';
    const after = this.text[this.at + size] ?? ' ';
    const end = this.at + size;
    const word = char === '_' && WORD.test(before) && WORD.test(after);
    if (size > 3 || word || (char === '~' && size !== 2)) {
      this.plain += this.text.slice(this.at, end);
      this.at = end;
      return true;
    }
    let left = size;
    if (!/\s/.test(before)) {
      while (left > 0) {
        const mark = this.closing(char, left);
        if (mark === '') break;
        this.flush();
        while (this.top().mark !== mark) this.unwrap();
        const open = /** @type {Open} */ (this.open.pop());
        this.top().pieces.push({ tag: TAGS[mark], children: open.pieces });
        left -= mark.length;
      }
    }
    while (left > 0) {
      // Of three, the single one is outside.
      const mark = char.repeat(left === 2 ? 2 : 1);
      if (/\s/.test(after) || this.open.length > DEEPEST || !(mark in TAGS)) {
        this.plain += char.repeat(left);
        break;
      }
      this.flush();
      this.open.push({ mark, pieces: [] });
      left -= mark.length;
    }
    this.at = end;
    return true;
  }

  /** The innermost open delimiter that a run of `left` characters can close. @param {string} char @param {number} left */
  closing(char, left) {
    for (let i = this.open.length - 1; i > 0; i -= 1) {
      const { mark } = this.open[i];
      if (mark.endsWith('[')) return '';
      if (mark[0] === char && mark.length <= left) return mark;
    }
    return '';
  }

  /** @param {string} mark */
  bracket(mark) {
    if (this.open.length > DEEPEST) return false;
    this.flush();
    this.open.push({ mark, pieces: [] });
    this.at += mark.length;
    return true;
  }

  close() {
    let depth = this.open.length - 1;
    while (depth > 0 && !this.open[depth].mark.endsWith('[')) depth -= 1;
    if (depth === 0) return false;
    const target = this.target();
    const url = target ? safeUrl(target.address) : null;
    this.flush();
    while (this.open.length - 1 > depth) this.unwrap();
    if (!target || !url) {
      // No link: the text stays as it was written.
      this.unwrap();
      this.plain = ']';
      this.at += 1;
      return true;
    }
    const open = /** @type {Open} */ (this.open.pop());
    this.at = target.end;
    const pieces = this.top().pieces;
    if (open.mark === '![') pieces.push({ tag: 'span', props: { class: 'muted' }, children: ['image: '] });
    for (const piece of open.pieces) pieces.push(piece);
    pieces.push(' ', link(url));
    return true;
  }

  /** The address after `](`, if there is one. @returns {{address: string, end: number} | null} */
  target() {
    const { text, at } = this;
    if (text[at + 1] !== '(') return null;
    if (this.nextClose < at) {
      const found = text.indexOf(')', at);
      this.nextClose = found === -1 ? Infinity : found;
    }
    if (this.nextClose - at > 2200) return null;
    let end = this.nextClose;
    // One pair of parentheses inside the address.
    if (text.slice(at + 2, end).includes('(')) {
      const next = text.indexOf(')', end + 1);
      if (next !== -1 && next - at < 2200 && !/\s/.test(text.slice(end, next))) end = next;
    }
    const inner = text.slice(at + 2, end).trim();
    if (inner.includes('\n\n') || inner.includes('](')) return null;
    const address = inner.startsWith('<') ? inner.slice(1, inner.indexOf('>') + 1 || undefined).replace('>', '') : inner.split(/\s/, 1)[0];
    return { address, end: end + 1 };
  }

  address() {
    const { text, at } = this;
    if (!text.startsWith('http', at) || WORD.test(text[at - 1] ?? ' ')) return false;
    if (!text.startsWith('http://', at) && !text.startsWith('https://', at)) return false;
    let end = at;
    while (end < text.length && !/[\s<>"'`|\\^{}\])*]/.test(text[end])) end += 1;
    while (end > at && /[.,;:!?]/.test(text[end - 1])) end -= 1;
    const address = text.slice(at, end);
    const url = safeUrl(address);
    this.plain += address;
    this.at = Math.max(end, at + 1);
    if (url) {
      this.flush();
      this.top().pieces.push(' ', link(url));
    }
    return true;
  }
}

/** The next character that may mean something. @param {string} text @param {number} from */
function special(text, from) {
  let at = from;
  while (at < text.length) {
    const char = text.charCodeAt(at);
    // \ ` * _ ~ ! [ ] h
    if (char === 92 || char === 96 || char === 42 || char === 95 || char === 126 || char === 33 || char === 91 || char === 93) return at;
    if (char === 104 && text.startsWith('http', at)) return at;
    at += 1;
  }
  return at;
}

/** The places of runs of backticks by their length, the last one first. @param {string} text */
function tickRuns(text) {
  /** @type {Map<number, number[]>} */
  const runs = new Map();
  for (let at = text.indexOf('`'); at !== -1; at = text.indexOf('`', at)) {
    let end = at + 1;
    while (text[end] === '`') end += 1;
    const places = runs.get(end - at) ?? [];
    places.push(at);
    runs.set(end - at, places);
    at = end;
  }
  for (const places of runs.values()) places.reverse();
  return runs;
}
