// The pure text modules of the page, with hostile inputs. `node --test tests/page/unit`

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ansi, ansi } from '../../../crates/http/ui/js/text/ansi.js';
import { changedParts, isDiff, parseDiff, sideBySide } from '../../../crates/http/ui/js/text/diff.js';
import { highlight, languageOf } from '../../../crates/http/ui/js/text/highlight.js';
import { safeUrl } from '../../../crates/http/ui/js/text/links.js';
import { markdown, settled } from '../../../crates/http/ui/js/text/markdown.js';
import { oneLine, visible, visibleText } from '../../../crates/http/ui/js/text/visible.js';

const html = (piece) => {
  if (typeof piece === 'string') return piece.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  if (Array.isArray(piece)) return piece.map(html).join('');
  const props = Object.entries(piece.props ?? {}).filter(([name]) => !['rel', 'target', 'title', 'tabindex', 'role', 'aria-label'].includes(name));
  const attributes = props.map(([name, value]) => ` ${name}="${value}"`).join('');
  return `<${piece.tag}${attributes}>${(piece.children ?? []).map(html).join('')}</${piece.tag}>`;
};
const plain = (piece) => {
  if (typeof piece === 'string') return piece;
  if (Array.isArray(piece)) return piece.map(plain).join('');
  return (piece.children ?? []).map(plain).join('');
};
const elements = (piece, tag) => {
  if (typeof piece === 'string') return [];
  if (Array.isArray(piece)) return piece.flatMap((child) => elements(child, tag));
  return [...(piece.tag === tag ? [piece] : []), ...(piece.children ?? []).flatMap((child) => elements(child, tag))];
};

/** Everything that the text modules may make. */
const ALLOWED = new Set('a blockquote code div em hr li ol p pre s span strong table tbody td th thead tr ul'.split(' '));
const PROPS = new Set(['class', 'href', 'target', 'rel', 'title', 'start', 'data-lang', 'tabindex', 'role', 'aria-label']);

/** Untrusted text makes known elements only, and every link is http or https and marked. */
function safe(pieces) {
  for (const piece of Array.isArray(pieces) ? pieces : [pieces]) {
    if (typeof piece === 'string') continue;
    assert.ok(ALLOWED.has(piece.tag), piece.tag);
    for (const name of Object.keys(piece.props ?? {})) assert.ok(PROPS.has(name), name);
    if (piece.tag === 'a') {
      assert.match(piece.props.href, /^https?:\/\/[^@]*$/);
      assert.equal(piece.props.rel, 'noopener noreferrer nofollow');
      assert.match(plain(piece), /^\u2197 /);
    }
    safe(piece.children ?? []);
  }
}

test('markdown: blocks', () => {
  assert.equal(html(markdown('# One\n\ntwo *three* **four** `five` ~~six~~')), '<p class="md-h md-h1">One</p><p>two <em>three</em> <strong>four</strong> <code>five</code> <s>six</s></p>');
  assert.equal(html(markdown('a\n---\nb')), '<p>a</p><hr></hr><p>b</p>');
  assert.equal(html(markdown('> quoted\n> more')), '<blockquote><p>quoted\nmore</p></blockquote>');
  assert.equal(html(markdown('```sh\necho "hi" # x\n```\nafter')), '<pre class="code" data-lang="sh"><code><span class="tok-k">echo</span> <span class="tok-s">"hi"</span> <span class="tok-c"># x</span></code></pre><p>after</p>');
  assert.equal(html(markdown('snake_case_name and 2 * 3 * 4')), '<p>snake_case_name and 2 * 3 * 4</p>');
  assert.equal(html(markdown('***both***')), '<p><em><strong>both</strong></em></p>');
  assert.equal(html(markdown('an *open one and `a tick')), '<p>an *open one and `a tick</p>');
  assert.equal(html(markdown('arr[0](x)')), '<p>arr[0](x)</p>');
  assert.equal(html(markdown('``a ` b``')), '<p><code>a ` b</code></p>');
  assert.equal(html(markdown('\\*not\\*')), '<p>*not*</p>');
});

