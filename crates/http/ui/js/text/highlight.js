// A generic highlighter: comments, strings, numbers, keywords, calls. One pass; it knows no grammar.

import { visible } from './visible.js';

/** @typedef {import('./visible.js').Piece} Piece */
/** @typedef {{line: string[], block: [string, string][], quotes: string, words: Set<string>, triple?: boolean, key?: boolean, markup?: boolean, plainCase?: boolean}} Language */

/** Longer text stays plain. */
const LONGEST = 60_000;

/** @param {string} text */
const words = (text) => new Set(text.split(' '));

/** @type {[string, string][]} */
const C_BLOCK = [['/*', '*/']];
const C = 'auto break case char class const continue default delete do double else enum export extends extern false final finally float for foreach from get goto if implements import in instanceof int interface internal let long namespace new null nullptr operator override package private protected public readonly return sealed set short sizeof static struct super switch template this throw throws true try type typedef typeof union unsigned using var virtual void volatile while with yield async await of as is undefined boolean string number bool byte';
const RUST = 'as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 bool str char String Option Result Some None Ok Err Vec Box';
const PYTHON = 'and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self';
const GO = 'break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false string int int64 error bool byte any';
const SHELL = 'if then else elif fi for in do done while until case esac function return exit local export readonly set unset shift source alias cd echo test trap';
const SQL = 'select from where insert into values update delete create table index view drop alter add column primary key foreign references join left right inner outer full on group by order having limit offset union all distinct as and or not null is in exists between like case when then else end begin commit rollback with returning default unique';

/** @type {Record<string, Language>} */
const LANGUAGES = {
  c: { line: ['//'], block: C_BLOCK, quotes: '"\'`', words: words(C) },
  rust: { line: ['//'], block: C_BLOCK, quotes: '"', words: words(RUST) },
  python: { line: ['#'], block: [], quotes: '"\'', words: words(PYTHON), triple: true },
  go: { line: ['//'], block: C_BLOCK, quotes: '"\'`', words: words(GO) },
  shell: { line: ['#'], block: [], quotes: '"\'', words: words(SHELL) },
  sql: { line: ['--'], block: C_BLOCK, quotes: '"\'', words: words(SQL), plainCase: true },
  json: { line: [], block: [], quotes: '"', words: words('true false null'), key: true },
  data: { line: ['#'], block: [], quotes: '"\'', words: words('true false null yes no on off'), key: true },
  css: { line: [], block: C_BLOCK, quotes: '"\'', words: words('important inherit initial none auto var'), key: true },
  html: { line: [], block: [['<!--', '-->']], quotes: '"\'', words: new Set(), markup: true },
  ruby: { line: ['#'], block: [], quotes: '"\'', words: words('begin break case class def do else elsif end ensure false for if in module next nil not or and redo rescue retry return self super then true unless until when while yield require attr_reader') },
};

/** @type {Record<string, string>} */
const ALIASES = {
  js: 'c', javascript: 'c', mjs: 'c', cjs: 'c', jsx: 'c', ts: 'c', tsx: 'c', typescript: 'c', java: 'c', cpp: 'c', 'c++': 'c', cc: 'c',
  h: 'c', hpp: 'c', cs: 'c', csharp: 'c', kotlin: 'c', kt: 'c', swift: 'c', scala: 'c', php: 'c', dart: 'c', proto: 'c', zig: 'c',
  rs: 'rust', py: 'python', golang: 'go', sh: 'shell', bash: 'shell', zsh: 'shell', console: 'shell', dockerfile: 'shell', makefile: 'shell',
  make: 'shell', fish: 'shell', jsonc: 'json', json5: 'json', jsonl: 'json', yaml: 'data', yml: 'data', toml: 'data', ini: 'data', conf: 'data',
  env: 'data', properties: 'data', scss: 'css', less: 'css', xml: 'html', svg: 'html', htm: 'html', vue: 'html', rb: 'ruby', pl: 'ruby',
};

/**
 * The language of a file, by its name.
 * @param {string} path
 * @returns {string}
 */
export function languageOf(path) {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return name.slice(name.lastIndexOf('.') + 1);
}

/**
 * @param {string} text
 * @param {string} lang a name or a file ending; unknown ones stay plain
 * @returns {Piece[]}
 */
export function highlight(text, lang) {
  if (lang === 'diff' || lang === 'patch') return patch(text);
  const language = LANGUAGES[ALIASES[lang] ?? lang];
  if (!language || text.length > LONGEST || !Object.hasOwn(LANGUAGES, ALIASES[lang] ?? lang)) return visible(text);
  return new Lexer(text, language).run();
}

