// The node: what runs in the daemon, its store, sandbox, tool servers and tools, and what the doctor finds.

import { h, put } from '../dom.js';
import { bytes, count, duration, exact, moment, plural, stateWord } from '../format.js';
import { oneLine, visibleText } from '../text/visible.js';
import { agentctl, ageOf, blank, confirm, copies, curl, fail, failure, loading, toast } from '../ui.js';

const POLL = 5_000;

/** @type {import('../types.js').View} */
export const node = {
  title: 'Node',
  mount(root, ctx) {
    const { client } = ctx;
    const facts = h('div', { class: 'card' }, loading());
    const findings = h('div', { class: 'card' });
    const actors = h('div', { class: 'card' });
    const store = h('div', { class: 'card' });
    const indexes = h('div', { class: 'card flush' });
    const servers = h('div', { class: 'card flush' });
    const tools = h('div', { class: 'card flush' });
    const rules = h('div', { class: 'card' });
    const tokens = h('div', { class: 'card' });
    const tokenBox = h('section', { class: 'wide', hidden: true }, h('h2', null, 'Tokens'), tokens);
    const log = h('pre', { class: 'code log', tabindex: 0 });
    const logBox = h('section', { class: 'wide', hidden: true }, h('h2', null, 'Log'), log);
    const admin = ctx.can('admin');
    root.append(
      h('header', { class: 'view-head' }, h('h1', null, 'Node'), h('span', { class: 'grow' }),
        admin && h('button', { type: 'button', on: { click: () => void reload() } }, 'Reload the configuration'),
        copies(() => ({ command: agentctl('daemon', 'status'), curl: curl('GET', '/nodes/self/diagnostics') }))),
      h('div', { class: 'grid' },
        h('section', null, h('h2', null, 'Daemon'), facts, h('h2', null, 'Findings'), findings, h('h2', null, 'Store'), store),
        h('section', null, h('h2', null, 'Actors'), actors),
        h('section', { class: 'wide' }, h('h2', null, 'Tool servers'), servers),
        h('section', { class: 'wide' }, h('h2', null, 'Search indexes'), indexes),
        h('section', { class: 'wide' }, h('h2', null, 'Tools'), tools),
        h('section', { class: 'wide' }, h('h2', null, 'Rules of the operator'), rules),
        tokenBox,
        logBox));

    /** @type {any} */
    let checked = null;
    const check = h('button', { type: 'button', on: { click: () => void verify() } }, 'Check the store');
    async function verify() {
      check.disabled = true;
      try {
        checked = await client.get('/nodes/self/check');
        await read();
      } catch (error) {
        fail(error, 'The check');
      }
      check.disabled = false;
    }
    async function reload() {
      if (!(await confirm({ title: 'Reload the configuration?', body: 'agentd reads its files again. An invalid file changes nothing.', action: 'Reload' }))) return;
      try {
        const { changed, restart } = await client.post('/nodes/self/reload');
        toast(changed.length ? `Changed: ${changed.join(', ')}.` : 'Nothing changed.', { kind: 'good', hint: restart?.length ? `These need a restart: ${restart.join(', ')}.` : undefined });
      } catch (error) {
        fail(error);
      }
    }

    async function read() {
      if (document.hidden && facts.dataset.read) return;
      try {
        const all = await client.get('/nodes/self/diagnostics');
        facts.dataset.read = 'yes';
        put(facts, status(all.status));
        put(findings, problems(all, checked), h('p', null, check, ' ', h('span', { class: 'dim' }, 'reads the whole store; ', h('code', null, 'agentctl doctor'), ' checks the machine, too')));
        put(actors, tree(all));
        put(indexes, indexTable(all.indexes ?? []));
        put(store, figures(all.store));
        put(rules, h('details', null, h('summary', null, plural(all.rules?.length ?? 0, 'rule')), h('ul', { class: 'rule-list' }, (all.rules ?? []).map((/** @type {string} */ rule) => h('li', null, h('code', null, visibleText(rule)))))));
      } catch (error) {
        put(facts, failure(error, () => void read()));
      }
    }
    async function readTools() {
      try {
        const [{ items: mcp }, { items: list }] = await Promise.all([client.get('/tool-servers'), client.get('/tools')]);
        put(servers, mcp.length ? serverTable(mcp) : blank('No tool servers are configured.', ['The section ', h('code', null, '[mcp]'), ' of the configuration adds some.']));
        put(tools, toolTable(list));
      } catch (error) {
        put(servers, failure(error, () => void readTools()));
      }
    }
    async function readTokens() {
      if (!admin || document.hidden) return;
      try {
        const { items } = await client.get('/tokens');
        put(tokens, items.length ? tokenList(items) : blank('There are no tokens.', ['To create one: ', h('code', null, 'agentctl token create NAME --scope read'), '.']));
        tokenBox.hidden = false;
      } catch {
        // A token with labels may not ask.
        tokenBox.hidden = true;
      }
    }
    async function readLog() {
      if (!admin || document.hidden) return;
      try {
        const { lines } = await client.get('/nodes/self/log', { lines: 200 });
        const low = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
        put(log, visibleText(lines.join('\n')));
        logBox.hidden = false;
        if (low) log.scrollTop = log.scrollHeight;
      } catch {
        logBox.hidden = true;
      }
    }
    const timer = setInterval(() => {
      void read();
      void readLog();
    }, POLL);
    void read();
    void readTools();
    void readTokens();
    void readLog();
    return () => clearInterval(timer);
  },
};

