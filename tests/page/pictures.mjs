// The pictures of README.md and docs/page.md: `just pictures`. A daemon with a scripted fleet, seen in chromium.

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browser, go, row } from './lib/browser.mjs';
import { Daemon, fleet } from './lib/daemon.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const into = resolve(process.argv[2] ?? join(root, 'docs/pictures'));
const chromium = process.env.CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync) ?? '/usr/bin/chromium';

await mkdir(into, { recursive: true });
const browser = await Browser.start({ modules: process.env.AGENTD_PAGE_MODULES ?? join(root, 'target/page/node_modules'), chromium });
const daemon = await Daemon.start({
  agentd: resolve(process.env.AGENTD ?? join(root, 'target/debug/agentd')),
  agentctl: resolve(process.env.AGENTCTL ?? join(root, 'target/debug/agentctl')),
});
try {
  const { deploy } = await fleet(daemon);
  for (const [name, scheme, hash] of /** @type {const} */ ([
    ['approvals', 'light', '#/approvals'],
    ['session', 'dark', `#/session/${deploy.session}`],
    ['fleet', 'light', '#/fleet?sort=state'],
  ])) {
    const page = await browser.open(daemon, { scheme, width: 1280, height: 760 });
    await row(page, deploy.session).waitFor();
    await go(page, hash);
    await page.waitForFunction(() => !document.querySelector('main [aria-busy]'));
    if (name === 'approvals') await page.locator('.item', { hasText: 'Deploy production' }).click();
    // The daemon counts once a minute; a line shows something from the third count on.
    if (name === 'fleet') await page.waitForFunction(() => (document.querySelector('.tile-chart polyline')?.getAttribute('points') ?? '').split(' ').length > 2, null, { timeout: 300_000 });
    await page.screenshot({ path: join(into, `${name}-${scheme}.png`) });
  }
} finally {
  await browser.chromium.close();
  await daemon.end();
}
console.log(`the pictures are in ${into}`);
