// Where a person writes to the session.

import { h, put } from '../../dom.js';
import { age } from '../../format.js';
import { agentctl, copies, curl, fail, toast } from '../../ui.js';
import { visibleText } from '../../text/visible.js';
import { line } from './pane.js';

const REST = new Set(['idle', 'failed', 'paused', 'queued']);
/** @type {[string, string, string][]} */
const WAYS = [
  ['steer', 'Steer', 'Joins the running turn at its next model call'],
  ['queue', 'Queue', 'Starts the next turn after this one'],
  ['collect', 'Collect', 'Starts the next turn together with other messages that wait'],
  ['interrupt', 'Interrupt', 'Ends the running turn and starts the next one'],
];

export class Composer {
  /**
   * @param {import('../../types.js').Context} ctx
   * @param {import('./log.js').Log} log
   * @param {() => void} sent
   */
  constructor(ctx, log, sent) {
    this.ctx = ctx;
    this.log = log;
    this.sent = sent;
    this.text = h('textarea', { rows: 1, 'aria-label': 'Message to the session', placeholder: 'Message the agent…', on: {
      input: () => this.fit(),
      keydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          void this.send();
        }
      },
    } });
    this.way = h('select', { 'aria-label': 'How the message joins', hidden: true }, WAYS.map(([value, label, title]) => h('option', { value, title }, label)));
    this.button = h('button', { class: 'primary', title: 'Send (Enter)' }, 'Send');
    this.queue = h('ul', { class: 'queue', 'aria-label': 'Messages that wait to join', hidden: true });
    this.note = h('span', { class: 'dim small note-keys' }, 'Enter sends, Shift+Enter breaks the line, / starts a command');
    this.form = h('form', { class: 'composer-row', on: { submit: (/** @type {Event} */ event) => (event.preventDefault(), void this.send()) } }, this.text, this.way, this.button);
    this.element = h('div', { class: 'composer' }, this.queue, this.form,
      h('div', { class: 'composer-foot' }, this.note, h('span', { class: 'grow' }), copies(() => this.copied())));
    this.shown = '';
    this.unsubscribe = log.subscribe((change) => {
      if (change.summary) this.update();
    });
    this.update();
  }

  dispose() {
    this.unsubscribe();
  }

  focus() {
    this.text.focus();
  }

  fit() {
    this.text.style.height = 'auto';
    this.text.style.height = `${Math.min(220, this.text.scrollHeight + 2)}px`;
  }

  update() {
    const row = this.log.summary;
    if (!row) return;
    const closed = row.state === 'closed';
    this.element.hidden = !this.ctx.can('steer') || closed;
    this.way.hidden = REST.has(row.state);
    this.text.placeholder = REST.has(row.state) ? 'Message the agent…' : 'Steer the turn…';
    const key = (row.queue ?? []).map((/** @type {any} */ one) => one.input).join();
    if (key === this.shown) return;
    this.shown = key;
    this.queue.hidden = key === '';
    put(this.queue, row.queue.map((/** @type {any} */ one) => h('li', null,
      h('span', { class: 'tag' }, one.delivery), h('span', { class: 'grow cut' }, line(one.preview, 200)),
      h('span', { class: 'faint' }, age(one.at)),
      h('button', { type: 'button', class: 'quiet', on: { click: () => void this.cancel(one.input) } }, 'Take back'))));
  }

  delivery() {
    return this.way.hidden ? 'start' : this.way.value;
  }

  async send() {
    const content = this.text.value.trim();
    if (content === '' || this.button.disabled) return;
    this.button.disabled = true;
    try {
      const body = { content, delivery: this.delivery(), commands: true };
      const answer = await this.ctx.client.post(`${this.log.path}/inputs`, body, crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`);
      this.text.value = '';
      this.fit();
      if (answer.said) toast(visibleText(answer.said));
      for (const notice of answer.notices ?? []) toast(visibleText(String(notice.text ?? notice)));
      this.sent();
    } catch (error) {
      fail(error, 'The message was not sent');
    } finally {
      this.button.disabled = false;
      this.text.focus();
    }
  }

  /** @param {string} input */
  async cancel(input) {
    try {
      await this.ctx.client.remove(`${this.log.path}/inputs/${input}`);
      this.log.refresh();
    } catch (error) {
      fail(error, 'The message was not taken back');
    }
  }

  copied() {
    const id = this.log.session;
    const content = this.text.value.trim() || 'MESSAGE';
    const delivery = this.delivery();
    return {
      command: agentctl('send', ...(delivery === 'start' ? [] : [`--${delivery}`]), id, content),
      curl: curl('POST', `/sessions/${id}/inputs`, { content, delivery }),
    };
  }
}
