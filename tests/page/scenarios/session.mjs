// One session: it is followed live, steered, answered and looked into, whatever it says.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { check } from '../lib/axe.mjs';
import { readable } from '../lib/browser.mjs';

const at = (session, tab = 'transcript') => `#/session/${session}/${tab}`;
const state = async (daemon, session) => (await daemon.call('GET', `/sessions/${session}`)).state;

export async function textAppearsWhileTheModelWritesIt({ daemon, browser }) {
  const { session } = await daemon.session('Read the log', 'slow');
  const page = await browser.open(daemon, { hash: at(session) });
  await page.locator('.live-call', { hasText: 'I' }).waitFor();
  assert.equal(await state(daemon, session), 'running(model)');
  await page.locator('.entry.model', { hasText: 'Cancel' }).waitFor({ state: 'detached' });
  // The turn is cancelled with a question first, and the page says so.
  await page.keyboard.press('C');
  await page.getByRole('button', { name: 'Cancel the turn' }).click();
  await page.getByText('Turn ended: cancelled').waitFor();
  // A message starts the next turn.
  await page.keyboard.press('i');
  await page.keyboard.type('Go **on**.');
  await page.keyboard.press('Enter');
  await page.locator('.said-by.person strong', { hasText: 'on' }).waitFor();
  await page.locator('.turn-line', { hasText: 'Turn 2' }).waitFor();
}

export async function messagesSteerQueueAndInterrupt({ daemon, browser }) {
  const { session } = await daemon.session('Read the log', 'slow');
  const page = await browser.open(daemon, { hash: at(session) });
  const way = page.getByRole('combobox', { name: 'How the message joins' });
  const send = async (text, how) => {
    await way.selectOption(how);
    await page.getByRole('textbox', { name: 'Message to the session' }).fill(text);
    await page.keyboard.press('Enter');
    await page.locator('.said-by.person', { hasText: text }).waitFor();
  };
  await send('Join this turn.', 'steer');
  await page.locator('.said-by.person', { hasText: 'Join this turn.' }).getByText('waits to join').waitFor();
  await send('Wait for the next.', 'queue');
  await page.locator('.queue li', { hasText: 'Wait for the next.' }).getByRole('button', { name: 'Take back' }).click();
  await page.locator('.said-by.person', { hasText: 'Wait for the next.' }).getByText('cancelled').waitFor();
  await send('Stop and do this.', 'interrupt');
  await page.getByText('Turn ended: cancelled').waitFor();
  await page.locator('.turn-line', { hasText: 'Turn 2' }).waitFor();
  // Each is a command for the terminal, too. Without a clipboard the page shows it.
  await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no clipboard')); });
  await page.locator('.composer-foot').getByRole('button', { name: 'agentctl' }).click();
  await page.locator('dialog pre', { hasText: `agentctl send` }).waitFor();
  assert.match(await page.locator('dialog pre').textContent(), new RegExp(session));
}

export async function aQuestionIsAnsweredInTheTranscript({ daemon, browser }) {
  const { session, workdir } = await daemon.session('Deploy', 'deploy it');
  const page = await browser.open(daemon, { hash: at(session) });
  await page.locator('.approval', { hasText: 'chmod +x deploy.sh' }).waitFor();
  assert.equal(existsSync(join(workdir, 'deployed.txt')), false);
  await readable(page);
  await page.keyboard.press('y');
  await page.locator('.decided', { hasText: 'allowed' }).waitFor();
  await daemon.until('the command ran', async () => (await readFile(join(workdir, 'deployed.txt'), 'utf8')).includes('web-2'));
  await page.getByText('Turn completed').waitFor();
  // The verdict and its rule.
  await page.keyboard.press('6');
  await page.locator('.rule-filter', { hasText: 'ask' }).waitFor();
  await page.locator('table', { hasText: 'allow by' }).waitFor();
  // A question with choices.
  const asks = await daemon.session('Bucket', 'which region');
  await page.evaluate((hash) => { location.hash = hash; }, at(asks.session));
  await page.getByRole('button', { name: 'us-east-1' }).click();
  await page.locator('.decided', { hasText: 'answered' }).waitFor();
}