/** @param {string} label @param {...import('../dom.js').Child} value */
const fact = (label, ...value) => h('div', null, h('dt', null, label), h('dd', null, value));

/** @param {any} status */
function status(status) {
  const level = status.sandbox === 'off' || status.sandbox === 'none' ? 's-failed' : 's-good';
  return h('dl', { class: 'facts' },
    fact('Name', oneLine(status.node, 80), h('span', { class: 'dim' }, ` version ${status.version}, pid ${status.pid}`)),
    fact('Runs for', ageOf(status.started_at), h('span', { class: 'dim' }, ` since ${moment(status.started_at)}`)),
    status.draining && fact('Draining', h('span', { class: 's-person' }, 'it takes no new work and stops when running calls are done')),
    fact('Sessions', exact(status.sessions), h('span', { class: 'dim' }, `, ${exact(status.hot)} in memory`)),
    fact('Connections', exact(status.connections)),
    fact('Sandbox', h('span', { class: level }, oneLine(status.sandbox, 80))),
    fact('Default model', oneLine(status.model, 120)),
    fact('Data', h('code', null, visibleText(status.data_dir))),
    fact('Socket', h('code', null, visibleText(status.socket))),
    status.http && fact('HTTP', h('code', null, visibleText(status.http))));
}

/** Each token, and what it may do in the daemon's words. @param {any[]} items */
const tokenList = (items) => h('ul', { class: 'rule-list' }, items.map((token) => h('li', null,
  h('details', null,
    h('summary', null, h('code', null, oneLine(token.name, 80)), ' ', h('span', { class: token.state === 'live' ? 's-good' : 'dim' }, token.state), h('span', { class: 'dim' }, ` ${token.scopes.join(', ')}`)),
    h('ul', null, (token.may ?? []).map((/** @type {string} */ words) => h('li', null, oneLine(words, 600))))))));

/** @param {any} all @param {any} checked */
function problems(all, checked) {
  /** @type {{look: string, text: string, fix?: string}[]} */
  const found = [];
  const { status: daemon, supervisor, models } = all;
  for (const mount of daemon.hanging ?? []) found.push({ look: 's-failed', text: `The file system ${mount.mount} has not answered for ${duration(mount.silent_ms)}; ${plural(mount.calls, 'call')} wait.`, fix: 'Only sessions on it are affected. Check the server behind the mount.' });
  if (daemon.draining) found.push({ look: 's-person', text: 'The daemon is draining: it takes no new work.', fix: 'It stops by itself; agentctl daemon start starts it again.' });
  if (daemon.restarts > 0) found.push({ look: 's-person', text: `Parts of the daemon restarted ${daemon.restarts} times.`, fix: 'The log says why.' });
  if (supervisor?.crashes > 0) found.push({ look: 's-person', text: `Loops of sessions crashed ${supervisor.crashes} times.`, fix: 'A session that crashes too often shows as faulted; `agentctl resume` revives it.' });
  for (const [name, part] of Object.entries(all)) if (part?.class && part?.message) found.push({ look: 's-failed', text: `The part “${name}” does not answer: ${part.message}`, fix: part.hint });
  const usable = Array.isArray(models) ? models.filter((/** @type {any} */ model) => model.usable) : [];
  if (Array.isArray(models) && !usable.length) found.push({ look: 's-failed', text: 'No model is usable.', fix: 'agentctl models says why for each.' });
  for (const model of usable) if (model.last_call?.failed && model.paused_until) found.push({ look: 's-limited', text: `${model.name} is paused after ${model.last_call.failed.replaceAll('_', ' ')}.`, fix: 'Sessions wait and go on by themselves.' });
  for (const problem of checked?.problems ?? []) found.push({ look: 's-failed', text: typeof problem === 'string' ? problem : JSON.stringify(problem), fix: 'See docs/operations.md, damage.' });
  return [
    checked && !checked.problems.length && h('p', { class: 's-good' }, `The store is whole: ${plural(checked.sessions, 'session')}, ${plural(checked.events, 'event')}, ${bytes(checked.bytes)}, all checksums right.`),
    found.length ? h('ul', { class: 'findings' }, found.map(({ look, text, fix }) => h('li', null, h('span', { class: look }, visibleText(text)), fix && h('div', { class: 'dim' }, visibleText(fix)))))
      : h('p', { class: 's-good' }, 'Nothing is wrong.'),
  ];
}

/** An answer that takes longer shows that the mailbox of the actor is full. */
const SLOW_US = 100_000;

