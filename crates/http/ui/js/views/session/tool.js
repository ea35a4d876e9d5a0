// The card of a tool call: what it is, how it went, and on demand its input, questions and output.

import { h, put } from '../../dom.js';
import { age, bytes, clock, duration, moment } from '../../format.js';
import { isDiff } from '../../text/diff.js';
import { approvalCard, decided } from './approval.js';
import { image, wholeOutput } from './blob.js';
import { diffView } from './diffview.js';
import { openQuestion, toolState } from './fold.js';
import { json, line, pane, prose } from './pane.js';

/** @typedef {import('./fold.js').Item} Item */

const MARKS = { proposed: '○', asks: '◆', running: '●', ok: '✓', error: '✕', denied: '⊘', interrupted: '◌', timeout: '◔' };
const WORDS = { proposed: 'proposed', asks: 'waits for you', running: 'running', ok: 'done', error: 'failed', denied: 'denied', interrupted: 'interrupted', timeout: 'timed out' };
/** Short results and small changes are shown without a click. */
const SHORT = 900;

/**
 * @param {Item} item
 * @param {import('./transcript.js').Desk} desk
 * @returns {HTMLElement}
 */
export function toolCard(item, desk) {
  const state = toolState(item);
  const name = item.proposed?.name ?? 'Tool';
  const body = h('div', { class: 'tool-body' });
  const card = h('details', { class: `tool t-${state}` },
    h('summary', null,
      h('span', { class: 'mark', title: WORDS[state] }, h('span', { 'aria-hidden': 'true' }, MARKS[state]), h('span', { class: 'hidden' }, WORDS[state])),
      h('span', { class: 'tool-name mono' }, line(name, 60)),
      h('span', { class: 'tool-title mono' }, line(titleOf(item, name), 400)),
      h('span', { class: 'tool-facts' }, facts(item, state))),
    body);
  const open = desk.opened.get(item.key) ?? byItself(item, state);
  let filled = false;
  const fill = () => {
    if (filled) return;
    filled = true;
    put(body, parts(item, name, state, desk));
  };
  if (open) {
    card.open = true;
    fill();
  }
  card.addEventListener('toggle', () => {
    if (card.open) fill();
    if (card.open !== open || desk.opened.has(item.key)) desk.opened.set(item.key, card.open);
  });
  return card;
}

/** @param {Item} item @param {string} name */
function titleOf(item, name) {
  const title = item.started?.title ?? openQuestion(item)?.asked.title;
  if (title) return title.startsWith(`${name} `) ? title.slice(name.length + 1) : title;
  const input = item.proposed?.input;
  if (input && typeof input === 'object') {
    const first = Object.values(input).find((value) => typeof value === 'string');
    if (first) return first;
  }
  return '';
}

/** @param {Item} item @param {ReturnType<typeof toolState>} state */
function facts(item, state) {
  const details = item.finished?.details ?? {};
  const parts = [];
  if (details.added !== undefined) parts.push(h('span', { class: 'plus' }, `+${details.added}`), h('span', { class: 'minus' }, `−${details.removed ?? 0}`));
  if (details.exit_code) parts.push(h('span', { class: 's-failed' }, `exit ${details.exit_code}`));
  if (details.signal) parts.push(h('span', { class: 's-failed' }, `signal ${details.signal}`));
  if (item.finished?.truncated) parts.push(h('span', { title: 'The model saw a part of the output' }, bytes(item.finished.truncated.bytes)));
  if (item.finished?.outcome_unknown) parts.push(h('span', { class: 's-failed' }, 'outcome unknown'));
  if (state === 'running' && item.started) parts.push(h('time', { class: 'age', data: { at: item.started.at } }, age(item.started.at)));
  else if (item.finished) parts.push(h('span', null, duration(item.finished.duration_ms ?? 0)));
  if (state !== 'ok' && state !== 'running') parts.unshift(h('span', { class: `word t-${state}` }, WORDS[state]));
  return parts;
}

/** @param {Item} item @param {string} state */
function byItself(item, state) {
  if (state === 'asks' || state === 'running') return true;
  if (item.child && (item.finished?.llm_text ?? '').length < SHORT) return true;
  if (!item.finished) return false;
  if (item.questions?.some(({ asked }) => asked.kind !== 'tool')) return true;
  const display = item.finished.display ?? '';
  if (isDiff(display)) return display.length < 4000;
  if (state === 'error' || state === 'timeout' || state === 'interrupted') return (item.finished.llm_text ?? '').length < SHORT * 2;
  return item.started?.effect === 'exec' && (item.finished.llm_text ?? '').length < SHORT;
}

/**
 * @param {Item} item
 * @param {string} name
 * @param {string} state
 * @param {import('./transcript.js').Desk} desk
 */
