// @ts-check
// Draws media/icon.png from media/icon.svg, as the Marketplace takes no SVG: `npm run icon`.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const SIZE = 256;
const at = (/** @type {string} */ name) => fileURLToPath(new URL(`../media/${name}`, import.meta.url));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage({ viewport: { width: SIZE, height: SIZE } });
  const svg = readFileSync(at('icon.svg'), 'utf8');
  await page.setContent(`<style>*{margin:0}svg{display:block;width:${SIZE}px;height:${SIZE}px}</style>${svg}`);
  await page.screenshot({ path: at('icon.png'), omitBackground: true });
} finally {
  await browser.close();
}