export async function aSubAgentsQuestionIsAnsweredInItsParent({ daemon, browser }) {
  const { session, workdir } = await daemon.session('Release', 'parts');
  const page = await browser.open(daemon, { hash: at(session) });
  const card = page.locator('.approval', { hasText: 'of the sub-agent the server' });
  await card.waitFor();
  // What a person has begun to write stays, whatever else happens.
  await page.keyboard.press('n');
  await page.keyboard.type('not on a Friday');
  await daemon.call('POST', `/sessions/${session}/inputs`, { content: 'One more thing.', delivery: 'queue' });
  await page.locator('.queue', { hasText: 'One more thing.' }).waitFor();
  assert.equal(await card.getByRole('textbox').inputValue(), 'not on a Friday');
  await page.keyboard.press('Enter');
  await card.waitFor({ state: 'detached' });
  assert.equal(existsSync(join(workdir, 'deployed.txt')), false);
  await page.locator('.tl-span.k-agent-running, .tl-span.k-agent-ok').first().waitFor();
}

export async function changesAreShownAndUndone({ daemon, browser }) {
  const { session, workdir } = await daemon.session('Repair', 'repair greet.sh');
  const page = await browser.open(daemon, { hash: at(session) });
  await page.locator('.approval .q-added', { hasText: 'Hello' }).waitFor();
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByText('Turn completed').waitFor();
  assert.match(await readFile(join(workdir, 'greet.sh'), 'utf8'), /Hello/);
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.locator('.diff td.add mark').first().waitFor();
  await page.getByRole('button', { name: 'Unified' }).click();
  await page.locator('.diff tr.del', { hasText: 'Helo' }).waitFor();
  await page.getByRole('button', { name: 'Undo last change…' }).click();
  await page.getByRole('button', { name: 'Undo', exact: true }).click();
  await page.getByText('changed nothing').waitFor();
  assert.match(await readFile(join(workdir, 'greet.sh'), 'utf8'), /Helo/);
  // Each event is there as it is stored, and leads back to the transcript.
  await page.keyboard.press('2');
  await page.getByRole('searchbox').fill('undo.applied');
  await page.locator('.ev-row', { hasText: 'undo.applied' }).click();
  await page.locator('.ev-detail', { hasText: '"undoes"' }).waitFor();
  await page.getByRole('button', { name: 'In the transcript' }).click();
  await page.locator('.entry.found', { hasText: 'Undone: greet.sh' }).waitFor();
}

export async function aSessionIsForkedAndRewound({ daemon, browser }) {
  const { session } = await daemon.session('Hello', 'hello');
  await daemon.until('it is idle', async () => (await state(daemon, session)) === 'idle');
  const page = await browser.open(daemon, { hash: at(session) });
  const end = page.locator('.end-line');
  await end.hover();
  await end.getByRole('button', { name: 'Fork here' }).click();
  await page.getByRole('button', { name: 'Fork', exact: true }).click();
  await page.locator('.session-head h1', { hasText: 'Hello (fork)' }).waitFor();
  await page.locator('.memo', { hasText: 'Forked from' }).waitFor();
  await page.goBack();
  await page.locator('.session-head h1', { hasText: /^Hello$/ }).waitFor();
  await page.locator('.said-by.person').hover();
  await page.locator('.said-by.person').getByRole('button', { name: 'Rewind here' }).click();
  await page.getByRole('button', { name: 'Rewind', exact: true }).click();
  await page.locator('.memo', { hasText: 'Rewound to' }).waitFor();
  await page.locator('.said-by.person.past').waitFor();
}

