// Usage, node and audit: what they say, and that they say the same as the daemon.

import assert from 'node:assert/strict';
import { go } from '../lib/browser.mjs';

export async function usageIsShownByDayAndByLabel({ daemon, browser }) {
  const one = await daemon.session('Deploy', 'deploy it', { labels: { team: 'infra' } });
  await daemon.session('Repair', 'repair greet.sh', { labels: { team: 'web' } });
  await daemon.session('Summarise', 'limited', { model: 'crowded' });
  await daemon.session('Describe', 'broken');
  const page = await browser.open(daemon, { hash: '#/usage' });
  // Two bars on each other: the teams. Their sum is that of the whole time, as everything happened today.
  await page.getByLabel('Group by').selectOption('team');
  await page.locator('.day-bar > span').nth(1).waitFor();
  assert.match(page.url(), /#\/usage\?by=team$/);
  await page.locator('.days-section details summary').click();
  const total = await daemon.until('each step is counted', async () => {
    const sum = (rows) => rows.reduce((all, { cost_usd: cost }) => all + cost, 0).toFixed(6);
    const [daily, all] = await Promise.all(['/usage/daily?by=team', '/usage?by=team'].map((path) => daemon.call('GET', path)));
    return sum(daily.items) === sum(all.items) && daily.items.length === 3;
  });
  assert.ok(total);
  for (const team of ['infra', 'web']) await page.locator('.days-section td', { hasText: team }).waitFor();
  await page.getByRole('button', { name: 'steps' }).click();
  await page.locator('.days[aria-label^="steps of each day"]').waitFor();
  // Only one team.
  await page.getByLabel('Only sessions with these labels').fill('team=web');
  await page.keyboard.press('Enter');
  await page.locator('.days-section td', { hasText: 'infra' }).waitFor({ state: 'detached' });
  // Who waits for which provider, what failed, and how the providers do.
  const waits = page.locator('section', { has: page.getByRole('heading', { name: 'Who waits for which provider' }) });
  await waits.locator('a', { hasText: 'crowded' }).waitFor();
  await page.locator('section', { hasText: 'Errors of the last turns' }).locator('td', { hasText: 'invalid request' }).waitFor();
  await page.locator('.provider', { hasText: 'workshop' }).waitFor();
  await page.locator('.provider', { hasText: 'crowded' }).locator('.s-limited, .s-failed').first().waitFor();
  assert.ok(one.session);
}

export async function theNodeShowsItsActorsAndItsLog({ daemon, browser }) {
  const { session } = await daemon.session('Build', 'build it', { mode: 'yolo' });
  await daemon.until('a command runs', async () => (await daemon.call('GET', `/sessions/${session}`)).state === 'running(tool)');
  const page = await browser.open(daemon, { hash: '#/node' });
  const actor = (/** @type {string} */ name) => page.locator('.actors tr', { hasText: name });
  await actor('the tool executor').locator('td').nth(2).getByText('1', { exact: true }).waitFor();
  for (const name of ['the feed', 'the session store', 'the model client of workshop', 'the loop supervisor', 'loops: tool call', 'the usage counter', 'the HTTP server']) await actor(name).waitFor();
  await page.getByText('Nothing is wrong.').waitFor();
  await page.getByRole('button', { name: 'Check the store' }).click();
  await page.getByText('The store is whole').waitFor();
  await page.locator('.log', { hasText: 'starting agentd' }).waitFor();
  // What a token may do, in the daemon's words.
  await page.locator('section', { has: page.getByRole('heading', { name: 'Tokens' }) }).locator('summary').first().click();
  await page.getByText('gives a session at most the mode').first().waitFor();
}

export async function theAuditIsFilteredAndVerified({ daemon, browser }) {
  const { session } = await daemon.session('Deploy', 'deploy it');
  await daemon.until('it asks', async () => (await daemon.call('GET', '/approvals')).items.length === 1);
  await daemon.ctl('approve', session);
  await daemon.until('it is decided', async () => (await daemon.call('GET', '/audit?event=approval.decided')).items.length === 1);
  const page = await browser.open(daemon, { hash: '#/audit' });
  const decided = page.locator('tbody tr', { hasText: 'approval.decided' });
  await decided.waitFor();
  await decided.getByText('user:').first().waitFor();
  await page.getByLabel('event').fill('approval.decided');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 1);
  assert.match(page.url(), /#\/audit\?event=approval\.decided$/);
  await page.getByRole('button', { name: 'Verify the chain' }).click();
  await page.locator('.chain', { hasText: /Intact: \d+ lines in 1 file/ }).waitFor();
  await page.getByLabel('who').fill('nobody');
  await page.keyboard.press('Enter');
  await page.getByText('No entry matches.').waitFor();
  // An entry leads to its event.
  await go(page, '#/audit?event=approval.decided');
  await decided.locator('a').click();
  await page.locator('.ev-detail.open', { hasText: 'approval.decided' }).waitFor();
}
