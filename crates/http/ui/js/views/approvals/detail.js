// One question with all that a person needs to answer it. Our own words and those of the model are kept apart.

import { h, nodes } from '../../dom.js';
import { localTimes, short } from '../../format.js';
import { changedParts, isDiff, parseDiff } from '../../text/diff.js';
import { highlight } from '../../text/highlight.js';
import { markdown } from '../../text/markdown.js';
import { oneLine, visible, visibleText } from '../../text/visible.js';
import { ageOf } from '../../ui.js';

/** @typedef {import('../../types.js').Approval} Approval */

/** Lines of a change that are shown at first. */
const MOST_LINES = 1500;

/** Who wants what. @param {Approval} open */
export function heading({ kind, tool }) {
  const name = oneLine(tool ?? 'the agent', 60);
  if (kind === 'question') return 'The agent asks you a question';
  if (kind === 'plan') return 'The agent asks you to approve its plan';
  if (kind === 'limit') return 'A limit is reached';
  if (tool === 'Bash') return 'Bash wants to run a command';
  return `${name} wants to run`;
}

/** The line of the list, without the tool's name, which stands before it. @param {Approval} open */
export const titleOf = ({ title, tool }) => oneLine(tool && title.startsWith(`${tool} `) ? title.slice(tool.length + 1) : title, 200);

/**
 * A unified diff as a table of lines.
 * @param {string} text
 */
export function change(text) {
  const files = parseDiff(text);
  let left = MOST_LINES;
  return h('div', { class: 'diff', role: 'region', 'aria-label': 'The change', tabindex: 0 }, files.map((file) => [
    h('div', { class: 'diff-file' }, visibleText(file.to || file.from)),
    file.hunks.map((hunk) => {
      const parts = changedParts(hunk.rows);
      return [h('div', { class: 'diff-hunk' }, visibleText(hunk.head)), hunk.rows.slice(0, Math.max(0, left)).map((row) => {
        left -= 1;
        const part = parts.get(row);
        const kind = row.kind === '+' ? 'add' : row.kind === '-' ? 'del' : '';
        const content = part
          ? [nodes(visible(row.text.slice(0, part[0]))), h('b', null, nodes(visible(row.text.slice(part[0], part[1])))), nodes(visible(row.text.slice(part[1])))]
          : nodes(visible(row.text));
        return h('div', { class: `diff-line ${kind}` }, h('span', { class: 'diff-number', 'aria-hidden': 'true' }, row.old || ''), h('span', { class: 'diff-number', 'aria-hidden': 'true' }, row.now || ''),
          h('span', { class: 'diff-sign' }, row.kind), h('span', { class: 'diff-text' }, content));
      })];
    }),
  ]), left <= 0 && h('div', { class: 'diff-hunk' }, 'The rest is not shown here; `agentctl approvals` shows all of it.'));
}

/** What exactly will happen. @param {Approval} open */
function content({ kind, tool, detail }) {
  if (kind === 'plan') return h('div', { class: 'words' }, nodes(markdown(detail)));
  if (kind === 'question') return h('div', { class: 'words' }, nodes(markdown(detail)));
  if (isDiff(detail)) return change(detail);
  return h('pre', { class: 'code big', tabindex: 0 }, h('code', null, nodes(highlight(detail, tool === 'Bash' ? 'bash' : 'json'))));
}

/** @param {string} label @param {...import('../../dom.js').Child} value */
const fact = (label, ...value) => h('div', null, h('dt', null, label), h('dd', null, value));

/**
 * @param {Approval} open
 * @param {import('../../types.js').Row|undefined} row its session
 */
export function detail(open, row) {
  const about = open.about ?? {};
  /** @type {string[]} */
  const risks = about.risks ?? [];
  const names = { tool: open.tool === 'Bash' ? 'The command' : isDiff(open.detail) ? 'The change' : 'The call', plan: 'The plan, in the model’s words', question: 'The question, in the model’s words', limit: 'The limit' };
  const title = /** @type {Record<string, string>} */ (names)[open.kind] ?? 'What will happen';
  return [
    risks.length > 0 && h('ul', { class: 'risks', 'aria-label': 'Risks' }, risks.map((risk) => h('li', null, visibleText(risk)))),
    h('h3', null, title),
    content(open),
    h('dl', { class: 'facts' },
      fact('Session', h('a', { href: `#/session/${open.session}` }, oneLine(row?.name ?? '', 100) || short(open.session)), row && h('span', { class: 'dim' }, ` ${oneLine(row.model, 40)}, ${row.mode}`)),
      (open.path?.length ?? 0) > 1 && fact('Sub-agent of', (open.path ?? []).map((name) => oneLine(name, 60)).join(' › ')),
      about.directory && fact('Where', h('code', null, visibleText(about.directory))),
      (about.reason || about.rule) && fact('Why you are asked', visibleText(about.reason ?? ''), about.rule && h('span', { class: 'rule' }, 'rule ', h('code', null, visibleText(about.rule)))),
      about.said && fact('The model says', h('q', { class: 'said-by-model' }, visibleText(about.said))),
      open.grant && fact('Session, always', 'would also allow ', h('code', null, visibleText(open.grant))),
      (about.watches?.length ?? 0) > 0 && fact('Bound to', 'these files as they were when it asked; a change before the call runs voids the answer: ', about.watches.map((/** @type {string} */ path) => h('code', { class: 'path' }, visibleText(path)))),
      open.input && fact('SHA-256', h('code', null, open.input.slice(0, 16)), h('span', { class: 'dim' }, ` of ${new TextEncoder().encode(open.detail).length} bytes in ${open.detail.split('\n').length} lines`)),
      fact('Asked', ageOf(open.asked_at), ' ago', open.level ? `, unanswered ${open.level} times` : '', open.expires_at ? `; expires at ${localTimes(open.expires_at)}` : '')),
  ];
}
