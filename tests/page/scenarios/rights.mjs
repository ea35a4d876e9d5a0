// What a token may not do is not offered, and what an agent writes stays text.

import assert from 'node:assert/strict';
import { go, row } from '../lib/browser.mjs';
import { fleet } from '../lib/daemon.mjs';

const VIEWS = ['#/fleet', '#/approvals', '#/usage', '#/node'];
/** What a button of the page may be called that changes something in the daemon. */
const ACTS = /^(Pause|Resume|Cancel|Allow|Deny|Always|For the session|Send|Steer|Queue|Interrupt|Fork|Rewind|Undo|Reload|Remove|Answer)/;

export async function aTokenThatReadsSeesNoButtonThatWouldFail({ daemon, browser }) {
  const { deploy } = await fleet(daemon);
  const page = await browser.open(daemon, { scopes: 'read' });
  await row(page, deploy.session).waitFor();
  assert.equal(await page.getByRole('checkbox').count(), 0);
  assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0);
  for (const hash of [...VIEWS, `#/session/${deploy.session}`]) {
    await go(page, hash);
    await page.waitForFunction(() => !document.querySelector('main .blank[aria-busy]'));
    const names = await page.locator('main button:visible').allTextContents();
    assert.deepEqual(names.filter((name) => ACTS.test(name.trim())), [], `${hash} offers what the token may not do`);
  }
}

export async function aBadLinkSaysWhatToDo({ daemon, browser }) {
  const window = await browser.window();
  const page = await browser.open(daemon, { window });
  const link = await daemon.link('read');
  const second = await window.newPage();
  await second.goto(link);
  await second.waitForSelector('.connection[data-kind="live"]');
  // The code is gone from the address, and the token is in no address.
  assert.doesNotMatch(second.url(), /code=|token/);
  const third = await window.newPage();
  await third.goto(link);
  await third.getByText('agentctl open').first().waitFor();
  await third.getByText('This link does not work any more').waitFor();
  // A token that is revoked signs the tab out.
  const names = (await daemon.call('GET', '/tokens')).items.filter(({ name, state }) => name !== 'tests' && state === 'live').map(({ name }) => name);
  for (const name of names) await daemon.call('DELETE', `/tokens/${encodeURIComponent(name)}`);
  await page.getByRole('button', { name: 'Sign in' }).waitFor();
  browser.tabs.forEach((tab) => (tab.faults = tab.faults.filter((fault) => !fault.includes('401'))));
}

export async function aHostileSessionStaysText({ daemon, browser }) {
  const { hostile } = await fleet(daemon);
  const page = await browser.open(daemon);
  await row(page, hostile.session).waitFor();
  await go(page, '#/approvals');
  await page.locator('.item', { hasText: 'gnp.exe' }).click();
  await page.locator('.question', { hasText: 'hidden characters' }).waitFor();
  await go(page, `#/session/${hostile.session}`);
  await page.waitForFunction(() => document.querySelector('main')?.textContent?.includes('gnp.exe'));
  await go(page, `#/session/${hostile.session}/events`);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('main script, main img[src^="x"], main [onerror]').count(), 0);
  assert.equal(await page.locator('a[href^="javascript" i]').count(), 0);
  // No character that turns the reading direction is in the document.
  assert.equal(await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069]/.test(document.body.textContent ?? '')), false);
}
