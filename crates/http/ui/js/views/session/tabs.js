// The small tabs: changes, prompt, policy.

import { h, put } from '../../dom.js';
import { bytes, count, moment, plural, short } from '../../format.js';
import { agentctl, blank, copies, curl, failure, loading } from '../../ui.js';
import { diffView } from './diffview.js';
import { line, pane } from './pane.js';

/** @typedef {import('./log.js').Log} Log */
/** @typedef {import('../../types.js').Context} Context */

/** Event types after which the changes are read again. */
const CHANGING = new Set(['tool.finished', 'undo.applied', 'session.rewound', 'subagent.finished']);

/**
 * Reads and shows something, again whenever asked.
 * @param {HTMLElement} root
 * @param {() => Promise<any>} read
 * @param {(answer: any) => import('../../dom.js').Child} show
 */
function reader(root, read, show) {
  let turn = 0;
  const again = async () => {
    const mine = ++turn;
    if (!root.hasChildNodes()) put(root, loading());
    try {
      const answer = await read();
      if (mine !== turn) return;
      const top = root.scrollTop;
      put(root, show(answer));
      root.scrollTop = top;
    } catch (error) {
      if (mine === turn && /** @type {any} */ (error).name !== 'AbortError') put(root, failure(error, () => void again()));
    }
  };
  void again();
  return again;
}