test('markdown: lists', () => {
  assert.equal(html(markdown('- a\n- b\n  - c\n  - d\n- e')), '<ul><li>a</li><li>b<ul><li>c</li><li>d</li></ul></li><li>e</li></ul>');
  assert.equal(html(markdown('3. a\n4. b')), '<ol start="3"><li>a</li><li>b</li></ol>');
  assert.equal(html(markdown('1. a\n\n   ```\n   x\n   ```\n2. b')), '<ol><li><p>a</p><pre class="code"><code>x</code></pre></li><li>b</li></ol>');
  assert.equal(html(markdown('- [x] done\n- [ ] open')), '<ul><li class="task">\u2611 done</li><li class="task">\u2610 open</li></ul>');
  assert.equal(html(markdown('text\n- a\nlazy\n\nend')), '<p>text</p><ul><li>a\nlazy</li></ul><p>end</p>');
  assert.equal(html(markdown('- a\n\n- b')), '<ul><li>a</li><li>b</li></ul>');
});

test('markdown: tables', () => {
  const table = markdown('| a | b |\n|---|--:|\n| `x|y` | 2 |\n\nafter');
  assert.equal(elements(table, 'th').length, 2);
  assert.equal(plain(elements(table, 'td')[0]), 'x|y');
  assert.equal(elements(table, 'td')[1].props.class, 'to-right');
  assert.equal(plain(table.at(-1)), 'after');
});

test('markdown: HTML and scripts are text', () => {
  const attack = '<script>alert(1)</script> <img src=x onerror=alert(1)> <a href="javascript:alert(1)">x</a>';
  const tree = markdown(attack);
  safe(tree);
  assert.equal(plain(tree), attack);
});

test('markdown: only http and https become links, each with its host', () => {
  for (const address of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', '//evil.example', 'java\tscript:x', 'https://good.example@evil.example/', 'https://']) {
    const tree = markdown(`[click](${address}) and ![p](${address})`);
    safe(tree);
    assert.deepEqual(elements(tree, 'a').filter((a) => a.props.href.includes('script')), [], address);
    if (!address.startsWith('https://g')) assert.deepEqual(elements(tree, 'a'), [], address);
  }
  const tree = markdown('[your bank](https://evil.example/login) https://a.example/b_(c). ![x](http://t.example/p.png)');
  safe(tree);
  assert.deepEqual(elements(tree, 'a').map(plain), ['\u2197 evil.example', '\u2197 a.example', '\u2197 t.example']);
  assert.deepEqual(elements(tree, 'img'), []);
  assert.equal(safeUrl('https://user:secret@host.example/'), null);
  assert.equal(safeUrl('https://\u0430pple.com/')?.host, 'xn--pple-43d.com');
  assert.equal(safeUrl(`https://a.example/${'x'.repeat(3000)}`), null);
});

test('markdown: an unterminated fence runs to the end', () => {
  const tree = markdown('before\n```rust\nfn main() {}\n<b>');
  assert.equal(elements(tree, 'pre').length, 1);
  assert.match(plain(tree), /fn main\(\) \{\}\n<b>$/);
});

test('markdown: settled text ends before what still grows', () => {
  assert.equal(settled('one\n\ntwo', 0), 5);
  assert.equal(settled('one\n\n', 0), 0);
  assert.equal(settled('```\na\n\nb', 0), 0);
  assert.equal(settled('```\na\n```\n\nb', 0), 11);
  assert.equal(settled('- a\n\n  b', 0), 0);
});

