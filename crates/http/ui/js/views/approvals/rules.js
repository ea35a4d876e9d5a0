// What people have allowed for good, and how to take it back.

import { h, put } from '../../dom.js';
import { oneLine, visibleText } from '../../text/visible.js';
import { ageOf, confirm, fail, toast } from '../../ui.js';

/** Where a rule holds, in words. @param {{reach?: {place: string, files?: Record<string, string>}}} rule */
function holds({ reach }) {
  if (!reach) return 'everywhere';
  const files = Object.entries(reach.files ?? {}).filter(([, state]) => state !== 'absent' && state !== 'no regular file').map(([name]) => name);
  return `in ${reach.place}${files.length ? `, while unchanged: ${files.join(', ')}` : ''}`;
}

/** @param {import('../../types.js').Context} ctx */
export function standingRules(ctx) {
  const list = h('ul', { class: 'rules' });
  const box = h('details', { class: 'standing' }, h('summary', null, 'Always allowed by people'), list);
  async function read() {
    try {
      const { items } = await ctx.client.get('/rules');
      put(list, items.length === 0 && h('li', { class: 'dim' }, 'Nothing: no approval was given with “always”.'), items.map((/** @type {any} */ rule) => h('li', null,
        h('code', { class: 'grow' }, visibleText(rule.rule)), h('span', { class: 'dim holds' }, visibleText(holds(rule))), h('span', { class: 'dim' }, oneLine(rule.by, 60), ', ', ageOf(rule.added_at), ' ago'),
        ctx.can('approve') && h('button', { type: 'button', class: 'quiet', on: { click: () => void remove(rule) } }, 'Remove'))));
    } catch (error) {
      fail(error, 'The rules cannot be read');
    }
  }
  /** @param {{number: number, rule: string}} rule */
  async function remove({ number, rule }) {
    if (!(await confirm({ title: 'Remove this rule?', body: h('code', null, visibleText(rule)), action: 'Remove the rule', kind: 'danger' }))) return;
    try {
      await ctx.client.remove(`/rules/${number}`);
      toast('Removed the rule; sessions ask again.', { kind: 'good' });
      await read();
    } catch (error) {
      fail(error);
    }
  }
  box.addEventListener('toggle', () => box.open && void read());
  return box;
}
