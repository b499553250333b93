// @ts-check
import { strict as assert } from 'node:assert';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { until } from './person.mjs';
import { CONFIG } from './workspace.mjs';

const WRONG = 'zero3_offload.json';
const TEXT = `{
  "train_micro_batch_size_per_gpu": 8,
  "gradient_accumulation_steps": 4,
  "gradient_clipping": 1.0,
  "bf16": { "enabled": true },
  "zero_optimization": {
    "stage": 3,
    "overlap_com": true,
    "reduce_bucket_size": 5e8,
    "stage3_prefetch_bucket_size": 5e7,
    "offload_optimizer": { "device": "cpu" }
  },

  "fp16": { "enabled": true }
}
`;

/** @param {import('./person.mjs').Person} person */
export async function problems(person) {
  const { page, profile } = person;
  writeFileSync(join(profile.workspace, WRONG), TEXT);
  await person.open(WRONG);
  await page.locator('.squiggly-error').first().waitFor();
  await person.status('ZeRO-3').waitFor();
  await page.keyboard.press('Control+Shift+M');
  const rows = page.locator('.markers-panel-container .monaco-list-row');
  await rows.filter({ hasText: 'overlap_com' }).first().waitFor();
  assert.equal(await rows.filter({ hasText: 'overlap_com' }).count(), 1, 'a problem has one entry');
  assert.equal(await page.locator('.codelens-decoration').getByText('ZeRO-3').count(), 0, 'the status says it, no lens');
  await person.run('Output: Focus on Output View');
  await page.locator('.part.panel .action-item.checked').filter({ hasText: 'Output' }).waitFor();
  await page.waitForTimeout(500); // as long as the status takes to follow
  await person.status('ZeRO-3').waitFor(); // still there
  await page.keyboard.press('Control+Shift+M');
  await rows.filter({ hasText: 'overlap_com' }).first().waitFor();
  await page.locator('.view-line').getByText('GiB').first().waitFor(); // an inlay hint
  await person.picture('problems');
  await page.keyboard.press('Control+J'); // the panel goes
  await page.locator('.markers-panel-container').waitFor({ state: 'hidden' });
}

/** @param {import('./person.mjs').Person} person */
export async function hover(person) {
  const { page } = person;
  await person.line('stage3_prefetch_bucket_size').getByText('stage3_prefetch_bucket_size').first().hover();
  const hovers = page.locator('.monaco-hover:visible .hover-row');
  await hovers.getByText('gathers ahead').first().waitFor();
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(person.pictures, 'hover.png'), animations: 'disabled', caret: 'hide' });
  assert.equal(await hovers.filter({ hasText: 'gathers ahead' }).count(), 1, 'a key has one hover');
  await hovers.getByText('More', { exact: true }).click();
  await page.locator('.tab').filter({ hasText: 'stage3_prefetch_bucket_size' }).waitFor();
  await person.picture('more');
  await person.run('View: Revert and Close Editor');
  await page.keyboard.press('Control+1');
  await person.run('DeepSpeed: Explain a Key, Type or Rule…');
  await page.locator('.quick-input-widget input').first().fill('zero_optimization.stage');
  await person.row('zero_optimization.stage').waitFor();
  const first = page.locator('.quick-input-list .monaco-list-row[data-index="0"] .label-name').first();
  assert.equal(await first.textContent(), 'zero_optimization.stage', 'the very key comes first');
  await page.keyboard.press('Escape');
}

/** @param {import('./person.mjs').Person} person */
export async function completion(person) {
  const { page } = person;
  await page.keyboard.press('Escape');
  await person.line('"offload_optimizer"').click();
  await page.keyboard.press('Home');
  await page.keyboard.press('Control+Enter'); // a line below
  await page.keyboard.type('"st');
  const list = page.locator('.suggest-widget.visible');
  await list.getByText('stage3_max_live_parameters').first().waitFor();
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(person.pictures, 'completion.png'), animations: 'disabled', caret: 'hide' });
  const names = await list.locator('.monaco-list-row .label-name').allTextContents();
  assert.equal(new Set(names).size, names.length, 'a key is offered once');
  await page.keyboard.press('Escape');
  for (let times = 0; times < 3; times++) {
    await page.keyboard.press('Control+Z');
  }
}

/** @param {import('./person.mjs').Person} person */
export async function quickFix(person) {
  const { page } = person;
  await person.line('"overlap_com"').getByText('overlap_com').first().click();
  await page.keyboard.press('Control+.');
  const menu = page.locator('.action-widget');
  const fix = menu.locator('.monaco-list-row').filter({ hasText: 'overlap_comm' }).first();
  await fix.waitFor();
  await page.screenshot({ path: join(person.pictures, 'quick-fix.png'), animations: 'disabled', caret: 'hide' });
  await fix.click();
  await person.line('"overlap_comm"').waitFor();
}

/** @param {import('./person.mjs').Person} person */
export async function menu(person) {
  const { page } = person;
  await person.open(CONFIG);
  await person.status('ZeRO-3 · bf16').click();
  await person.row('World size').waitFor();
  await person.picture('menu');
  await person.row('World size').click();
  await person.answer('Number of GPUs', '8');
  await person.status('batch 512').waitFor();
  await person.status('ZeRO-3 · bf16').click();
  await person.row('Parameters of the model').click();
  await person.answer('Parameters of the Model', '7b');
  const kept = join(person.profile.workspace, '.vscode', 'settings.json');
  assert.ok(!existsSync(kept), 'the session alone has it');
  await page.locator('#status\\.notifications').click(); // under test VS Code shows messages there alone
  const told = page.locator('.notifications-center .monaco-list-row').filter({ hasText: 'dsmigrate.parameters is 7b' });
  await told.waitFor();
  await person.picture('menu-keep');
  await told.locator('.monaco-button', { hasText: 'Keep in the Workspace' }).click();
  await until(page, () => existsSync(kept) && readFileSync(kept, 'utf8').includes('"dsmigrate.parameters": "7b"'), 'it is kept');
  assert.doesNotMatch(readFileSync(kept, 'utf8'), /worldSize/);
  await person.tidy();
  await page.keyboard.press('Escape');
}
