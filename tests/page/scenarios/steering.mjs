// A fleet is steered by keyboard, by saved views and in bulk.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { go, readable, row } from '../lib/browser.mjs';

export async function theFleetIsSteeredByKeyboard({ daemon, browser }) {
  const first = await daemon.session('First', 'slow');
  const second = await daemon.session('Second', 'slow');
  const page = await browser.open(daemon);
  for (const { session } of [first, second]) await row(page, session).locator('.s-running').waitFor();
  // Both are selected and their turns cancelled, after a question that says how many.
  for (const key of ['j', 'x', 'j', 'x', 'c']) await page.keyboard.press(key);
  await page.getByRole('heading', { name: 'Cancel the turns of 2 sessions?' }).waitFor();
  await page.keyboard.press('Enter');
  for (const { session } of [first, second]) await daemon.until('it is idle', async () => (await daemon.call('GET', `/sessions/${session}`)).state === 'idle');
  // A row opens, and the way back is a key, too.
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await page.locator('.session-head h1', { hasText: 'Second' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('f');
  await page.locator('.fleet-table').waitFor();
  // The theme changes by key and survives a reload.
  for (const theme of ['light', 'dark']) {
    await page.keyboard.press('T');
    await page.waitForFunction((name) => document.documentElement.dataset.theme === name, theme);
  }
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
}

export async function viewsAreSavedAndSubAgentsFold({ daemon, browser }) {
  const { session } = await daemon.session('Release', 'parts', { labels: { team: 'a' } });
  await daemon.session('Other', 'hello');
  const page = await browser.open(daemon);
  // Sub-agents are below the session that started them, and fold away.
  const child = page.locator('.rows .line:not([hidden])[aria-level="2"]');
  await child.first().waitFor();
  const lead = row(page, session);
  await lead.getByRole('button', { name: /Hide \d sub-agents/ }).click();
  await child.first().waitFor({ state: 'hidden' });
  await lead.getByRole('button', { name: /Show \d sub-agents/ }).click();
  await child.first().waitFor();
  // Filters and order have a name, which stays in this browser.
  await page.locator('.filter').fill('team=a');
  await page.getByRole('button', { name: 'Cost', exact: true }).click();
  await page.locator('.dropdown summary').click();
  await page.getByRole('button', { name: 'Save this view…' }).click();
  await page.getByLabel('Name').fill('Team A by cost');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Saved the view').waitFor();
  await go(page, '#/fleet');
  await page.waitForFunction(() => document.querySelector('.shown')?.textContent?.endsWith('sessions'));
  await page.reload();
  await page.locator('.dropdown summary').click();
  await page.getByRole('link', { name: 'Team A by cost' }).click();
  await page.waitForFunction(() => location.hash === '#/fleet?q=team=a&sort=cost');
  await page.locator('.shown', { hasText: ' of ' }).waitFor();
}

export async function answersCoverTheSessionAndAllAlike({ daemon, browser }) {
  // What may be allowed for the session is not asked again in it.
  const edit = await daemon.session('Edit', 'repair greet.sh');
  const page = await browser.open(daemon, { hash: '#/approvals' });
  await page.locator('.q-added').first().waitFor();
  await readable(page);
  await page.keyboard.press('s');
  const decided = await daemon.until('it is decided', async () => (await daemon.call('GET', `/sessions/${edit.session}/events`)).items.find(({ type }) => type === 'approval.decided'));
  assert.equal(decided.scope, 'session');
  // One answer for the same command in two directories.
  const both = [await daemon.session('Deploy EU', 'deploy it'), await daemon.session('Deploy US', 'deploy it')];
  await page.getByText('2 open').waitFor();
  await page.getByRole('checkbox').check();
  // Both are shown, and read to the end.
  await page.locator('.q-line', { hasText: 'end of the command' }).nth(1).scrollIntoViewIfNeeded();
  await readable(page);
  await page.getByRole('button', { name: 'Allow once' }).click();
  await page.getByText('Nothing waits for you.').waitFor();
  await daemon.until('both commands ran', async () => both.every(({ workdir }) => existsSync(join(workdir, 'deployed.txt'))));
}

export async function aWideAnswerHoldsInEveryDirectory({ daemon, browser }) {
  const asked = await daemon.session('Publish EU', 'publish it');
  const page = await browser.open(daemon, { hash: '#/approvals' });
  await page.getByText('1 open').waitFor();
  await readable(page);
  await page.keyboard.press('e');
  const ran = async (/** @type {{ session: string, workdir: string }} */ { session, workdir }) => {
    await daemon.until('the command ran', async () => existsSync(join(workdir, 'published.txt')));
    return (await daemon.call('GET', `/sessions/${session}/events`)).items;
  };
  const find = (/** @type {{ type: string }[]} */ events, /** @type {string} */ name) => events.find(({ type }) => type === name);
  const { scope, everywhere } = find(await ran(asked), 'approval.decided');
  assert.deepEqual({ scope, everywhere }, { scope: 'always', everywhere: true });
  const unasked = await daemon.session('Publish US', 'publish it');
  assert.equal(find(await ran(unasked), 'approval.requested'), undefined);
}

export async function aHiddenTabNotifiesAndOffersCommands({ daemon, browser }) {
  const window = await browser.window();
  await window.grantPermissions(['notifications'], { origin: daemon.url });
  const page = await browser.open(daemon, { window, hash: '#/approvals' });
  // The browser's own notifications are out of a test's sight.
  await page.evaluate(() => {
    window.told = [];
    window.Notification = class extends EventTarget {
      static permission = 'granted';
      static requestPermission = async () => 'granted';
      constructor(title, { body }) {
        super();
        window.told.push(`${title}: ${body}`);
      }
    };
    window.copied = [];
    navigator.clipboard.writeText = async (text) => void window.copied.push(text);
  });
  await page.getByRole('button', { name: 'Notify me' }).click();
  await page.locator('button[aria-pressed="true"]', { hasText: 'Notify me' }).waitFor();
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: true, configurable: true }));
  await daemon.session('Deploy', 'deploy it');
  await page.waitForFunction(() => window.told.length === 1 && document.title.startsWith('(1) '));
  assert.match(await page.evaluate(() => window.told[0]), /^agentd asks: Bash chmod/);
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { value: false, configurable: true }));
  // Each view gives its commands; the token is in none.
  await page.getByText('Bash wants to run a command').waitFor();
  await page.locator('.question').getByRole('button', { name: 'curl' }).click();
  await page.locator('.question').getByRole('button', { name: 'agentctl' }).click();
  await page.waitForFunction(() => window.copied.length === 2);
  const [curl, agentctl] = await page.evaluate(() => window.copied);
  assert.match(curl, /^curl -sS --json '\{"decision":"allow","policy":true\}' -H "Authorization: Bearer \$TOKEN" http:\S+\/v1\/approvals\/[-0-9a-f]+\/decision$/);
  assert.match(agentctl, /^agentctl approve [0-9a-f]{12}$/);
  // The command does what it says.
  await daemon.ctl(...agentctl.split(' ').slice(1));
  await page.getByText('Nothing waits for you.').waitFor();
}