/** @param {string} text @returns {Piece[]} */
function patch(text) {
  /** @type {Piece[]} */
  const out = [];
  for (const line of text.slice(0, LONGEST).split('\n')) {
    const kind = line.startsWith('@@') ? 'tok-t' : line[0] === '+' ? 'tok-add' : line[0] === '-' ? 'tok-del' : '';
    if (out.length > 0) out.push('\n');
    if (kind === '') out.push(...visible(line));
    else out.push({ tag: 'span', props: { class: kind }, children: visible(line) });
  }
  if (text.length > LONGEST) out.push(...visible(text.slice(LONGEST)));
  return out;
}

class Lexer {
  /** @param {string} text @param {Language} language */
  constructor(text, language) {
    this.text = text;
    this.language = language;
    this.at = 0;
    this.start = 0;
    /** @type {Piece[]} */
    this.out = [];
    /** Up to where no closing quote follows. @type {Record<string, number>} */
    this.unclosed = {};
  }

  run() {
    const { text } = this;
    while (this.at < text.length) {
      const char = text[this.at];
      if (this.comment()) continue;
      if (this.language.quotes.includes(char) && !(this.language.markup && !this.inTag())) this.string(char);
      else if (char >= '0' && char <= '9') this.number();
      else if (isWord(char)) this.word();
      else this.at += 1;
    }
    this.plain(text.length);
    return this.out;
  }

  /** @param {number} to */
  plain(to) {
    if (to > this.start) this.out.push(...visible(this.text.slice(this.start, to)));
  }

  /** @param {string} kind @param {number} from @param {number} to */
  token(kind, from, to) {
    this.plain(from);
    this.out.push({ tag: 'span', props: { class: kind }, children: visible(this.text.slice(from, to)) });
    this.at = this.start = to;
  }

  comment() {
    const { text, at } = this;
    for (const mark of this.language.line) {
      if (!text.startsWith(mark, at)) continue;
      if (mark === '#' && at > 0 && !/\s/.test(text[at - 1])) continue;
      const end = text.indexOf('\n', at);
      this.token('tok-c', at, end === -1 ? text.length : end);
      return true;
    }
    for (const [open, close] of this.language.block) {
      if (!text.startsWith(open, at)) continue;
      const end = text.indexOf(close, at + open.length);
      this.token('tok-c', at, end === -1 ? text.length : end + close.length);
      return true;
    }
    return false;
  }

  inTag() {
    const before = this.text.slice(Math.max(0, this.at - 500), this.at);
    return before.lastIndexOf('<') > before.lastIndexOf('>');
  }

  /** @param {string} quote */
  string(quote) {
    const { text, at } = this;
    if (at < (this.unclosed[quote] ?? 0)) {
      this.at += 1;
      return;
    }
    const long = this.language.triple && text.startsWith(quote.repeat(3), at);
    const mark = long ? quote.repeat(3) : quote;
    let end = at + mark.length;
    while (end < text.length && !text.startsWith(mark, end)) {
      if (text[end] === '\n' && !long && quote !== '`') break;
      end += text[end] === '\\' ? 2 : 1;
    }
    // An apostrophe in prose is no string, and nothing else up to the end of its line needs a second search.
    if (!long && quote !== '`' && text[end] !== quote) {
      this.unclosed[quote] = end;
      this.at += 1;
      return;
    }
    end = Math.min(text.length, end + mark.length);
    this.token(this.language.key && /^\s*:/.test(text.slice(end, end + 20)) ? 'tok-t' : 'tok-s', at, end);
  }

  number() {
    const { text, at } = this;
    let end = at + 1;
    while (end < text.length && /[\w.]/.test(text[end])) end += 1;
    this.token('tok-n', at, end);
  }

  word() {
    const { text, at, language } = this;
    let end = at + 1;
    while (end < text.length && (isWord(text[end]) || (language.key && text[end] === '-'))) end += 1;
    const word = text.slice(at, end);
    const known = language.words.has(language.plainCase ? word.toLowerCase() : word);
    if (known) this.token('tok-k', at, end);
    else if (language.markup && (text[at - 1] === '<' || text.startsWith('</', at - 2))) this.token('tok-k', at, end);
    else if (language.key && /^\s*[:=]/.test(text.slice(end, end + 20))) this.token('tok-t', at, end);
    else if (text[end] === '(' || text.startsWith('!(', end)) this.token('tok-f', at, end);
    else if (word[0] >= 'A' && word[0] <= 'Z' && word.length > 1 && !language.key && !language.markup) this.token('tok-t', at, end);
    else this.at = end;
  }
}

/** @param {string} char */
function isWord(char) {
  return (char >= 'a' && char <= 'z') || (char >= 'A' && char <= 'Z') || (char >= '0' && char <= '9') || char === '_' || char === '$';
}
