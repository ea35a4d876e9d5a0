// Our subset of Markdown, as a tree: headings, paragraphs, lists, quotes, tables, fences, rules. HTML is text, images
// are links, and no address is loaded. Blocks are found line by line, and nested ones only to a certain depth.

import { highlight } from './highlight.js';
import { inline } from './inline.js';

/** @typedef {import('./visible.js').Piece} Piece */

/** Deeper lists and quotes are text. */
const DEEPEST = 8;

/**
 * @param {string} text
 * @returns {Piece[]}
 */
export function markdown(text) {
  return blocks(text.replaceAll('\r\n', '\n').split('\n'), 0);
}

/**
 * Where the text that still grows begins: all before is complete and need not be rendered again.
 * @param {string} text
 * @param {number} from the last answer
 * @returns {number}
 */
export function settled(text, from) {
  let fence = '';
  let safe = from;
  let at = from;
  while (at < text.length) {
    const end = text.indexOf('\n', at);
    if (end === -1) break;
    const line = text.slice(at, Math.min(end, at + 200)).trim();
    if (fence !== '') {
      if (line.startsWith(fence) && line.replaceAll(fence[0], '') === '') fence = '';
    } else if (line.startsWith('```') || line.startsWith('~~~')) {
      fence = line.slice(0, 3);
    } else if (line === '' && text[end + 1] !== ' ' && text[end + 1] !== undefined) {
      safe = end + 1;
    }
    at = end + 1;
  }
  return safe;
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {Piece[]}
 */
function blocks(lines, depth) {
  /** @type {Piece[]} */
  const out = [];
  /** @type {string[]} */
  let paragraph = [];
  const flush = () => {
    if (paragraph.length > 0) out.push({ tag: 'p', children: inline(paragraph.join('\n').trim()) });
    paragraph = [];
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const body = line.trimStart();
    if (body === '') {
      flush();
      at += 1;
      continue;
    }
    const fence = fenceOf(body);
    if (fence) {
      flush();
      const end = fenceEnd(lines, at + 1, fence.mark);
      out.push(code(lines.slice(at + 1, end), indent(line), fence.lang));
      at = end + 1;
      continue;
    }
    const heading = headingOf(body);
    if (heading) {
      flush();
      // No heading of the page: the outline of the page is not for others to write.
      out.push({ tag: 'p', props: { class: `md-h md-h${heading.level}` }, children: inline(heading.text) });
      at += 1;
      continue;
    }
    if (isRule(body)) {
      flush();
      out.push({ tag: 'hr' });
      at += 1;
      continue;
    }
    if (body[0] === '>' && depth < DEEPEST) {
      flush();
      const start = at;
      while (at < lines.length && lines[at].trimStart()[0] === '>') at += 1;
      const inner = lines.slice(start, at).map((quoted) => quoted.trimStart().slice(1).replace(/^ /, ''));
      out.push({ tag: 'blockquote', children: blocks(inner, depth + 1) });
      continue;
    }
    const marker = markerOf(line);
    if (marker && depth < DEEPEST && (paragraph.length === 0 || !marker.ordered || marker.start === 1)) {
      flush();
      const list = listOf(lines, at, marker, depth);
      out.push(list.tree);
      at = list.next;
      continue;
    }
    if (body.includes('|') && at + 1 < lines.length && paragraph.length === 0) {
      const table = tableOf(lines, at);
      if (table) {
        out.push(table.tree);
        at = table.next;
        continue;
      }
    }
    paragraph.push(body);
    at += 1;
  }
  flush();
  return out;
}

/** @param {string} line */
function indent(line) {
  let width = 0;
  while (line[width] === ' ' || line[width] === '\t') width += 1;
  return width;
}

/** @param {string} body @returns {{mark: string, lang: string} | null} */
function fenceOf(body) {
  const char = body[0];
  if (char !== '`' && char !== '~') return null;
  let size = 0;
  while (body[size] === char) size += 1;
  if (size < 3) return null;
  const info = body.slice(size, size + 100);
  if (char === '`' && info.includes('`')) return null;
  return { mark: body.slice(0, Math.min(size, 100)), lang: info.trim().split(/[\s,{]/, 1)[0].toLowerCase() };
}

/** @param {string[]} lines @param {number} from @param {string} mark */
function fenceEnd(lines, from, mark) {
  for (let at = from; at < lines.length; at += 1) {
    const line = lines[at];
    if (line.length < 200 && line.trimStart().startsWith(mark) && line.trim().replaceAll(mark[0], '') === '') return at;
  }
  return lines.length;
}

/** @param {string[]} lines @param {number} width @param {string} lang @returns {Piece} */
function code(lines, width, lang) {
  const text = (width === 0 ? lines : lines.map((line) => line.slice(Math.min(width, indent(line))))).join('\n');
  /** @type {Record<string, string>} */
  const props = { class: 'code' };
  if (lang !== '') props['data-lang'] = lang.slice(0, 20);
  return { tag: 'pre', props, children: [{ tag: 'code', children: highlight(text, lang) }] };
}

/** @param {string} body @returns {{level: number, text: string} | null} */
function headingOf(body) {
  let level = 0;
  while (body[level] === '#' && level < 7) level += 1;
  if (level === 0 || level > 6 || (body[level] !== ' ' && body[level] !== undefined)) return null;
  let end = body.trimEnd().length;
  while (end > level && body[end - 1] === '#') end -= 1;
  const text = end < body.length && body[end - 1] !== ' ' ? body.slice(level) : body.slice(level, end);
  return { level, text: text.trim() };
}

/** @param {string} body */
function isRule(body) {
  const char = body[0];
  if (char !== '-' && char !== '*' && char !== '_') return false;
  if (body.length > 200) return false;
  const rest = body.replaceAll(char, '');
  return rest.trim() === '' && body.length - rest.length >= 3;
}

/** @typedef {{ordered: boolean, start: number, indent: number, width: number}} Marker */

/** @param {string} line @returns {Marker | null} */
function markerOf(line) {
  const width = indent(line);
  const found = /^(?:([-*+])|(\d{1,9})[.)])(?:[ \t]+|$)/.exec(line.slice(width, width + 20));
  if (!found) return null;
  const size = found[0].length > 5 && found[1] ? 2 : found[0].length;
  return { ordered: found[1] === undefined, start: Number(found[2] ?? 0), indent: width, width: width + size };
}

/**
 * @param {string[]} lines
 * @param {number} from
 * @param {Marker} first
 * @param {number} depth
 * @returns {{tree: Piece, next: number}}
 */
function listOf(lines, from, first, depth) {
  /** @type {Piece[]} */
  const items = [];
  let at = from;
  while (at < lines.length) {
    const marker = markerOf(lines[at]);
    if (!marker || marker.ordered !== first.ordered || marker.indent > first.indent + 1 || isRule(lines[at].trim())) break;
    const inner = [lines[at].slice(marker.width)];
    let loose = false;
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at];
      if (line.trim() === '') {
        // A blank line belongs to the item if an indented line follows it.
        let next = at + 1;
        while (next < lines.length && lines[next].trim() === '') next += 1;
        if (next === lines.length || indent(lines[next]) < marker.indent + 2) {
          at = next < lines.length && markerOf(lines[next]) ? next : at;
          break;
        }
        loose = true;
        for (; at < next; at += 1) inner.push('');
        at -= 1;
        continue;
      }
      const width = indent(line);
      if (width > marker.indent + 1 || (width > marker.indent && !markerOf(line))) {
        inner.push(line.slice(Math.min(width, marker.width)));
      } else if (markerOf(line) || fenceOf(line.trimStart()) || headingOf(line.trimStart()) || line.trimStart()[0] === '>') {
        break;
      } else {
        inner.push(line.trimStart());
      }
    }
    items.push(item(inner, loose, depth));
  }
  /** @type {Record<string, string | number>} */
  const props = {};
  if (first.ordered && first.start !== 1) props.start = first.start;
  return { tree: { tag: first.ordered ? 'ol' : 'ul', props, children: items }, next: at };
}

