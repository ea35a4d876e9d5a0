// What happens in the daemon shows on the page, and what is done on the page happens.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { go, readable, row } from '../lib/browser.mjs';
import { Daemon } from '../lib/daemon.mjs';

export async function sessionsAppearLive({ daemon, browser }) {
  const page = await browser.open(daemon);
  await page.getByText('No sessions yet.').waitFor();
  const { session } = await daemon.session('Say hello', 'hello', { labels: { team: 'a' } });
  await row(page, session).waitFor();
  await row(page, session).getByText('Say hello').waitFor();
  await row(page, session).locator('.s-idle').waitFor();
  const failing = await daemon.session('Fails', 'broken');
  await row(page, failing.session).locator('.s-failed').waitFor();
  const asks = await daemon.session('Asks', 'deploy it');
  await row(page, asks.session).locator('.s-person').waitFor();
  await page.waitForFunction(() => document.title.startsWith('(1) '));
  // The address says what is shown, and brings it back.
  await page.locator('.tile.s-failed').click();
  await row(page, session).waitFor({ state: 'detached' }).catch(() => row(page, session).waitFor({ state: 'hidden' }));
  assert.match(page.url(), /#\/fleet\?state=failed$/);
  await page.reload();
  await row(page, failing.session).waitFor();
  assert.equal(await page.locator('.rows .line:not([hidden])').count(), 1);
  // By label.
  await page.keyboard.press('Escape');
  await page.waitForFunction(() => !location.hash.includes('state='));
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement?.matches('input[type=search]'));
  await page.keyboard.type('team=a');
  await page.waitForFunction(() => document.querySelectorAll('.rows .line:not([hidden])').length === 1);
  assert.match(page.url(), /q=team=a$/);
}

export async function approvingByClickRunsTheCommand({ daemon, browser }) {
  const page = await browser.open(daemon, { hash: '#/approvals' });
  await page.getByText('Nothing waits for you.').waitFor();
  const { workdir } = await daemon.session('Deploy', 'deploy it');
  await page.getByText('Bash wants to run a command').waitFor();
  await page.locator('.question .q-content', { hasText: 'chmod +x deploy.sh' }).waitFor();
  assert.equal(existsSync(join(workdir, 'deployed.txt')), false);
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByText('Nothing waits for you.').waitFor();
  await daemon.until('the command ran', async () => (await readFile(join(workdir, 'deployed.txt'), 'utf8')).includes('web-2'));
}

export async function keysAnswerApprovals({ daemon, browser }) {
  const page = await browser.open(daemon, { hash: '#/approvals' });
  const edit = await daemon.session('Edit', 'repair greet.sh');
  await page.locator('.q-added').first().waitFor();
  await readable(page);
  await page.keyboard.press('y');
  await daemon.until('the file is changed', async () => (await readFile(join(edit.workdir, 'greet.sh'), 'utf8')).includes('Hello'));
  await page.getByText('Nothing waits for you.').waitFor();
  // Denied with a reason, which the model reads.
  const deploy = await daemon.session('Deploy', 'deploy it');
  await page.getByText('Bash wants to run a command').waitFor();
  await page.keyboard.press('n');
  await page.keyboard.type('not on a Friday');
  await page.keyboard.press('Enter');
  const denied = await daemon.until('it is denied', async () => (await daemon.call('GET', `/sessions/${deploy.session}/events`)).items.find(({ type }) => type === 'approval.decided'));
  assert.deepEqual([denied.decision, denied.message], ['deny', 'not on a Friday']);
  assert.equal(existsSync(join(deploy.workdir, 'deployed.txt')), false);
  // A question has answers of its own.
  const asks = await daemon.session('Bucket', 'which region');
  await page.getByRole('button', { name: 'us-east-1' }).click();
  await daemon.until('it is answered', async () => (await daemon.call('GET', `/sessions/${asks.session}`)).state === 'idle');
}

