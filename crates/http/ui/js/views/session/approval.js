// A question to a person, with the buttons that answer it.

import { h, put } from '../../dom.js';
import { age, moment, until } from '../../format.js';
import { Shown } from '../../question.js';
import { agentctl, copies, curl, fail, toast } from '../../ui.js';
import { line } from './pane.js';

/** @typedef {import('./fold.js').Question} Question */
/** @typedef {{scope: string, label: string, key: string, hint: string}} Scope */

/** @type {Scope[]} */
const SCOPES = [
  { scope: 'once', label: 'Allow once', key: 'y', hint: 'Only this call' },
  { scope: 'session', label: 'For this session', key: 's', hint: 'The same call of this session, too' },
  { scope: 'always', label: 'Always in this project', key: 'a', hint: 'The same call of all sessions of this project, while its files stay the same' },
  { scope: 'everywhere', label: 'Everywhere', key: 'e', hint: 'The same call in every directory, whatever its files contain then' },
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
    return 'good';
  } catch (error) {
    const { code } = /** @type {any} */ (error);
    if (code === 'approval_decided') toast('Another person has already decided this.');
    else fail(error, 'The answer was not taken');
    return code === 'question_changed' ? 'again' : '';
  }
}

/** The cards by session view and approval: drawn again, a card keeps what a person has seen and written. @type {WeakMap<object, Map<string, {card: HTMLElement, shown: Shown}>>} */
const made = new WeakMap();

/**
 * The card of an open question.
 * @param {import('../../types.js').Context} ctx
 * @param {Question} question
 * @param {{tool?: string, from?: string}} about `from`: the sub-agent that asks
 */
export function approvalCard(ctx, question, about = {}) {
  const cards = made.get(ctx) ?? new Map();
  made.set(ctx, cards);
  const found = cards.get(question.id);
  if (found) {
    found.shown.listen();
    return found.card;
  }
  const shown = new Shown(ctx.client, { change: () => enable() });
  const { card, enable } = make(ctx, question, about, shown);
  cards.set(question.id, { card, shown });
  void shown.show([question.id]);
  return card;
}

/**
 * @param {import('../../types.js').Context} ctx
 * @param {Question} question
 * @param {{tool?: string, from?: string}} about
 * @param {Shown} shown
 */
function make(ctx, question, { tool = '', from = '' }, shown) {
  const asked = question.asked;
  const said = h('p', { class: 'sent', role: 'status' });
  const actions = h('div', { class: 'approval-actions' });
  const card = h('section', { class: 'approval', role: 'group', 'aria-label': `Question: ${asked.title.slice(0, 200)}`, data: { approval: question.id } },
    h('div', { class: 'approval-head' },
      h('span', { class: 'mark s-person', 'aria-hidden': 'true' }, '◆'),
      h('strong', { class: 'grow wrap' }, asked.kind === 'tool' ? [line(tool || 'A call', 60), from && [' of the sub-agent ', line(from, 80)], ' waits for your decision'] : line(asked.title)),
      h('span', { class: 'dim', title: moment(asked.at) }, `asked ${age(asked.at)} ago`, asked.expires_at && ` · expires ${until(asked.expires_at)}`)),
    shown.element, actions, said);
  const may = ctx.can('approve');
  let sending = false;
  /** Answers that accept something work once the end was seen. */
  function enable() {
    if (!may) return;
    for (const button of actions.querySelectorAll('button')) button.disabled = sending || (!shown.ready && 'accepts' in button.dataset);
    if (!sending) put(said, shown.ready || shown.ended ? '' : 'Scroll through the whole question to answer; “Deny” counts at any time.');
  }
  if (!may) {
    put(actions, h('span', { class: 'dim' }, 'This token may not answer: it lacks the scope approve.'));
    return { card, enable };
  }
  const send = async (/** @type {Record<string, string>} */ body) => {
    const proof = shown.proof(question.id, body);
    sending = true;
    enable();
    put(said, 'Sending…');
    const outcome = await decide(ctx, question.id, { ...body, ...proof });
    sending = outcome === 'good';
    put(said, sending ? 'Sent.' : '');
    if (outcome === 'again') void shown.show([question.id], true);
    if (sending) shown.dispose();
    enable();
  };
  put(actions, ...(asked.kind === 'question' || asked.kind === 'limit' ? choices(asked, send) : verdicts(asked, send)),
    h('span', { class: 'grow' }),
    copies(() => {
      const scoped = asked.kind === 'question' || asked.kind === 'limit' ? ['answer', question.id, asked.choices?.[0]?.id ?? 'TEXT'] : ['approve', question.id];
      const body = asked.kind === 'question' || asked.kind === 'limit' ? { decision: 'answer', answer: asked.choices?.[0]?.id ?? 'TEXT' } : { decision: 'allow' };
      return { command: agentctl(...scoped), curl: curl('POST', `/approvals/${question.id}/decision`, { ...body, policy: true }) };
    }));
  enable();
  return { card, enable };
}