/** @param {string[]} lines @param {boolean} loose @param {number} depth @returns {Piece} */
function item(lines, loose, depth) {
  const task = /^\[([ xX])\] /.exec(lines[0].slice(0, 4));
  if (task) lines[0] = lines[0].slice(4);
  let children = blocks(lines, depth + 1);
  const [head, ...rest] = children;
  if (!loose && head && typeof head !== 'string' && head.tag === 'p') children = [...(head.children ?? []), ...rest];
  if (task) children.unshift(task[1] === ' ' ? '\u2610 ' : '\u2611 ');
  return task ? { tag: 'li', props: { class: 'task' }, children } : { tag: 'li', children };
}

/** @param {string[]} lines @param {number} at @returns {{tree: Piece, next: number} | null} */
function tableOf(lines, at) {
  const rule = lines[at + 1].trim();
  if (rule.length > 2000 || !rule.includes('-') || !/^[|:\- \t]+$/.test(rule)) return null;
  const heads = cells(lines[at]);
  if (cells(rule).length !== heads.length) return null;
  const sides = cells(rule).map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : ''));
  let next = at + 2;
  while (next < lines.length && lines[next].includes('|') && lines[next].trim() !== '') next += 1;
  /** @param {string} tag @param {string} line */
  const row = (tag, line) => {
    const texts = cells(line);
    /** @type {Piece[]} */
    const children = heads.map((_, i) => {
      const inner = inline(texts[i] ?? '');
      return sides[i] ? { tag, props: { class: `to-${sides[i]}` }, children: inner } : { tag, children: inner };
    });
    return { tag: 'tr', children };
  };
  /** @type {Piece} */
  const table = {
    tag: 'table',
    children: [
      { tag: 'thead', children: [row('th', lines[at])] },
      { tag: 'tbody', children: lines.slice(at + 2, next).map((line) => row('td', line)) },
    ],
  };
  return { tree: { tag: 'div', props: { class: 'md-table', tabindex: 0, role: 'group', 'aria-label': 'Table' }, children: [table] }, next };
}

/** @param {string} line @returns {string[]} */
function cells(line) {
  let text = line.trim();
  if (text.startsWith('|')) text = text.slice(1);
  if (text.endsWith('|') && !text.endsWith('\\|')) text = text.slice(0, -1);
  /** @type {string[]} */
  const out = [];
  let start = 0;
  let inCode = false;
  for (let at = 0; at < text.length && out.length < 64; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '`') inCode = !inCode;
    else if (text[at] === '|' && !inCode) {
      out.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  out.push(text.slice(start).trim());
  return out.map((cell) => cell.replaceAll('\\|', '|'));
}
