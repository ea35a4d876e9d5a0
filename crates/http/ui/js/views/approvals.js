// The inbox: all questions of the fleet, and their answers by mouse or key.

import { h, keyed, put, say } from '../dom.js';
import { plural, short } from '../format.js';
import { notify } from '../notify.js';
import { oneLine } from '../text/visible.js';
import { NOT_YET, Shown } from '../question.js';
import { agentctl, ageOf, ask, blank, copies, curl, fail, loading, toast } from '../ui.js';
import { origin, titleOf } from './approvals/detail.js';
import { standingRules } from './approvals/rules.js';
import { offers } from './session/approval.js';

/** After the question on display has changed by itself, keys are ignored for this long, so that a person never allows a question that they did not read. */
const REST = 900;

/** How often the question on display is compared with the files as they are now. */
const COMPARE = 5_000;

/** @typedef {import('../types.js').Approval} Approval */

/** @type {import('../types.js').View} */
export const approvals = {
  title: 'Approvals',
  mount(root, ctx, params) {
    const { store } = ctx;
    const may = ctx.can('approve');
    let active = params.path[0] ?? '';
    let drawn = '';
    let changedAt = 0;
    let alike = false;

    const list = h('ul', { class: 'inbox', 'aria-label': 'Open approvals' });
    const shown = new Shown(ctx.client, { change: () => enable(), cover: () => pane.querySelector('.answers') });
    const pane = h('section', { class: 'question', 'aria-label': 'The question' });
    const rest = h('div', { class: 'nothing' });
    const notifying = h('button', { type: 'button', title: 'A browser notification for each new question while this page is not in sight', on: { click: () => void switchNotify() } }, 'Notify me');
    const number = h('span', { class: 'dim' });
    const columns = h('div', { class: 'columns' }, h('div', { class: 'list' }, list), pane);
    root.append(h('header', { class: 'view-head' }, h('h1', null, 'Approvals'), number, h('span', { class: 'grow' }), notify.possible() && notifying), columns, rest, standingRules(ctx));

    async function switchNotify() {
      const on = await notify.toggle();
      if (!on && Notification.permission === 'denied') toast('The browser does not allow notifications.', { hint: 'Its settings for this page can change that.', kind: 'bad' });
      notifying.setAttribute('aria-pressed', String(on));
    }
    notifying.setAttribute('aria-pressed', String(notify.on()));

    const find = (/** @type {string} */ id) => store.approvals.find(({ approval }) => approval === id);
    const same = (/** @type {Approval} */ one) => store.approvals.filter((other) => other.approval !== one.approval && one.about?.likeness && other.about?.likeness === one.about.likeness);
    const alikes = (/** @type {Approval} */ one) => (same(one).length ? same(one) : elsewhere(one));
    const elsewhere = (/** @type {Approval} */ one) => store.approvals.filter((other) => other.approval !== one.approval && one.input && other.input === one.input && other.about?.likeness !== one.about?.likeness);

    function draw() {
      const open = store.approvals;
      say(number, open.length ? `${open.length} open, the oldest first` : '');
      columns.hidden = open.length === 0;
      rest.hidden = open.length > 0;
      if (!open.length) put(rest, store.loaded ? blank('Nothing waits for you.', 'Questions of all sessions appear here at once.', ctx.can('steer') && ['In a terminal: ', h('code', null, 'agentctl approvals')]) : loading());
      if (!find(active)) {
        if (drawn && active) changedAt = Date.now();
        active = open[0]?.approval ?? '';
      }
      keyed(list, open, {
        key: ({ approval }) => approval,
        create: (one) => h('li', null, h('button', { type: 'button', class: 'item', on: { click: () => choose(one.approval) } },
          h('span', { class: 'item-top' }, h('strong', null, oneLine(one.tool ?? one.kind, 40)), h('span', { class: 'item-title' }, titleOf(one)), ageOf(one.asked_at)),
          h('span', { class: 'item-where' }, (one.about?.risks?.length ?? 0) > 0 && h('span', { class: 'risk-mark', title: 'It has risks' }, '▲ '), oneLine(store.rows.get(one.session)?.name ?? short(one.session), 80)))),
        update: (element, one) => {
          const where = element.querySelector('.item-where')?.lastChild;
          if (where) say(where, oneLine(store.rows.get(one.session)?.name ?? short(one.session), 80));
        },
      });
      for (const item of /** @type {NodeListOf<HTMLElement>} */ (list.querySelectorAll('li'))) {
        const button = item.firstElementChild;
        if (item.dataset.key === active) button?.setAttribute('aria-current', 'true');
        else button?.removeAttribute('aria-current');
      }
      const one = find(active);
      if (!drawn.startsWith(active)) alike = false;
      const name = one ? store.rows.get(one.session)?.name : '';
      const key = one ? `${active} ${name} ${same(one).length} ${elsewhere(one).length} ${one.level ?? 0} ${alike}` : '';
      if (key === drawn) return;
      drawn = key;
      if (one) {
        put(pane, question(one));
        void shown.show([one.approval, ...(alike ? alikes(one) : []).map(({ approval }) => approval)]);
        enable();
      } else put(pane);
      void compare();
    }

    /** Says what has changed since the question on display was asked: an answer to it would be void. */
    async function compare() {
      const one = find(active);
      const place = pane.querySelector('.since');
      if (!one || !place || document.hidden) return;
      try {
        const { changes } = await ctx.client.get(`/approvals/${one.approval}/changes`);
        if (!place.isConnected || !changes.length) return;
        put(place, h('p', null, h('strong', null, 'Changed since it was asked'), ': ', changes.map((/** @type {string} */ change, /** @type {number} */ n) => [n > 0 && ', ', h('code', null, oneLine(change, 200))]), '. “Allow” is void then; the model is told and may ask again.'));
      } catch {
        // The question may be answered already.
      }
    }
    const comparing = setInterval(() => void compare(), COMPARE);

    /** @param {Approval} one */
    function question(one) {
      const twins = same(one);
      const others = elsewhere(one);
      const tick = h('input', { type: 'checkbox', on: { change: () => {
        alike = tick.checked;
        // What is answered is shown, so the others appear below this one.
        draw();
        /** @type {HTMLElement|null} */ (pane.querySelector('.alike input'))?.focus();
      } } });
      tick.checked = alike;
      const more = others.length && !twins.length ? others : twins;
      return [
        h('div', { class: 'question-head' }, h('h2', null, 'The question'), h('span', { class: 'grow' }), copies(() => ({
          command: agentctl(one.kind === 'tool' || one.kind === 'plan' ? 'approve' : 'approvals', short(one.approval)),
          curl: curl('POST', `/approvals/${one.approval}/decision`, { decision: 'allow', policy: true }),
        }))),
        h('div', { class: 'since', role: 'status' }),
        h('div', { class: 'question-body' }, origin(one, store.rows.get(one.session)), shown.element),
        may && h('div', { class: 'answers' },
          more.length > 0 && h('label', { class: 'alike' }, tick, twins.length ? `also ${plural(twins.length, 'question')} that ask the same: call, directory and files` : `also ${plural(others.length, 'question')} about the same call in other directories`),
          buttons(one), h('p', { class: 'dim unread', role: 'status' })),
        !may && h('p', { class: 'dim' }, 'Your token may look, not answer: it lacks the scope ', h('code', null, 'approve'), '.'),
      ];
    }

    /** @param {Approval} one */
    function buttons(one) {
      if (one.kind === 'question' || one.kind === 'limit') {
        return h('div', { class: 'answer-row' }, one.choices.map(({ id, label }, at) =>
          h('button', { type: 'button', class: at === 0 ? 'primary' : '', data: { accepts: '' }, on: { click: () => void decide(one, { decision: 'answer', answer: id }) } }, oneLine(label, 80))),
        one.kind === 'question' && h('button', { type: 'button', data: { accepts: '' }, on: { click: () => void reply(one) } }, 'Answer…'),
        one.kind === 'question' && h('button', { type: 'button', class: 'danger', on: { click: () => void deny(one) } }, 'No answer'));
      }
      const scope = (/** @type {string} */ name) => offers(one, name);
      return h('div', { class: 'answer-row' },
        h('button', { type: 'button', class: 'primary', data: { accepts: '' }, on: { click: () => void allow(one, 'once') } }, 'Allow once', h('kbd', null, 'y')),
        scope('session') && h('button', { type: 'button', data: { accepts: '' }, on: { click: () => void allow(one, 'session') } }, 'For the session', h('kbd', null, 's')),
        scope('always') && h('button', { type: 'button', data: { accepts: '' }, on: { click: () => void allow(one, 'always') } }, 'Always in this project', h('kbd', null, 'a')),
        scope('everywhere') && h('button', { type: 'button', data: { accepts: '' }, on: { click: () => void allow(one, 'everywhere') } }, 'Everywhere', h('kbd', null, 'e')),
        h('button', { type: 'button', class: 'danger', on: { click: () => void deny(one) } }, 'Deny…', h('kbd', null, 'n')));
    }

    /** Answers that accept something work once the end was seen. */
    function enable() {
      for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (pane.querySelectorAll('button[data-accepts]'))) button.disabled = !shown.ready;
      const told = pane.querySelector('.unread');
      if (told) say(told, shown.ready || shown.ended ? '' : 'Scroll through the whole question to answer; “Deny” counts at any time.');
    }

    /** @param {Approval} one @param {string} scope */
    const allow = (one, scope) => decide(one, { decision: 'allow', scope });

    /** @param {Approval} one */
    async function deny(one) {
      const message = await ask({ title: one.kind === 'question' ? 'Give no answer?' : 'Deny this?', label: 'Why (the model reads it)', action: 'Deny', hint: 'May stay empty.' });
      if (message !== null) await decide(one, message ? { decision: 'deny', message } : { decision: 'deny' });
    }

    /** @param {Approval} one */
    async function reply(one) {
      const answer = await ask({ title: 'Answer the question', label: 'Your answer', action: 'Answer', required: true });
      if (answer) await decide(one, { decision: 'answer', answer });
    }

    /** @param {Approval} one @param {Record<string, string>} body */
    async function decide(one, body) {
      if (body.decision !== 'deny' && !shown.ready) return void toast(NOT_YET);
      const all = (alike ? [one, ...alikes(one)] : [one]).filter(({ approval }) => body.decision === 'deny' || shown.hashes.has(approval));
      const at = store.approvals.findIndex(({ approval }) => approval === one.approval);
      const results = await Promise.allSettled(all.map(({ approval }) => ctx.client.post(`/approvals/${approval}/decision`, { ...body, ...shown.proof(approval, body) })));
      const refused = results.filter((result) => result.status === 'rejected');
      const done = all.length - refused.length;
      const word = { allow: 'Allowed', deny: 'Denied', answer: 'Answered' }[body.decision ?? ''] ?? 'Answered';
      if (done) toast(`${word}${done > 1 ? ` ${done} times` : ''}: ${titleOf(one)}`.slice(0, 160), { kind: 'good' });
      if (refused[0]) {
        fail(refused[0].reason);
        if (refused[0].reason?.code === 'question_changed') void shown.show(shown.ids, true);
      }
      const gone = new Set(all.filter((_, index) => results[index]?.status === 'fulfilled').map(({ approval }) => approval));
      store.approvals = store.approvals.filter(({ approval }) => !gone.has(approval));
      store.change.approvals = true;
      if (gone.has(active)) {
        active = store.approvals[Math.min(Math.max(at, 0), store.approvals.length - 1)]?.approval ?? '';
        changedAt = 0;
      }
      store.touch();
      store.readApprovals();
    }

    /** @param {string} id */
    function choose(id) {
      active = id;
      changedAt = 0;
      draw();
      // One column: the question stands above the list.
      if (pane.offsetTop < list.offsetTop) root.scrollTop = 0;
      else list.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
    }

    /** @param {number} by */
    function move(by) {
      const at = store.approvals.findIndex(({ approval }) => approval === active);
      const next = store.approvals[Math.max(0, Math.min(store.approvals.length - 1, at + by))];
      if (next) choose(next.approval);
    }

    /** @param {(one: Approval) => unknown} act */
    function byKey(act) {
      const one = find(active);
      if (!one || !may) return;
      if (Date.now() - changedAt < REST) toast('The question just changed, because another person answered the previous one. Read it, then press the key again.');
      else act(one);
    }
    const allows = (/** @type {string} */ scope) => () => byKey((one) => offers(one, scope)
      ? allow(one, scope)
      : toast(one.scopes.length ? `“${scope}” is not possible here.` : 'This question has no yes or no: choose an answer.'));

    const unsubscribe = store.subscribe((change) => {
      if (change.approvals || change.order || change.rows) draw();
    });
    const unbind = ctx.keys({
      j: { help: 'next question', run: () => move(1) },
      k: { help: 'question before', run: () => move(-1) },
      ArrowDown: { help: '', run: () => move(1) },
      ArrowUp: { help: '', run: () => move(-1) },
      ...(may ? {
        y: { help: 'allow once', run: allows('once') },
        s: { help: 'allow for the session', run: allows('session') },
        a: { help: 'always allow in this project', run: allows('always') },
        e: { help: 'always allow, everywhere', run: allows('everywhere') },
        n: { help: 'deny, with a reason', run: () => byKey(deny) },
      } : {}),
      ' ': { help: 'the next part of the question', run: () => {
        const body = pane.querySelector('.question-body');
        for (const box of [body, root]) box?.scrollBy({ top: (box.clientHeight * 4) / 5 });
      } },
      o: { help: 'open the session', run: () => find(active) && ctx.navigate(`#/session/${find(active)?.session}`) },
    });
    draw();
    return {
      dispose() {
        clearInterval(comparing);
        shown.dispose();
        unsubscribe();
        unbind();
      },
      update: (next) => next.path[0] && choose(next.path[0]),
    };
  },
};
