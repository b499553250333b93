// @ts-check

/** @param {import('./person.mjs').Person} person */
export async function newConfig(person) {
  const { page } = person;
  await person.run('DeepSpeed: New Config…');
  await person.row('ZeRO').waitFor();
  await person.picture('starters');
  await page.keyboard.press('Enter');
  await page.locator('.tab.active', { hasText: 'ds_config_2.json' }).waitFor(); // ds_config.json is there
  await person.line('"train_micro_batch_size_per_gpu"').waitFor();
  await page.keyboard.type('16'); // the first number is selected
  await person.line('"train_micro_batch_size_per_gpu": 16').waitFor();
  await page.keyboard.press('Escape');
  await person.picture('starter');
}

/** @param {import('./person.mjs').Person} person */
export async function walkthrough(person) {
  const { page } = person;
  await person.run('View: Close All Editors');
  await person.run('Welcome: Open Walkthrough');
  await person.row('DeepSpeed').waitFor();
  await person.row('DeepSpeed').click();
  const steps = page.locator('.getting-started-step');
  await steps.first().waitFor();
  await steps.filter({ hasText: 'Get the language server running' }).getByText('Choose Interpreter').waitFor();
  await steps.filter({ hasText: 'Open or begin a config' }).click();
  await page.locator('.getting-started-media img').first().waitFor();
  await person.picture('walkthrough');
}