/** @param {any} asked @param {(body: Record<string, string>) => void} send */
function verdicts(asked, send) {
  const reason = h('input', { type: 'text', placeholder: 'Reason for the model (optional)', 'aria-label': 'Reason for the denial', maxlength: 1000, autocomplete: 'off' });
  const deny = () => send(reason.value.trim() ? { decision: 'deny', message: reason.value.trim() } : { decision: 'deny' });
  const row = h('form', { class: 'deny', hidden: true, on: { submit: (/** @type {Event} */ event) => (event.preventDefault(), deny()) } },
    reason, h('button', { class: 'danger' }, 'Deny'));
  const allowed = SCOPES.filter(({ scope }) => scope === 'once' || offers(asked, scope));
  return [
    ...allowed.map(({ scope, label, key, hint }) => h('button', {
      type: 'button', class: scope === 'once' ? 'primary' : '', title: `${hint} (${key})`, data: { answer: key, accepts: '' },
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
  } } }, text, h('button', { data: { accepts: '' } }, 'Answer'));
  return [
    ...(asked.choices ?? []).map((/** @type {{id: string, label: string}} */ { id, label }, /** @type {number} */ n) =>
      h('button', { type: 'button', class: n === 0 ? 'primary' : '', data: { accepts: '' }, on: { click: () => send({ decision: 'answer', answer: id }) } }, line(label, 120))),
    asked.kind === 'question' && form,
  ];
}

/**
 * Whether an allow may have this scope. A question of an earlier version has no reach, so only the widest answer is honest.
 * @param {{scopes?: string[], grant?: string, about?: Record<string, any>}} asked
 * @param {string} scope
 */
export function offers({ scopes = [], grant, about }, scope) {
  if (scope === 'once') return scopes.includes('once');
  if (scope === 'everywhere') return scopes.includes('always') && Boolean(grant);
  return scopes.includes(scope) && Boolean(grant) && Boolean(about?.reach);
}

/** A line about an answered question. @param {Question} question */
export function decided(question) {
  const event = question.decided;
  if (!event) return null;
  const words = /** @type {Record<string, string>} */ ({ allow: 'allowed', deny: 'denied', answer: 'answered', expired: 'expired without an answer', withdrawn: 'no longer needed' });
  const reach = event.decision === 'allow' && event.scope !== 'once' ? (event.scope === 'always' ? (event.everywhere ? ' always, everywhere' : ' always') : ' for the session') : '';
  return h('p', { class: `decided d-${event.decision}`, title: moment(event.at) },
    h('span', { class: 'mark', 'aria-hidden': 'true' }, event.decision === 'allow' || event.decision === 'answer' ? '✓' : '✕'),
    `${words[event.decision] ?? event.decision}${reach} by ${event.by}`,
    event.basis === 'policy' && ', by policy',
    event.answer && [': ', line(event.answer, 500)], event.message && [': ', line(event.message, 500)],
    h('span', { class: 'faint' }, ` after ${age(question.asked.at, Date.parse(event.at))}`));
}
