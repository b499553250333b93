// @ts-check
import { strict as assert } from 'node:assert';

import { accessible, closed } from './person.mjs';
import { CONFIG } from './workspace.mjs';

/** @param {import('./person.mjs').Person} person */
export async function fromSourceControl(person) {
  const { page } = person;
  await page.keyboard.press('Control+Shift+G');
  const change = page.locator('.scm-view .monaco-list-row').filter({ hasText: CONFIG }).first();
  await change.click({ button: 'right' });
  const entry = page.locator('.monaco-menu .action-item').filter({ hasText: 'Explain Changes Since HEAD' });
  await entry.waitFor();
  await person.picture('source-control');
  await entry.click();
  const panel = await person.panel('Stage 2 checkpoints do not load');
  await closed(panel);
  await accessible(panel);
  assert.equal(await panel.locator('.bars svg').count(), 2, 'memory before and after');
  await page.keyboard.press('Control+B'); // more room
  await person.picture('comparison');
  await panel.getByText('Figures').click();
  await panel.locator('tfoot').scrollIntoViewIfNeeded();
  await accessible(panel);
  await person.inContrastLight(panel, 'comparison');
  await person.picture('comparison-memory');
}

/** The panel follows the text, and its buttons lead to the lines. @param {import('./person.mjs').Person} person */
export async function follow(person) {
  const { page } = person;
  const panel = await person.panel('Stage 2 checkpoints do not load');
  const place = panel.locator('button.value', { hasText: '3' }).first();
  await place.focus();
  await page.keyboard.press('Enter'); // by keyboard alone
  await person.status('selected').waitFor();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('2');
  await panel.getByText('Stage 2 checkpoints do not load').first().waitFor({ state: 'detached' });
  assert.match((await panel.locator('[role=status]').textContent()) ?? '', /effective batch 256 → 512/, 'it is spoken');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('3');
  await person.line('"stage": 3').waitFor();
  await panel.getByText('Stage 2 checkpoints do not load').first().waitFor();
}

/** @param {import('./person.mjs').Person} person */
export async function withClipboard(person) {
  const { page } = person;
  await person.open(CONFIG);
  await person.line('"stage": 3').click();
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Control+C');
  await person.status('ZeRO-3 · bf16').waitFor();
  await person.run('DeepSpeed: Compare with Clipboard');
  const panel = await person.panel('clipboard → working copy');
  await panel.locator('.verdict', { hasText: 'The same' }).waitFor();
}

/** @param {import('./person.mjs').Person} person */
export async function explained(person) {
  const panel = await person.panel('Stage 2 checkpoints do not load');
  await panel.locator('button[data-word="DF403"]').click();
  const deadline = Date.now() + 60_000;
  for (;;) {
    const titles = await Promise.all(
      person.page.frames().map((frame) => frame.locator('h1').first().textContent({ timeout: 200 }).catch(() => '')),
    );
    if (titles.some((title) => title?.includes('DF403'))) {
      break;
    }
    assert.ok(Date.now() < deadline, `the page of DF403 is shown: ${titles}`);
  }
  await person.picture('explained');
}