export async function aQuestionSaysWhatHasChangedSince({ daemon, browser }) {
  const { workdir } = await daemon.session('Edit', 'repair greet.sh');
  const page = await browser.open(daemon, { hash: '#/approvals' });
  await page.locator('.q-added').first().waitFor();
  await writeFile(join(workdir, 'greet.sh'), '#!/bin/sh\necho other\n');
  await page.locator('.since', { hasText: 'greet.sh' }).waitFor();
  const [{ approval }] = (await daemon.call('GET', '/approvals')).items;
  assert.deepEqual(await daemon.call('GET', `/approvals/${approval}/changes`), { compared: true, changes: ['the file greet.sh'] });
}

export async function twoTabsAndATerminalShowTheSame({ daemon, browser }) {
  const window = await browser.window();
  const [one, two] = [await browser.open(daemon, { window }), await browser.open(daemon, { window, hash: '#/approvals' })];
  const { session } = await daemon.session('Deploy', 'deploy it');
  await row(one, session).locator('.s-person').waitFor();
  await two.getByText('Bash wants to run a command').waitFor();
  assert.match(await daemon.ctl('ps'), /Deploy +waiting\(approval\)/);
  // The terminal answers; both tabs see it.
  await daemon.ctl('approve', session);
  await two.getByText('Nothing waits for you.').waitFor();
  await row(one, session).locator('.s-idle').waitFor();
  // One tab acts on two sessions; the other one sees it.
  const other = await daemon.session('Read slowly', 'slow');
  await go(two, '#/fleet');
  await row(two, other.session).locator('.s-running').waitFor();
  await row(one, other.session).getByRole('checkbox').check();
  await row(one, session).getByRole('checkbox').check();
  await one.getByRole('button', { name: 'Pause', exact: true }).click();
  await one.getByRole('heading', { name: 'Pause 2 sessions?' }).waitFor();
  await one.getByRole('button', { name: 'Pause 2 sessions' }).click();
  await daemon.until('both are paused', async () => {
    const rows = await Promise.all([session, other.session].map((id) => daemon.call('GET', `/sessions/${id}`)));
    return rows.every((state) => state.paused || state.state === 'paused');
  });
  await row(two, session).getByText('paused').first().waitFor();
}

export async function aKilledDaemonComesBack({ daemon, browser, note, shots }) {
  const page = await browser.open(daemon, { offline: true });
  const before = await daemon.session('Before', 'deploy it');
  await row(page, before.session).locator('.s-person').waitFor();
  await page.evaluate(() => {
    window.sameDocument = true;
  });
  await daemon.kill();
  await page.locator('.connection[data-kind="away"]').waitFor();
  await page.locator('.banner').getByText('agentctl daemon status').waitFor();
  await page.screenshot({ path: join(shots, 'reconnecting.png') });
  await daemon.launch();
  // Before the page is back.
  const between = await daemon.session('Between', 'hello');
  const started = performance.now();
  await page.locator('.connection[data-kind="live"]').waitFor();
  note(`live again after ${Math.round(performance.now() - started)} ms`);
  await row(page, between.session).locator('.s-idle').waitFor();
  await row(page, before.session).locator('.s-person').waitFor();
  const after = await daemon.session('After', 'hello');
  await row(page, after.session).locator('.s-idle').waitFor();
  assert.equal(await page.evaluate(() => window.sameDocument), true);
  assert.equal(await page.locator('.banner').isVisible(), false);
  // The question from before is still open, and its answer counts.
  await go(page, '#/approvals');
  await page.getByRole('button', { name: 'Allow once' }).click();
  await daemon.until('the command ran', async () => existsSync(join(before.workdir, 'deployed.txt')));
}

export async function theDemosLinkShowsItsAgents({ daemon, browser }) {
  const demo = await Daemon.start(daemon.programs, ['--demo', '3']);
  const window = await browser.window();
  try {
    const link = await demo.until('the demo prints a link', async () => /http\S+#code=\w+/.exec(demo.said)?.[0]);
    const page = await browser.open(demo, { window, link });
    for (const name of ['demo 1', 'demo 2', 'demo 3']) await page.locator('.rows .line', { hasText: name }).locator('.s-idle').waitFor();
    await page.getByRole('link', { name: 'demo 1' }).click();
    await page.getByRole('heading', { name: 'demo 1' }).waitFor();
    await page.locator('main', { hasText: 'greet.sh' }).waitFor();
  } finally {
    await window.close();
    await demo.end();
  }
}