function parts(item, name, state, desk) {
  const { ctx } = desk;
  const out = [];
  const asks = openQuestion(item);
  if (asks) out.push(approvalCard(ctx, asks, { tool: name }));
  if (!asks) out.push(input(item, name));
  for (const question of item.questions ?? []) if (question.decided) out.push(decided(question));
  for (const hook of item.hooks ?? []) {
    if (hook.status === 'ok' && !hook.decision && !hook.reason && !hook.context) continue;
    out.push(h('p', { class: 'side' }, 'hook ', h('code', null, line(hook.hook, 80)), ` ${hook.event}: ${hook.decision ?? hook.status} `, line(hook.reason ?? hook.context ?? '', 500)));
  }
  if (item.child) {
    out.push(child(item));
    for (const asked of asksBelow(item, desk)) out.push(approvalCard(ctx, { id: asked.approval, asked: /** @type {any} */ ({ ...asked, at: asked.asked_at }) }, { tool: asked.tool ?? '', from: (asked.path ?? []).at(-1) ?? '' }));
  }
  if (state === 'running' && item.started) out.push(desk.outputOf(item).element);
  if (item.finished) out.push(...result(item, ctx));
  const verdict = item.verdicts?.at(-1);
  out.push(h('p', { class: 'tool-foot' },
    verdict && [h('span', { class: `v-${verdict.verdict}` }, verdict.verdict), ' by ', h('code', null, line(verdict.rule, 200)), ' · ', line(verdict.reason ?? '', 300)],
    item.started && h('span', { title: 'How the call was confined' }, ` · sandbox ${item.started.sandbox}`),
    h('a', { href: desk.eventLink(item.seq), class: 'seq' }, `events ${item.seq}–${item.last}`)));
  return out;
}

/** @param {Item} item @param {string} name */
function input(item, name) {
  const given = item.proposed?.input;
  if (given === undefined || given === null) return null;
  if (typeof given === 'object' && typeof given.command === 'string') {
    const { command, description: _, ...rest } = given;
    return [pane(command, { lang: 'sh', label: 'Command' }), Object.keys(rest).length > 0 && json(rest, 'Further arguments')];
  }
  if (item.child && typeof given === 'object' && typeof given.prompt === 'string') return h('div', { class: 'task' }, prose(given.prompt));
  // The change itself says more than the texts that it replaces.
  if (item.finished && isDiff(item.finished.display ?? '')) return null;
  if (typeof given === 'object' && typeof given.content === 'string' && typeof given.file_path === 'string') {
    return pane(given.content, { lang: given.file_path.split('.').pop() ?? '', label: 'New content' });
  }
  if (typeof given === 'object' && Object.keys(given).length === 1 && item.finished && name !== 'Task') return null;
  return typeof given === 'string' ? pane(given, { label: 'Input' }) : json(given, 'Input');
}

/**
 * Open questions of the sub-agent of a call, and of those below it.
 * @param {Item} item
 * @param {import('./transcript.js').Desk} desk
 */
function asksBelow(item, desk) {
  if (item.childEnd || item.imported) return [];
  const children = desk.running();
  const own = desk.asks.get(item.child?.child) ?? [];
  // Questions of deeper sub-agents stand at the first call that is still open.
  const deeper = children[0] === item ? [...desk.asks].filter(([id]) => !children.some((one) => one.child?.child === id)).flatMap(([, approvals]) => approvals) : [];
  return [...own, ...deeper];
}

/** @param {Item} item */
function child(item) {
  const begun = /** @type {any} */ (item.child);
  const end = item.childEnd;
  return h('p', { class: 'side' },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, '↳'), ' sub-agent ',
    h('a', { href: `#/session/${encodeURIComponent(begun.child)}/transcript` }, line(begun.purpose || 'without a name', 200)),
    end ? ` ended${end.reason ? `: ${end.reason.replaceAll('_', ' ')}` : ''} · ${end.spent?.steps ?? 0} steps · ${end.spent?.tokens ?? 0} tokens` : ' is working');
}

/** @param {Item} item @param {import('../../types.js').Context} ctx */
function result(item, ctx) {
  const { display, llm_text: text = '', media = [], truncated } = /** @type {any} */ (item.finished);
  const out = [];
  if (display && isDiff(display)) out.push(diffView(display));
  else if (display && display !== text && text === '') out.push(pane(display, { label: 'Result' }));
  if (text && !(display && isDiff(display) && item.finished?.status === 'ok')) out.push(pane(text, { label: 'Output' }));
  for (const part of media) out.push(image(ctx, part));
  if (truncated) out.push(h('p', { class: 'side' }, `The model saw a part of ${bytes(truncated.bytes)} in ${truncated.lines} lines. `, truncated.spill && wholeOutput(ctx, truncated.spill, truncated.bytes)));
  if (text === '' && !display) out.push(h('p', { class: 'side' }, 'No output.'));
  return out;
}

/** @param {string} at */
export const when = (at) => h('time', { class: 'at', datetime: at, title: moment(at) }, clock(at));
