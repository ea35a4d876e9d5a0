// A question to a person, with the buttons that answer it.

import { h, nodes, put } from '../../dom.js';
import { age, moment, until } from '../../format.js';
import { isDiff } from '../../text/diff.js';
import { visible } from '../../text/visible.js';
import { agentctl, copies, curl, fail, toast } from '../../ui.js';
import { diffView } from './diffview.js';
import { line, pane, prose } from './pane.js';

/** @typedef {import('./fold.js').Question} Question */
/** @typedef {{scope: string, label: string, key: string, hint: string}} Scope */

/** @type {Scope[]} */
const SCOPES = [
  { scope: 'once', label: 'Allow once', key: 'y', hint: 'Only this call' },
  { scope: 'session', label: 'For this session', key: 's', hint: 'Similar calls of this session, too' },
  { scope: 'always', label: 'Always', key: 'a', hint: 'Similar calls of all sessions, from now on' },
];

/**
 * Sends an answer.
 * @param {import('../../types.js').Context} ctx
 * @param {string} approval
 * @param {Record<string, string>} body
 */
export async function decide(ctx, approval, body) {
  try {
    await ctx.client.post(`/approvals/${approval}/decision`, body);
    return true;
  } catch (error) {
    const { code } = /** @type {any} */ (error);
    if (code === 'approval_decided') toast('Another person has already decided this.');
    else fail(error, 'The answer was not taken');
    return false;
  }
}

/**
 * The card of an open question.
 * @param {import('../../types.js').Context} ctx
 * @param {Question} question
 * @param {{tool?: string, from?: string}} about `from`: the sub-agent that asks
 */
export function approvalCard(ctx, question, { tool = '', from = '' } = {}) {
  const asked = question.asked;
  const info = asked.about ?? {};
  const said = h('p', { class: 'sent', role: 'status' });
  const actions = h('div', { class: 'approval-actions' });
  const card = h('section', { class: 'approval', role: 'group', 'aria-label': `Question: ${asked.title.slice(0, 200)}`, data: { approval: question.id } },
    h('div', { class: 'approval-head' },
      h('span', { class: 'mark s-person', 'aria-hidden': 'true' }, '◆'),
      h('strong', { class: 'grow wrap' }, asked.kind === 'tool' ? [line(tool || 'A call', 60), from && [' of the sub-agent ', line(from, 80)], ' waits for your decision'] : line(asked.title)),
      h('span', { class: 'dim', title: moment(asked.at) }, `asked ${age(asked.at)} ago`, asked.expires_at && ` · expires ${until(asked.expires_at)}`)),
    h('dl', { class: 'about' },
      fact('where', info.directory, true),
      fact('why', info.reason ?? '', false, info.rule),
      fact('the model says', info.said),
      fact('runs code from', (info.watches ?? []).join(', '), true)),
    (info.risks ?? []).length > 0 && h('ul', { class: 'risks' }, info.risks.map((/** @type {string} */ risk) => h('li', null, line(risk, 500)))),
    detail(asked, tool),
    asked.grant && h('p', { class: 'dim small' }, 'A wider answer adds the rule ', h('code', null, line(asked.grant, 500))),
    actions, said);
  if (!ctx.can('approve')) {
    put(actions, h('span', { class: 'dim' }, 'This token may not answer: it lacks the scope approve.'));
    return card;
  }
  const send = async (/** @type {Record<string, string>} */ body) => {
    for (const button of actions.querySelectorAll('button')) button.disabled = true;
    put(said, 'Sending…');
    const good = await decide(ctx, question.id, body);
    put(said, good ? 'Sent.' : '');
    if (!good) for (const button of actions.querySelectorAll('button')) button.disabled = false;
  };
  put(actions, ...(asked.kind === 'question' || asked.kind === 'limit' ? choices(asked, send) : verdicts(asked, send)),
    h('span', { class: 'grow' }),
    copies(() => {
      const scoped = asked.kind === 'question' || asked.kind === 'limit' ? ['answer', question.id, asked.choices?.[0]?.id ?? 'TEXT'] : ['approve', question.id];
      const body = asked.kind === 'question' || asked.kind === 'limit' ? { decision: 'answer', answer: asked.choices?.[0]?.id ?? 'TEXT' } : { decision: 'allow' };
      return { command: agentctl(...scoped), curl: curl('POST', `/approvals/${question.id}/decision`, body) };
    }));
  return card;
}