export async function theTimelineLeadsToItsEvents({ daemon, browser }) {
  const { session } = await daemon.session('Repair', 'repair greet.sh', { mode: 'yolo' });
  await daemon.until('it is idle', async () => (await state(daemon, session)) === 'idle');
  const page = await browser.open(daemon, { hash: at(session) });
  await page.locator('.tl-span.k-tool-ok').first().waitFor();
  await page.keyboard.press('t');
  for (let n = 0; n < 3; n += 1) await page.keyboard.press('ArrowRight');
  assert.match(await page.locator('.tl-said').textContent(), /event \d+$/);
  await page.keyboard.press('+');
  await page.keyboard.press('Enter');
  await page.locator('.entry.found').waitFor();
  assert.match(page.url(), /\?at=\d+$/);
}

export async function aFloodOfOutputStaysSmall({ daemon, browser }) {
  const { session } = await daemon.session('<b>Flood</b> \u202egnp', 'flood', { mode: 'yolo' });
  const page = await browser.open(daemon, { hash: at(session) });
  await page.getByText('That was a lot.').waitFor();
  const card = page.locator('details.tool');
  if (!(await card.getAttribute('open').then((open) => open !== null))) await card.locator('summary').click();
  // The result is plain text; the whole output has its colours.
  await card.locator('.code', { hasText: 'green' }).first().waitFor();
  assert.equal(await card.locator('.ansi-2').count(), 0);
  const size = () => page.evaluate(() => document.body.textContent?.length ?? 0);
  assert.ok((await size()) < 100_000, `${await size()} characters are in the document`);
  await card.getByRole('button', { name: /Load the whole output/ }).click();
  await card.locator('.ansi-2', { hasText: 'green' }).waitFor();
  await card.getByRole('button', { name: /more of/ }).last().waitFor();
  assert.ok((await size()) < 200_000, `${await size()} characters are in the document`);
  for (const tab of ['events', 'changes', 'context', 'prompt', 'policy']) {
    await page.getByRole('tab', { name: tab, exact: false }).click();
    await page.waitForFunction(() => !document.querySelector('main [aria-busy]') && document.querySelector('.tab-body')?.textContent);
  }
  assert.equal(await page.evaluate(() => /[\u202a-\u202e]/.test(document.body.textContent ?? '')), false);
}

export async function aSessionGoesOnAfterTheDaemonDied({ daemon, browser }) {
  const { session } = await daemon.session('Deploy', 'deploy it');
  const page = await browser.open(daemon, { hash: at(session), offline: true });
  await page.locator('.approval').waitFor();
  await page.evaluate(() => { window.same = 1; });
  await daemon.kill();
  await page.locator('.connection[data-kind="away"]').waitFor();
  await daemon.launch();
  await page.locator('.connection[data-kind="live"]').waitFor();
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByText('Turn completed').waitFor();
  assert.equal(await page.evaluate(() => window.same), 1);
  // A session that is opened while the daemon is away appears when it is back.
  await daemon.kill();
  await page.evaluate(() => { location.hash = '#/fleet'; });
  await page.locator('.connection[data-kind="away"]').waitFor();
  await page.evaluate((hash) => { location.hash = hash; }, at(session));
  await page.locator('.blank-title', { hasText: 'agentd does not answer.' }).waitFor();
  await daemon.launch();
  await page.getByText('Turn completed').waitFor();
  // No event is missing or there twice.
  await page.keyboard.press('2');
  const { seq } = await daemon.call('GET', `/sessions/${session}`);
  await page.locator(`.ev-row[data-seq="${seq}"]`).waitFor();
  const shown = await page.locator('.ev-row').evaluateAll((rows) => rows.map((row) => Number(row.dataset.seq)));
  assert.deepEqual(shown, [...shown.keys()].map((n) => shown[0] + n));
}

/** A log of many turns, made of one that really happened. */
async function long(daemon, events) {
  const { session, workdir } = await daemon.session('Repair', 'repair greet.sh', { mode: 'yolo' });
  await daemon.until('it is idle', async () => (await state(daemon, session)) === 'idle');
  const { items } = await daemon.call('GET', `/sessions/${session}/events`);
  const [created, ...rest] = items;
  const lines = [JSON.stringify(created)];
  const id = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
  for (let round = 1; lines.length < events; round += 1) {
    for (const event of rest) {
      const text = JSON.stringify({ ...event, seq: lines.length + 1 });
      lines.push(text.replace(id, (found) => (found === session ? found : found.slice(0, 24) + round.toString(16).padStart(8, '0') + found.slice(32))));
    }
  }
  const key = `long-${events}`;
  let made;
  for (let from = 0; from < lines.length; from += 2000) {
    made = await daemon.call('POST', '/imports', { lines: lines.slice(from, from + 2000), key, workdir, title: 'Long', more: from + 2000 < lines.length });
  }
  return { session: made.session, count: lines.length };
}