/** The actors and services, with the loops below their supervisor. @param {any} all */
function tree(all) {
  const loops = Object.entries(all.hot_states ?? {});
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Actors' }, h('table', { class: 'plain actors' },
    h('thead', null, h('tr', null, h('th', null, 'actor'), ['restarts', 'busy', 'queued', 'answers in'].map((name) => h('th', { class: 'num' }, name)))),
    h('tbody', null,
      h('tr', null, h('td', null, 'root'), h('td', { class: 'num dim' }, exact(all.status?.restarts ?? 0)), h('td', { colspan: 3 })),
      (all.actors ?? []).map((/** @type {any} */ actor) => [actorRow(actor), actor.name === 'the loop supervisor' && loops.map(([state, n]) => h('tr', null,
        h('td', { class: 'under deeper' }, `loops: ${stateWord(state)}`), h('td', { class: 'num dim' }, state === loops[0]?.[0] && all.supervisor?.crashes ? exact(all.supervisor.crashes) : ''), h('td', { class: 'num' }, exact(/** @type {number} */ (n))), h('td', { colspan: 2 })))]))));
}

/** @param {any} actor */
function actorRow(actor) {
  const number = (/** @type {number|undefined} */ n, look = '') => h('td', { class: `num${look}` }, n === undefined ? h('span', { class: 'faint' }, '–') : exact(n));
  const slow = actor.answer_us >= SLOW_US;
  return h('tr', null,
    h('td', { class: 'under' }, h('span', { class: actor.running ? '' : 's-failed' }, oneLine(actor.name, 80), !actor.running && ' (down)')),
    number(actor.restarts, actor.restarts ? ' s-person' : ' dim'), number(actor.busy), number(actor.queued, actor.queued ? ' s-limited' : ''),
    h('td', { class: `num ${slow ? 's-failed' : 'dim'}` }, actor.answer_us === undefined ? '–' : actor.answer_us < 1000 ? '<1ms' : duration(actor.answer_us / 1000)));
}

/** @param {any[]} indexes */
function indexTable(indexes) {
  if (!indexes.length) return h('p', { class: 'dim pad' }, 'No directory has been indexed since the daemon started.');
  const look = (/** @type {string} */ state) => ({ failed: 's-failed', indexing: 's-running', waiting: 's-limited' })[state] ?? 's-good';
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Search indexes' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, h('th', null, 'directory'), h('th', null, 'state'), h('th', { class: 'num' }, 'files'), h('th', { class: 'num' }, 'size'))),
    h('tbody', null, indexes.slice(0, 100).map((one) => h('tr', null,
      h('td', null, h('code', null, visibleText(one.workdir))), h('td', { class: look(one.state) }, one.state, one.failed && h('span', { class: 'dim' }, `: ${oneLine(one.failed, 200)}`)),
      h('td', { class: 'num' }, exact(one.files)), h('td', { class: 'num' }, bytes(one.bytes)))))),
    indexes.length > 100 && h('p', { class: 'dim pad' }, `and ${plural(indexes.length - 100, 'more directory')}`.replace('directorys', 'directories')));
}

/** @param {any} store */
function figures(store) {
  if (!store || store.message) return h('p', { class: 'dim' }, 'The store does not answer.');
  const show = (/** @type {string} */ name, /** @type {any} */ value) => (typeof value !== 'number' ? oneLine(String(value), 60) : name.includes('_us_') ? duration(value / 1000) : name.endsWith('bytes') ? bytes(value) : count(value));
  return h('dl', { class: 'facts' }, Object.entries(store).map(([name, value]) => fact(name.replaceAll('_us_', ' ').replaceAll('_', ' '), show(name, value))));
}

/** @param {any[]} servers */
function serverTable(servers) {
  return h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Tool servers' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, ['server', 'state', 'tools', 'busy', 'restarts', 'directory', 'last error'].map((name) => h('th', null, name)))),
    h('tbody', null, servers.map((server) => h('tr', null,
      h('td', null, h('strong', null, oneLine(server.server, 60))), h('td', null, oneLine(String(server.state), 60)), h('td', null, Array.isArray(server.tools) ? exact(server.tools.length) : String(server.tools)),
      h('td', null, String(server.busy)), h('td', { class: server.restarts ? 's-person' : '' }, exact(server.restarts ?? 0)), h('td', null, h('code', null, visibleText(server.workdir ?? '–'))), h('td', { class: 's-failed' }, oneLine(server.last_error ?? '', 200)))))));
}

/** @param {any[]} tools */
function toolTable(tools) {
  return h('details', null, h('summary', { class: 'pad' }, plural(tools.length, 'tool')), h('div', { class: 'scroll-x', tabindex: 0, role: 'region', 'aria-label': 'Tools' }, h('table', { class: 'plain' },
    h('thead', null, h('tr', null, h('th', null, 'tool'), h('th', null, 'effect'), h('th', null, 'what it does'))),
    h('tbody', null, tools.map((tool) => h('tr', null, h('td', null, h('strong', null, oneLine(tool.name, 60))), h('td', null, oneLine(tool.effect, 40)), h('td', { class: 'dim' }, oneLine(tool.description, 240))))))));
}
