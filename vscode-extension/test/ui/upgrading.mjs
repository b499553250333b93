// @ts-check
import { strict as assert } from 'node:assert';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { accessible, closed, until } from './person.mjs';

const OLD = 'zero3_old.json';
const TEXT = `{
  "train_batch_size": 8,
  "zero_optimization": { "stage": 3 }
}
`;

/** From the explorer, applied from the panel and taken back. @param {import('./person.mjs').Person} person */
export async function fromExplorer(person) {
  const { page, profile } = person;
  const config = join(profile.workspace, OLD);
  writeFileSync(config, TEXT);
  await person.run('View: Close All Editors');
  await page.keyboard.press('Control+Shift+E');
  const row = page.locator('.explorer-folders-view .monaco-list-row').filter({ hasText: OLD });
  await row.click({ button: 'right' });
  await page.locator('.monaco-menu .action-item').filter({ hasText: /^DeepSpeed$/ }).hover();
  const menu = page.locator('.monaco-submenu');
  const entry = menu.locator('.action-item').filter({ hasText: 'Upgrade Config to the Newest DeepSpeed' });
  await entry.waitFor();
  await person.picture('explorer-menu', false);
  const titles = await menu.locator('.action-label').allTextContents();
  assert.ok(titles.some((title) => title.startsWith('Explain Changes Since HEAD')), String(titles));
  assert.ok(!titles.some((title) => title.includes('Convert')), 'it is no script');
  await person.choose(entry);
  await person.answer('Upgrade to DeepSpeed', '0.16.4');
  const panel = await person.panel('DeepSpeed 0.16.4 →');
  await closed(panel);
  await accessible(panel);
  await person.picture('upgrade');
  assert.equal(readFileSync(config, 'utf8'), TEXT);
  await panel.getByRole('button', { name: 'Apply' }).click();
  await panel.locator('.verdict', { hasText: 'Applied' }).waitFor();
  await until(page, () => readFileSync(config, 'utf8').includes('"gradient_clipping": 0'), 'the config is upgraded');
  await person.picture('upgrade-applied');
  await panel.getByRole('button', { name: 'Undo' }).click();
  await panel.locator('.verdict', { hasText: 'To do' }).waitFor();
  await until(page, () => readFileSync(config, 'utf8') === TEXT, 'it is all taken back');
}

/** Two configs that are selected are compared. @param {import('./person.mjs').Person} person */
export async function twoSelected(person) {
  const { page } = person;
  const rows = page.locator('.explorer-folders-view .monaco-list-row');
  await rows.filter({ hasText: OLD }).click();
  await rows.filter({ hasText: 'ds_config.json' }).first().click({ modifiers: ['Control'] });
  await rows.filter({ hasText: 'ds_config.json' }).first().click({ button: 'right' });
  await page.locator('.monaco-menu .action-item').filter({ hasText: /^DeepSpeed$/ }).hover();
  await person.choose(page.locator('.monaco-submenu .action-item').filter({ hasText: 'Compare with Another Config' }));
  const panel = await person.panel(`${OLD} → ds_config.json`);
  await panel.locator('.verdict').first().waitFor();
  await page.locator('.tab').filter({ hasText: '↔' }).first().waitFor();
}
