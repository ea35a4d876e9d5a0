// Panes for long untrusted text: the page never renders more of it than a person can read, and shows the rest on demand.

import { h, nodes, put } from '../../dom.js';
import { bytes } from '../../format.js';
import { Ansi } from '../../text/ansi.js';
import { highlight } from '../../text/highlight.js';
import { markdown, settled } from '../../text/markdown.js';
import { visible } from '../../text/visible.js';



const HEAD = 3000;
const TAIL = 3000;
const MORE = 64 << 10;
const PROSE = 40_000;
/** Text of a running command that stays on the page. */
const LIVE = 60_000;

/**
 * @param {string} text
 * @param {{lang?: string, label?: string, whole?: boolean}} [how] `lang`: highlighted; otherwise terminal colours
 * @returns {HTMLElement}
 */
export function pane(text, { lang, label = 'Text', whole = false } = {}) {
  const code = h('code');
  const box = h('pre', { class: 'code pane', tabindex: 0, role: 'group', 'aria-label': label }, code);
  const render = (/** @type {string} */ part) => nodes(lang ? highlight(part, lang) : new Ansi().push(part, true));
  if (whole || text.length <= (HEAD + TAIL) * 1.5) {
    code.append(render(text));
    return box;
  }
  let start = breakAfter(text, HEAD);
  const end = Math.max(start, breakAfter(text, text.length - TAIL));
  const rest = h('span');
  const gap = h('button', { type: 'button', class: 'gap', on: { click: () => more() } });
  const label2 = () => put(gap, `⋯ ${bytes(end - start)} more`, h('span', { class: 'faint' }, ` of ${bytes(text.length)}`));
  const more = () => {
    const next = Math.min(end, breakAfter(text, start + MORE));
    rest.append(render(text.slice(start, next)));
    start = next;
    if (start >= end) gap.remove();
    else label2();
  };
  label2();
  code.append(render(text.slice(0, start)), rest, gap, render(text.slice(end)));
  return box;
}

/** The end of the line near `at`; lines without an end near are cut. @param {string} text @param {number} at */
function breakAfter(text, at) {
  const end = text.indexOf('\n', at);
  if (end !== -1 && end - at < 500) return end + 1;
  // Not between the halves of a character.
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at;
}

/**
 * Markdown of a model or a person.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function prose(text) {
  const box = h('div', { class: 'prose' });
  let start = 0;
  const more = () => {
    let end = start + PROSE >= text.length ? text.length : settled(text.slice(start, start + PROSE), 0) + start;
    if (end <= start) end = breakAfter(text, start + PROSE);
    box.append(nodes(markdown(text.slice(start, end))));
    start = end;
    if (start >= text.length) return;
    const button = h('button', { type: 'button', class: 'gap', on: { click: () => (button.remove(), more()) } }, `⋯ ${bytes(text.length - start)} more`);
    box.append(button);
  };
  more();
  return box;
}

/** Markdown that grows. Complete blocks are rendered once; only the last one is rendered again, once per frame. */
export class LiveProse {
  constructor() {
    this.done = h('div', { class: 'prose' });
    this.tail = h('div', { class: 'prose' });
    this.element = h('div', { class: 'live' }, this.done, this.tail);
    this.text = '';
    this.start = 0;
    this.frame = 0;
  }

  /** @param {string} text */
  push(text) {
    this.text += text;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  reset(text = '') {
    this.text = text;
    this.start = 0;
    put(this.done);
    this.draw();
  }

  draw() {
    this.frame = 0;
    let safe = settled(this.text, this.start);
    // Text without an end in sight is cut, so that a frame never renders much.
    if (safe === this.start && this.text.length - safe > 8000) safe = breakAfter(this.text, this.text.length - 200);
    if (safe > this.start) {
      this.done.append(nodes(markdown(this.text.slice(this.start, safe))));
      this.start = safe;
      while (this.done.childNodes.length > 400) this.done.firstChild?.remove();
    }
    put(this.tail, nodes(markdown(this.text.slice(this.start))));
  }
}

/** Output of a running command. */
export class LiveOutput {
  constructor() {
    this.ansi = new Ansi();
    this.code = h('code');
    this.element = h('pre', { class: 'code pane live-output', tabindex: 0, role: 'log', 'aria-label': 'Output so far', 'aria-live': 'off' }, this.code);
    this.size = 0;
  }

  /** @param {string} text */
  push(text) {
    // Of a flood, only the end is worth a look.
    const part = text.length > LIVE ? text.slice(-LIVE) : text;
    const atEnd = this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - 8;
    this.code.append(nodes(this.ansi.push(part)));
    this.size += part.length;
    while (this.size > LIVE * 2 && this.code.firstChild) {
      this.size -= this.code.firstChild.textContent?.length ?? 0;
      this.code.firstChild.remove();
    }
    if (atEnd) this.element.scrollTop = this.element.scrollHeight;
  }
}

/** A line of untrusted text with hidden characters shown. @param {string} text @param {number} [most] @returns {Node} */
export function line(text, most = 300) {
  const start = text.slice(0, most).replace(/[\n\t]+/g, ' ');
  return nodes(visible(text.length > most ? `${start}…` : start));
}

/** @param {unknown} value @param {string} label */
export const json = (value, label) => pane(JSON.stringify(value, null, 2) ?? '', { lang: 'json', label });