test('visible: bidirectional, invisible and control characters', () => {
  assert.equal(visibleText('a\u202eb'), 'a\u2039U+202E\u203ab');
  assert.equal(visibleText('x\u0000\u001b[31m'), 'x\u2039NUL\u203a\u2039ESC\u203a[31m');
  assert.equal(visibleText('tab\tand\nline'), 'tab\tand\nline');
  assert.equal(visibleText('\u{e0041}\u{e0041}'), '\u2039U+E0041\u00d72\u203a');
  assert.equal(visibleText('pay\u200dpal \u{1f468}\u200d\u{1f469}'), 'pay\u2039U+200D\u203apal \u{1f468}\u200d\u{1f469}');
  assert.equal(visibleText('\ud800'), '\u2039U+D800\u203a');
  assert.equal(visibleText('\u2028'), '\u2039U+2028\u203a');
  assert.deepEqual(visible('plain \u{1f600} \u00e9'), ['plain \u{1f600} \u00e9']);
  const [, mark] = visible('a\u202eb');
  assert.equal(mark.props.title, 'U+202E right-to-left override');
  for (const hidden of ['\u202a', '\u202b', '\u202d', '\u2066', '\u2067', '\u2068', '\u2069', '\u200f', '\u061c', '\ufeff', '\u00ad', '\u3164', '\u0085']) {
    assert.ok(!visibleText(`a${hidden}b`).includes(hidden), hidden.codePointAt(0).toString(16));
  }
  assert.equal(oneLine('a\nb\tc'), 'a b c');
  assert.equal(oneLine('x'.repeat(500), 10), 'xxxxxxxxx\u2026');
  for (const tree of [markdown('*a\u202eb* `c\u202ed`\n```\ne\u202ef\n```'), ansi('\u202ea'), highlight('"\u202e"', 'js')]) assert.ok(!plain(tree).includes('\u202e'));
});

test('ansi: colours become classes, everything else goes', () => {
  assert.equal(html(ansi('\x1b[31mred\x1b[0m plain')), '<span class="ansi-1">red</span> plain');
  assert.equal(html(ansi('\x1b[1;92mok\x1b[m')), '<span class="ansi-10 ansi-bold">ok</span>');
  assert.equal(html(ansi('\x1b[38;2;255;0;0mx\x1b[48;5;21my')), '<span class="ansi-1">x</span><span class="ansi-bg-4">y</span>');
  assert.equal(plain(ansi('\x1b]0;title\x07a\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x1b\\\x1b[2J\x1b[H')), 'alink');
  assert.equal(html(ansi('\x1b[31;41mhidden')), '<span class="ansi-1">hidden</span>');
  assert.equal(plain(ansi('rm -rf /\rls      ')), 'rm -rf /\nls      ');
  assert.equal(plain(ansi('a\r\nb')), 'a\nb');
  assert.equal(plain(ansi('a\bb')), 'aBSb');
  assert.equal(plain(ansi('\x1b]0;never ends\nbut this is text')), 'ESC]0;never ends\nbut this is text');
});

test('ansi: a sequence may be split over two pieces', () => {
  const parser = new Ansi();
  assert.equal(html(parser.push('a\x1b[3')), 'a');
  assert.equal(html(parser.push('2mb')), '<span class="ansi-2">b</span>');
  assert.equal(html(parser.push('c', true)), '<span class="ansi-2">c</span>');
});

test('diff: files, rows, pairs and the parts that differ', () => {
  const text = '--- a/x.sh\n+++ b/x.sh\n@@ -1,3 +1,3 @@\n #!/bin/sh\n-total=1\n+total=0\n for x\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+one\n\\ No newline at end of file\n';
  assert.ok(isDiff(text));
  const [first, second] = parseDiff(text);
  assert.deepEqual([first.from, first.to, second.from, second.to], ['x.sh', 'x.sh', '', 'new']);
  const { rows } = first.hunks[0];
  assert.deepEqual(rows.map((row) => [row.kind, row.old, row.now]), [[' ', 1, 1], ['-', 2, 0], ['+', 0, 2], [' ', 3, 3]]);
  assert.deepEqual(sideBySide(rows).map(([a, b]) => [a?.text, b?.text]), [['#!/bin/sh', '#!/bin/sh'], ['total=1', 'total=0'], ['for x', 'for x']]);
  assert.deepEqual(changedParts(rows).get(rows[1]), [6, 7]);
  assert.equal(second.hunks[0].rows.at(-1).kind, '\\');
  // A removed line that looks like a header.
  const [file] = parseDiff('--- a/q\n+++ b/q\n@@ -1,2 +1 @@\n--- x\n y\n');
  assert.deepEqual(file.hunks[0].rows.map((row) => row.kind + row.text), ['--- x', ' y']);
  assert.deepEqual(parseDiff('not a diff'), []);
});