/** @param {HTMLElement} root @param {Context} ctx @param {Log} log @param {import('./actions.js').Actions} actions */
export function changes(root, ctx, log, actions) {
  let split = globalThis.innerWidth > 1100;
  let turn = '';
  /** @type {any} */
  let last = null;
  const show = (/** @type {any} */ answer) => {
    last = answer;
    const { files, stays = [] } = answer;
    const sum = files.reduce((/** @type {number[]} */ [added, removed], /** @type {any} */ file) => [added + file.added, removed + file.removed], [0, 0]);
    const toggle = (/** @type {string} */ label, /** @type {boolean} */ on, /** @type {() => void} */ run) =>
      h('button', { type: 'button', 'aria-pressed': String(on), on: { click: run } }, label);
    return [
      h('div', { class: 'toolbar' },
        h('strong', null, `${files.length} ${files.length === 1 ? 'file' : 'files'}`), h('span', { class: 'plus' }, `+${sum[0]}`), h('span', { class: 'minus' }, `−${sum[1]}`),
        h('span', { class: 'grow' }),
        toggle('Last turn', turn === 'last', () => { turn = turn === 'last' ? '' : 'last'; void again(); }),
        h('span', { class: 'segments', role: 'group', 'aria-label': 'Layout' },
          toggle('Unified', !split, () => { split = false; put(root, show(last)); }),
          toggle('Side by side', split, () => { split = true; put(root, show(last)); })),
        ctx.can('steer') && files.length > 0 && h('button', { type: 'button', on: { click: async () => { if (await actions.undo(turn ? { turn } : {})) void again(); } } }, turn ? 'Undo this turn…' : 'Undo last change…'),
        copies(() => ({ command: agentctl('diff', ...(turn ? ['--turn', turn] : []), log.session), curl: curl('GET', `/sessions/${log.session}/diff${turn ? `?turn=${turn}` : ''}`) }))),
      files.length === 0 && blank(turn ? 'The last turn changed no files.' : 'The file tools of this session changed nothing.', 'Changes that commands make are not listed here.'),
      files.map((/** @type {any} */ file) => h('details', { class: 'file', open: files.length <= 12 },
        h('summary', null, h('span', { class: `tag f-${file.status}` }, file.status), h('span', { class: 'mono grow cut' }, line(file.path, 300)),
          h('span', { class: 'plus' }, `+${file.added}`), h('span', { class: 'minus' }, `−${file.removed}`),
          (file.by ?? []).map((/** @type {string} */ id) => h('a', { class: 'tag', href: `#/session/${id}/changes` }, short(id)))),
        file.diff ? diffView(file.diff, { split, heads: false, path: file.path }) : h('p', { class: 'dim' }, 'There is no text to compare.'))),
      stays.length > 0 && h('section', { class: 'stays' }, h('h2', null, 'Effects that this does not cover'), h('ul', null, stays.slice(0, 100).map((/** @type {string} */ one) => h('li', { class: 'mono' }, line(one, 300))))),
    ];
  };
  const again = reader(root, () => ctx.client.get(`${log.path}/diff`, { turn }, log.stop.signal), show);
  let timer = 0;
  const unsubscribe = log.subscribe(({ items }) => {
    if (!items || timer || !CHANGING.has(log.events.at(-1)?.type ?? '')) return;
    timer = window.setTimeout(() => {
      timer = 0;
      void again();
    }, 800);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
}

/** @param {HTMLElement} root @param {Context} ctx @param {Log} log */
export function prompt(root, ctx, log) {
  reader(root, () => ctx.client.get(`${log.path}/prompt`, {}, log.stop.signal), ({ sources, text }) => [
    h('div', { class: 'toolbar' }, h('strong', null, `${bytes(new Blob([text]).size)}`), h('span', { class: 'dim' }, 'The same for the whole life of the session'), h('span', { class: 'grow' }),
      copies(() => ({ command: agentctl('show', '--prompt', log.session), curl: curl('GET', `/sessions/${log.session}/prompt`) }))),
    h('div', { class: 'scroll-x' }, h('table', { class: 'plain' },
      h('thead', null, h('tr', null, h('th', null, 'source'), h('th', { class: 'num' }, 'bytes'), h('th', null, 'note'))),
      h('tbody', null, sources.map((/** @type {any} */ source) => h('tr', null,
        h('td', { class: 'mono wrap' }, line(source.name, 300)), h('td', { class: 'num' }, count(source.bytes)),
        h('td', { class: 'dim' }, source.loaded ? '' : 'left out ', source.note && line(source.note, 300))))))),
    pane(text, { label: 'System prompt', lang: 'md', whole: text.length < 60_000 }),
  ]);
  return () => {};
}

/** @param {HTMLElement} root @param {Log} log */
export function policy(root, log) {
  let only = '';
  const draw = () => {
    const { items } = log.fold;
    const judged = items.filter((item) => item.kind === 'tool' && (item.verdicts?.length || item.questions?.length));
    /** @type {Map<string, {count: number, verdict: string, rule: string}>} */
    const rules = new Map();
    for (const item of judged) {
      for (const { verdict, rule } of item.verdicts ?? []) {
        const key = `${verdict} ${rule}`;
        const row = rules.get(key) ?? { count: 0, verdict, rule };
        row.count += 1;
        rules.set(key, row);
      }
    }
    const created = log.events.find((event) => event.type === 'session.created');
    const shown = judged.filter((item) => !only || item.verdicts?.some(({ verdict, rule }) => `${verdict} ${rule}` === only)).reverse();
    put(root,
      h('div', { class: 'toolbar' }, h('strong', null, plural(judged.length, 'judged call')), h('span', { class: 'dim' }, `mode ${log.summary?.mode ?? ''}`), h('span', { class: 'grow' }),
        copies(() => ({ command: agentctl('rules', 'list'), curl: curl('GET', '/rules') }))),
      (created?.rules ?? []).length > 0 && h('p', null, 'Rules of this session: ', created?.rules.map((/** @type {string} */ rule) => [h('code', null, line(rule, 300)), ' '])),
      rules.size > 0 && h('div', { class: 'rule-filter', role: 'group', 'aria-label': 'Filter by rule' }, [...rules].sort((a, b) => b[1].count - a[1].count).slice(0, 40).map(([key, row]) =>
        h('button', { type: 'button', 'aria-pressed': String(only === key), on: { click: () => { only = only === key ? '' : key; draw(); } } },
          h('span', { class: `v-${row.verdict}` }, row.verdict), h('code', null, line(row.rule, 80)), h('span', { class: 'faint' }, `×${row.count}`)))),
      judged.length === 0 ? blank('No call has been judged yet.', 'Each call of a tool gets a verdict: allow, ask or deny, with the rule that decided.')
        : h('div', { class: 'scroll-x', tabindex: 0, role: 'group', 'aria-label': 'Verdicts' }, h('table', { class: 'plain' },
          h('thead', null, h('tr', null, ['event', 'call', 'verdict', 'rule', 'why', 'person'].map((name) => h('th', null, name)))),
          h('tbody', null, shown.slice(0, 500).map(verdictRow)))),
      shown.length > 500 && h('p', { class: 'dim' }, `The newest 500 of ${shown.length}. The Events tab has them all.`));
  };
  draw();
  let timer = 0;
  const unsubscribe = log.subscribe(({ items, all }) => {
    if ((!items && !all) || timer) return;
    timer = window.setTimeout(() => {
      timer = 0;
      if (!root.contains(document.activeElement)) draw();
    }, 600);
  });
  return () => {
    clearTimeout(timer);
    unsubscribe();
  };
  /** @param {import('./fold.js').Item} item */
  function verdictRow(item) {
    const verdict = item.verdicts?.at(-1);
    const question = item.questions?.at(-1);
    const title = item.started?.title ?? question?.asked.title ?? item.proposed?.name ?? '';
    return h('tr', null,
      h('td', { class: 'num' }, h('a', { href: `#/session/${log.session}/transcript?at=${item.seq}`, title: moment(item.event.at) }, `#${item.seq}`)),
      h('td', { class: 'mono wrap' }, line(title, 160)),
      h('td', null, verdict && h('span', { class: `v-${verdict.verdict}` }, verdict.verdict)),
      h('td', null, verdict && h('code', null, line(verdict.rule, 160))),
      h('td', { class: 'dim wrap' }, line(verdict?.reason ?? question?.asked.about?.reason ?? '', 300)),
      h('td', { class: 'wrap' }, question && (question.decided ? `${question.decided.decision}${question.decided.scope !== 'once' ? ` (${question.decided.scope})` : ''} by ${question.decided.by}` : 'waits')));
  }
}