export async function tenThousandEventsStaySmooth({ daemon, browser, note }) {
  const { session } = await long(daemon, 10_000);
  const page = await browser.open(daemon, { hash: at(session) });
  await page.locator('.entry').first().waitFor();
  await page.waitForFunction(() => document.querySelector('.older')?.hidden);
  const { chunks, elements } = await page.evaluate(() => ({ chunks: document.querySelectorAll('.chunk').length, elements: document.querySelectorAll('*').length }));
  note(`${chunks} chunks, ${elements} elements`);
  assert.ok(chunks > 200, `${chunks} chunks`);
  assert.ok(elements < 8000, `${elements} elements`);
  // The first event, from the address; then the end again.
  await page.evaluate((hash) => { location.hash = hash; }, `${at(session)}?at=3`);
  await page.locator('.entry.found[data-seq="3"]').waitFor();
  await page.locator('.entry.imported', { hasText: 'repair greet.sh' }).first().waitFor();
  await page.keyboard.press('G');
  await page.waitForFunction(() => {
    const box = document.querySelector('.transcript');
    return box && box.scrollTop + box.clientHeight >= box.scrollHeight - 60 && document.querySelector('.chunk:last-child .entry');
  });
  const after = await page.evaluate(() => document.querySelectorAll('*').length);
  assert.ok(after < 8000, `${after} elements after a walk`);
  await page.keyboard.press('2');
  await page.getByRole('searchbox').fill('imported 9999');
  await page.locator('.ev-row[data-seq="9999"]').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.ev-row').length < 20);
}

export async function aBusySessionIsAccessible({ daemon, browser, shots }) {
  const flood = await daemon.session('Flood', 'flood', { mode: 'yolo' });
  const repair = await daemon.session('Repair', 'repair greet.sh', { mode: 'accept-edits' });
  const parts = await daemon.session('Release', 'parts');
  await daemon.until('they are done', async () => (await state(daemon, flood.session)) === 'idle' && (await state(daemon, repair.session)) === 'idle');
  /** @type {string[]} */
  const violations = [];
  for (const scheme of ['light', 'dark']) {
    const page = await browser.open(daemon, { scheme });
    /** @param {string} name @param {string} hash @param {() => Promise<void>} act */
    const look = async (name, hash, act) => {
      await page.evaluate((to) => { location.hash = to; }, hash);
      await act();
      await page.screenshot({ path: join(shots, `session-${name}-${scheme}.png`) });
      violations.push(...(await check(browser, page)).map((found) => `${name} ${scheme}: ${found}`));
    };
    await look('flood', at(flood.session), async () => {
      await page.locator('details.tool summary').click();
      await page.getByRole('button', { name: /Load the whole output/ }).click();
      await page.locator('.ansi-2').waitFor();
      await page.locator('.thinking summary').first().click();
    });
    await look('menu', at(repair.session), async () => {
      await page.locator('.diff tr.add').waitFor();
      await page.locator('.more-menu summary').click();
    });
    await look('event', `${at(repair.session, 'events')}?at=7`, () => page.locator('.ev-detail .code').waitFor());
    await look('side-by-side', at(repair.session, 'changes'), () => page.locator('.diff.split').waitFor());
    await look('deny', at(parts.session), async () => {
      await page.locator('.approval').waitFor();
      await page.keyboard.press('n');
      await page.getByRole('textbox', { name: 'Reason for the denial' }).waitFor();
    });
  }
  assert.deepEqual([...new Set(violations)], []);
}