test('highlight: tokens, and no text is lost', () => {
  assert.equal(html(highlight('let x = 1; // one', 'rust')), '<span class="tok-k">let</span> x = <span class="tok-n">1</span>; <span class="tok-c">// one</span>');
  assert.equal(html(highlight('{"a": true}', 'json')), '{<span class="tok-t">"a"</span>: <span class="tok-k">true</span>}');
  assert.equal(html(highlight("don't", 'js')), "don't");
  assert.equal(languageOf('/a/b.test.rs'), 'rs');
  const sample = 'fn main() { let s = "a\\"b"; /* x */ call(1.5e3, \'c\'); }\n# x\n<b class="y">é</b> `t${1}`';
  for (const lang of ['js', 'rust', 'python', 'go', 'sh', 'sql', 'json', 'toml', 'css', 'html', 'ruby', 'diff', 'constructor', 'none', '']) {
    assert.equal(plain(highlight(sample, lang)), sample, lang);
  }
});

/** Inputs that make careless parsers slow or large, each about a megabyte. */
const BOMBS = {
  'one line': 'x'.repeat(1e6),
  stars: '*a '.repeat(3e5),
  'double stars': '**a'.repeat(3e5),
  'mixed stars': '*a **b _c __d ~~e '.repeat(6e4),
  brackets: '['.repeat(1e6),
  'open links': '[](x'.repeat(2e5) + ')',
  'nested links': '[a]('.repeat(2e5) + ')'.repeat(2e5),
  images: '![a]('.repeat(2e5),
  ticks: Array.from({ length: 1400 }, (_, i) => '`'.repeat(i + 1)).join(' '),
  quotes: '>'.repeat(1e6),
  'quotes with spaces': '> '.repeat(5e5),
  'quoted lines': '> a\n'.repeat(2e5),
  lists: Array.from({ length: 1400 }, (_, i) => ' '.repeat(i) + '- x').join('\n'),
  'blank lists': '- a\n\n'.repeat(2e5),
  numbers: '1. '.repeat(3e5),
  fences: '```\n'.repeat(25e4) + '~~~',
  'fence of ticks': '`'.repeat(1e6),
  pipes: '|'.repeat(5e5) + '\n' + '|-'.repeat(25e4),
  tables: '|a\n|-\n'.repeat(15e4),
  headings: '#'.repeat(1e6),
  rules: '- '.repeat(5e5) + 'x',
  spaces: ' '.repeat(1e6) + 'x',
  'spaces in lines': (' '.repeat(999) + '\n').repeat(1000),
  addresses: 'https://'.repeat(12e4),
  'hidden characters': '\u202ea'.repeat(5e5),
  'one hidden character': '\u202e'.repeat(1e6),
  escapes: '\x1b[31mx'.repeat(16e4),
  'unfinished escapes': '\x1b['.repeat(5e5),
  'unfinished titles': '\x1b]0;'.repeat(25e4),
  'long numbers': '\x1b[' + '1;'.repeat(5e5) + 'm',
  'escaped quotes': "'\\'".repeat(3e5),
  'quotes of code': '"a\'b`c'.repeat(16e4),
  comments: '/*'.repeat(5e5),
  backslashes: '\\'.repeat(1e6),
  returns: '\r'.repeat(1e6),
};

test('hostile text is rendered in linear time, without loss, and as known elements', () => {
  const size = (pieces) => (typeof pieces === 'string' ? 1 : Array.isArray(pieces) ? pieces.reduce((sum, piece) => sum + size(piece), 0) : 1 + size(pieces.children ?? []));
  const modules = {
    markdown,
    'a fence': (text) => markdown('```js\n' + text),
    ansi,
    visible,
    highlight: (text) => highlight(text.slice(0, 59_000), 'html'),
    'highlight of code': (text) => highlight(text.slice(0, 59_000), 'python'),
    diff: (text) => parseDiff('--- a\n+++ b\n@@ -1,9 +1,9 @@\n' + text) && [],
    pieces: (text) => {
      const parser = new Ansi();
      const out = [];
      for (let at = 0; at < text.length; at += 1000) out.push(...parser.push(text.slice(at, at + 1000)));
      return out;
    },
  };
  for (const [name, bomb] of Object.entries(BOMBS)) {
    for (const [module, run] of Object.entries(modules)) {
      const tree = run(bomb);
      safe(tree);
      assert.ok(size(tree) < 2e6, `${module} of ${name}`);
    }
  }
});
