// Output of terminals: colours become classes of the page's own palette, which is legible in both themes. Everything
// else that a terminal would obey (titles, cursor movements, links) has no effect.

import { visible, visibleText } from './visible.js';

/** @typedef {import('./visible.js').Piece} Piece */
/** @typedef {{fg: number, bg: number, bold: boolean, dim: boolean, italic: boolean, under: boolean, strike: boolean, inverse: boolean}} Style */

const ESC = 0x1b;
const BEL = 0x07;
/** A sequence longer than this is shown as text, so that an unfinished one cannot hide a page. */
const LONGEST = 2048;
/** After this many pieces, the rest of an output has no colours. */
const MOST = 5000;

/** @returns {Style} */
const plain = () => ({ fg: -1, bg: -1, bold: false, dim: false, italic: false, under: false, strike: false, inverse: false });

/** A parser that keeps the style from one piece of a stream to the next. */
export class Ansi {
  constructor() {
    this.style = plain();
    /** The start of a sequence whose end has not arrived. */
    this.rest = '';
    this.count = 0;
  }

  /**
   * @param {string} chunk
   * @param {boolean} [last] nothing follows: an unfinished sequence is shown
   * @returns {Piece[]}
   */
  push(chunk, last = false) {
    const text = this.rest + chunk;
    this.rest = '';
    /** @type {Piece[]} */
    const pieces = [];
    let start = 0;
    let at = text.indexOf('\x1b');
    while (at !== -1) {
      const end = sequenceEnd(text, at);
      if (end === 'open' && !last && text.length - at < LONGEST) {
        this.add(pieces, text.slice(start, at));
        this.rest = text.slice(at);
        return pieces;
      }
      if (typeof end === 'string') {
        at = text.indexOf('\x1b', at + 1);
        continue;
      }
      this.add(pieces, text.slice(start, at));
      if (text[at + 1] === '[' && text[end - 1] === 'm') colour(this.style, text.slice(at + 2, end - 1));
      start = end;
      at = text.indexOf('\x1b', end);
    }
    this.add(pieces, text.slice(start));
    return pieces;
  }

  /**
   * @param {Piece[]} pieces
   * @param {string} text
   */
  add(pieces, text) {
    if (text === '') return;
    // A carriage return would let later text cover earlier text. Each version gets a line of its own.
    const lines = text.includes('\r') ? text.replace(/\r+\n?/g, '\n') : text;
    const shown = visible(lines);
    const names = this.count < MOST ? classes(this.style) : '';
    this.count += 1;
    if (names !== '') pieces.push({ tag: 'span', props: { class: names }, children: shown });
    else if (this.count < MOST) pieces.push(...shown);
    else pieces.push(visibleText(lines));
  }
}

/**
 * The whole of an output.
 * @param {string} text
 * @returns {Piece[]}
 */
export function ansi(text) {
  return new Ansi().push(text, true);
}

/**
 * The end of the sequence that starts at `at`; `open`: it goes on after the text; `none`: it is not one.
 * @param {string} text
 * @param {number} at
 * @returns {number | 'open' | 'none'}
 */
function sequenceEnd(text, at) {
  const most = Math.min(text.length, at + LONGEST);
  const kind = text.charCodeAt(at + 1);
  if (Number.isNaN(kind)) return 'open';
  if (kind === 0x5b) {
    for (let end = at + 2; end < most; end += 1) {
      const code = text.charCodeAt(end);
      if (code >= 0x40 && code <= 0x7e) return end + 1;
      if (code < 0x20 || code > 0x3f) return 'none';
    }
    return most === text.length ? 'open' : 'none';
  }
  // Strings for the terminal: OSC ], DCS P, SOS X, PM ^, APC _.
  if (kind === 0x5d || kind === 0x50 || kind === 0x58 || kind === 0x5e || kind === 0x5f) {
    for (let end = at + 2; end < most; end += 1) {
      const code = text.charCodeAt(end);
      if (code === BEL) return end + 1;
      if (code === ESC) return text[end + 1] === '\\' ? end + 2 : end + 1 < text.length ? 'none' : 'open';
      if (code === 10) return 'none';
    }
    return most === text.length ? 'open' : 'none';
  }
  if (kind === 0x28 || kind === 0x29) return at + 3 <= text.length ? at + 3 : 'open';
  return kind >= 0x37 && kind <= 0x7e ? at + 2 : 'none';
}

/**
 * Applies the numbers of a colour sequence.
 * @param {Style} style
 * @param {string} text
 */
function colour(style, text) {
  const codes = text.split(/[;:]/).slice(0, 64).map((code) => (code === '' ? 0 : Number(code)));
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) Object.assign(style, plain());
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.under = true;
    else if (code === 7) style.inverse = true;
    else if (code === 9) style.strike = true;
    else if (code === 22) style.bold = style.dim = false;
    else if (code === 23) style.italic = false;
    else if (code === 24) style.under = false;
    else if (code === 27) style.inverse = false;
    else if (code === 29) style.strike = false;
    else if (code >= 30 && code <= 37) style.fg = code - 30;
    else if (code >= 90 && code <= 97) style.fg = code - 82;
    else if (code === 39) style.fg = -1;
    else if (code >= 40 && code <= 47) style.bg = code - 40;
    else if (code >= 100 && code <= 107) style.bg = code - 92;
    else if (code === 49) style.bg = -1;
    else if (code === 38 || code === 48) {
      const five = codes[i + 1] === 5;
      const near = five ? indexed(codes[i + 2]) : nearest(codes[i + 2], codes[i + 3], codes[i + 4]);
      if (code === 38) style.fg = near;
      else style.bg = near;
      i += five ? 2 : 4;
    }
  }
}

const PALETTE = [
  [0, 0, 0], [205, 49, 49], [13, 188, 121], [229, 229, 16], [36, 114, 200], [188, 63, 188], [17, 168, 205], [229, 229, 229],
  [102, 102, 102], [241, 76, 76], [35, 209, 139], [245, 245, 67], [59, 142, 234], [214, 112, 214], [41, 184, 219], [255, 255, 255],
];

/** @param {number} index a colour of the 256 @returns {number} */
function indexed(index) {
  if (!(index >= 0)) return -1;
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return nearest(grey, grey, grey);
  }
  const step = (/** @type {number} */ n) => (n === 0 ? 0 : 55 + n * 40);
  const cube = index - 16;
  return nearest(step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6));
}

/** @param {number} r @param {number} g @param {number} b @returns {number} */
function nearest(r, g, b) {
  if (![r, g, b].every((part) => part >= 0)) return -1;
  let best = 7;
  let least = Infinity;
  PALETTE.forEach(([pr, pg, pb], index) => {
    const distance = (pr - r) ** 2 + (pg - g) ** 2 + (pb - b) ** 2;
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

/** @param {Style} style @returns {string} */
function classes(style) {
  const { fg } = style;
  // Text in the colour of its background would be hidden.
  const bg = style.bg === fg ? -1 : style.bg;
  const names = [];
  if (style.inverse) names.push(fg >= 0 ? `ansi-bg-${fg}` : 'ansi-inverse');
  else if (fg >= 0 && bg < 0) names.push(`ansi-${fg}`);
  else if (bg >= 0) names.push(`ansi-bg-${bg}`);
  if (style.bold) names.push('ansi-bold');
  if (style.dim) names.push('ansi-dim');
  if (style.italic) names.push('ansi-italic');
  if (style.under) names.push('ansi-under');
  if (style.strike) names.push('ansi-strike');
  return names.join(' ');
}
