// Each view in both themes and two widths: no violation that axe knows, and a screenshot.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { check } from '../lib/axe.mjs';
import { go, row } from '../lib/browser.mjs';
import { fleet } from '../lib/daemon.mjs';

const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 360, height: 740 } };

export async function everyViewIsAccessible({ daemon, browser, shots }) {
  const { deploy, edit } = await fleet(daemon);
  const views = { fleet: '#/fleet', attention: '#/fleet?state=person,limited,failed&sort=state', approvals: '#/approvals', usage: '#/usage', node: '#/node', audit: '#/audit' };
  for (const tab of ['transcript', 'events', 'changes', 'context', 'prompt', 'policy']) views[`session-${tab}`] = `#/session/${tab === 'changes' ? edit.session : deploy.session}/${tab}`;
  /** @type {string[]} */
  const violations = [];
  for (const [size, look] of Object.entries(SIZES)) {
    for (const scheme of ['light', 'dark']) {
      const page = await browser.open(daemon, { ...look, scheme });
      await row(page, deploy.session).waitFor();
      for (const [name, hash] of Object.entries(views)) {
        await go(page, hash);
        await page.waitForFunction(() => !document.querySelector('main [aria-busy]'));
        if (name === 'approvals') await page.locator('.item', { hasText: 'Deploy production' }).click();
        await page.screenshot({ path: join(shots, `${name}-${size}-${scheme}.png`) });
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
        if (sideways) violations.push(`${name} ${size}: the page scrolls sideways`);
        violations.push(...(await check(browser, page)).map((found) => `${name} ${size} ${scheme}: ${found}`));
      }
      await page.keyboard.press('?');
      await page.getByRole('heading', { name: 'Keys' }).waitFor();
      violations.push(...(await check(browser, page)).map((found) => `keys ${size} ${scheme}: ${found}`));
      await page.screenshot({ path: join(shots, `keys-${size}-${scheme}.png`) });
    }
  }
  assert.deepEqual([...new Set(violations)], []);
}