/** @param {string} name @param {string|undefined} text @param {boolean} [mono] @param {string} [rule] */
function fact(name, text, mono = false, rule = '') {
  if (!text && !rule) return null;
  return h('div', null, h('dt', null, name), h('dd', { class: mono ? 'mono' : '' }, line(text ?? '', 500), rule && [' ', h('code', null, line(rule, 300))]));
}

/** Exactly what will happen. @param {any} asked @param {string} tool */
function detail(asked, tool) {
  const text = asked.detail ?? '';
  if (text === '' || text === asked.title) return null;
  if (asked.kind === 'plan') return h('div', { class: 'approval-plan' }, prose(text));
  if (asked.kind !== 'tool') return h('p', { class: 'wrap' }, nodes(visible(text.slice(0, 20_000))));
  if (isDiff(text)) return diffView(text);
  // A person approves what is shown, so nothing of it is folded away.
  return pane(text, { lang: tool.startsWith('Bash') ? 'sh' : 'plain', label: 'What will happen', whole: text.length < 100_000 });
}

/** @param {any} asked @param {(body: Record<string, string>) => void} send */
function verdicts(asked, send) {
  const reason = h('input', { type: 'text', placeholder: 'Reason for the model (optional)', 'aria-label': 'Reason for the denial', maxlength: 1000, autocomplete: 'off' });
  const deny = () => send(reason.value.trim() ? { decision: 'deny', message: reason.value.trim() } : { decision: 'deny' });
  const row = h('form', { class: 'deny', hidden: true, on: { submit: (/** @type {Event} */ event) => (event.preventDefault(), deny()) } },
    reason, h('button', { class: 'danger' }, 'Deny'));
  const allowed = SCOPES.filter(({ scope }) => scope === 'once' || (asked.scopes ?? []).includes(scope));
  return [
    ...allowed.map(({ scope, label, key, hint }) => h('button', {
      type: 'button', class: scope === 'once' ? 'primary' : '', title: `${hint} (${key})`, data: { answer: key },
      on: { click: () => send({ decision: 'allow', scope }) },
    }, label, h('kbd', { 'aria-hidden': 'true' }, key))),
    h('button', {
      type: 'button', class: 'danger', title: 'Deny, with a reason if you want (n)', data: { answer: 'n' }, 'aria-expanded': 'false',
      on: { click: (/** @type {Event} */ event) => {
        row.hidden = false;
        /** @type {HTMLElement} */ (event.currentTarget).hidden = true;
        reason.focus();
      } },
    }, 'Deny…', h('kbd', { 'aria-hidden': 'true' }, 'n')),
    row,
  ];
}

/** @param {any} asked @param {(body: Record<string, string>) => void} send */
function choices(asked, send) {
  const text = h('input', { type: 'text', placeholder: 'Answer in your own words', 'aria-label': 'Answer', autocomplete: 'off' });
  const form = h('form', { class: 'deny', on: { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.value.trim()) send({ decision: 'answer', answer: text.value.trim() });
  } } }, text, h('button', null, 'Answer'));
  return [
    ...(asked.choices ?? []).map((/** @type {{id: string, label: string}} */ { id, label }, /** @type {number} */ n) =>
      h('button', { type: 'button', class: n === 0 ? 'primary' : '', on: { click: () => send({ decision: 'answer', answer: id }) } }, line(label, 120))),
    asked.kind === 'question' && form,
  ];
}

/** A line about an answered question. @param {Question} question */
export function decided(question) {
  const event = question.decided;
  if (!event) return null;
  const words = /** @type {Record<string, string>} */ ({ allow: 'allowed', deny: 'denied', answer: 'answered', expired: 'expired without an answer', withdrawn: 'no longer needed' });
  const reach = event.decision === 'allow' && event.scope !== 'once' ? (event.scope === 'always' ? ' always' : ' for the session') : '';
  return h('p', { class: `decided d-${event.decision}`, title: moment(event.at) },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, event.decision === 'allow' || event.decision === 'answer' ? '✓' : '✕'),
    `${words[event.decision] ?? event.decision}${reach} by ${event.by}`,
    event.answer && [': ', line(event.answer, 500)], event.message && [': ', line(event.message, 500)],
    h('span', { class: 'faint' }, ` after ${age(question.asked.at, Date.parse(event.at))}`));
}
