// Makes characters visible that would hide or reorder text: control characters, bidirectional overrides, characters
// without width, and the invisible tags that carry instructions for models.

/** @typedef {{tag: string, props?: Record<string, string | number | boolean>, children?: Piece[]}} Tree */
/** @typedef {string | Tree} Piece */

/** Code points that are always shown as their number, as ranges. */
const HIDDEN = [
  [0x7f, 0x9f], // DEL and C1
  [0xad, 0xad], // soft hyphen
  [0x34f, 0x34f], // grapheme joiner
  [0x61c, 0x61c], // Arabic letter mark
  [0x115f, 0x1160], // Hangul fillers
  [0x17b4, 0x17b5], // Khmer vowels without a form
  [0x180b, 0x180f], // Mongolian selectors
  [0x200b, 0x200b], // zero width space
  [0x200e, 0x200f], // marks of direction
  [0x2028, 0x202e], // separators, embeddings, overrides
  [0x2060, 0x206f], // word joiner, isolates
  [0x3164, 0x3164], // Hangul filler
  [0xfeff, 0xfeff], // byte order mark
  [0xffa0, 0xffa0], // half-width Hangul filler
  [0xfff0, 0xfffb], // interlinear marks
  [0x1d173, 0x1d17a], // musical controls
  [0xe0000, 0xe0fff], // tags and further selectors
];

/** Whether text can contain one of them: a quick test that most text fails. */
const SUSPECT = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff]/;

/** More marked pieces than this in one text become plain text, so that no text floods the page with elements. */
const MOST = 2000;

/** The control characters of ASCII. Few fonts have their pictures. */
const C0 = 'NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US'.split(' ');

/** @type {Record<number, string>} */
const NAMES = {
  0x1b: 'escape',
  0x200b: 'zero width space',
  0x200c: 'zero width non-joiner',
  0x200d: 'zero width joiner',
  0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark',
  0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding',
  0x202c: 'end of direction',
  0x202d: 'left-to-right override',
  0x202e: 'right-to-left override',
  0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate',
  0x2069: 'end of isolate',
  0xfeff: 'byte order mark',
};

/**
 * The visible form of a character, or null if the character is visible already.
 * @param {number} code
 * @param {number} before the character before it, 0 at the start
 * @param {number} after the character after it, 0 at the end
 * @returns {string | null}
 */
function shown(code, before, after) {
  if (code < 0x20) return code === 10 || code === 9 ? null : C0[code];
  if (code < 0x7f) return null;
  if (code === 0x7f) return 'DEL';
  if (code === 0x200c || code === 0x200d) {
    // Joiners belong to emoji and to some scripts; between Latin letters they only hide differences.
    return before > 0x2ff && after > 0x2ff ? null : number(code);
  }
  if (code >= 0xd800 && code <= 0xdfff) return number(code);
  for (const [from, to] of HIDDEN) {
    if (code < from) return null;
    if (code <= to) return number(code);
  }
  return null;
}

/** @param {number} code */
function number(code) {
  return 'U+' + code.toString(16).toUpperCase().padStart(4, '0');
}

/**
 * Text with every hidden character as a marked piece.
 * @param {string} text
 * @returns {Piece[]}
 */
export function visible(text) {
  if (!SUSPECT.test(text)) return text === '' ? [] : [text];
  /** @type {Piece[]} */
  const pieces = [];
  each(text, (plain) => add(pieces, plain), (sign, code, count) => {
    if (pieces.length > MOST) return add(pieces, marked(sign, count));
    const name = NAMES[code] ?? 'hidden character';
    const times = count > 1 ? `\u00d7${count}` : '';
    pieces.push({ tag: 'span', props: { class: 'ctl', title: `${number(code)} ${name}` }, children: [sign + times] });
  });
  return pieces;
}

/** Appends to the last string if there is one. @param {Piece[]} pieces @param {string} text */
function add(pieces, text) {
  const last = pieces.length - 1;
  if (typeof pieces[last] === 'string') pieces[last] += text;
  else pieces.push(text);
}

/** @param {string} sign @param {number} count */
function marked(sign, count) {
  return `\u2039${sign}${count > 1 ? `\u00d7${count}` : ''}\u203a`;
}

/**
 * The same as plain text, for titles and attributes.
 * @param {string} text
 * @returns {string}
 */
export function visibleText(text) {
  if (!SUSPECT.test(text)) return text;
  /** @type {string[]} */
  const parts = [];
  each(text, (plain) => parts.push(plain), (sign, _, count) => {
    parts.push(marked(sign, count));
  });
  return parts.join('');
}

/**
 * One line: line breaks and tabs become spaces, and long text is cut.
 * @param {string} text
 * @param {number} [most]
 * @returns {string}
 */
export function oneLine(text, most = 200) {
  const start = text.slice(0, most * 2).replace(/[\n\r\t]/g, ' ').trim();
  const line = visibleText(start);
  return line.length > most || text.length > most * 2 ? line.slice(0, most - 1) + '\u2026' : line;
}

/**
 * Splits text into plain stretches and hidden characters. Repetitions of a hidden character are counted.
 * @param {string} text
 * @param {(plain: string) => void} plain
 * @param {(sign: string, code: number, count: number) => void} hidden
 */
function each(text, plain, hidden) {
  let start = 0;
  let before = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    const size = code > 0xffff ? 2 : 1;
    const sign = shown(code, before, text.codePointAt(at + size) ?? 0);
    before = code;
    if (sign === null) {
      at += size;
      continue;
    }
    if (at > start) plain(text.slice(start, at));
    let count = 0;
    while (at < text.length && text.codePointAt(at) === code) {
      count += 1;
      at += size;
    }
    hidden(sign, code, count);
    start = at;
  }
  if (start < text.length) plain(text.slice(start));
}
