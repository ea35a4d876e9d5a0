// What axe finds in a page.

import { readFile } from 'node:fs/promises';

/**
 * The CSP allows no script of ours in the page; the driver evaluates it from outside.
 * @param {import('./browser.mjs').Browser} browser
 * @param {any} page
 * @returns {Promise<string[]>}
 */
export async function check(browser, page) {
  await page.evaluate(await readFile(browser.require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} (${failureSummary.split('\n')[1]?.trim()})`).join(' | ')}`);
}
