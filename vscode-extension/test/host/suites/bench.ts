import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as vscode from 'vscode';

import { codeOf, extension, problems, replace, session, show, until } from '../support/editor';

const ROUNDS = 30;
const WRONG = '"zero_optimizatoin"';
const RIGHT = '"zero_optimization"';

/** Measures what a person waits for; `test/bench.mjs` prints it. Nothing here can fail by being slow. */
describe('measurements', () => {
  it('are taken', async function () {
    this.timeout(120_000);
    const found: Record<string, number> = {};
    const { activatedIn } = await extension().activate();
    found['activation, with nothing for it to do'] = activatedIn + loading();
    await new Promise((resolve) => setTimeout(resolve, 1500)); // the rest of the window starts

    const opened = performance.now();
    const { document } = await show('ds_config.json', `{\n  "train_batch_size": 8,\n  ${WRONG}: {"stage": 2}\n}\n`);
    await reported(document.uri, true);
    found['a config opened, to the first diagnostic, with the start of the server'] = performance.now() - opened;

    const client = await (await session()).start();
    const again = performance.now();
    const other = await show('second/ds_config.json', `{\n  "train_batch_size": 8,\n  ${WRONG}: {"stage": 2}\n}\n`);
    await reported(other.document.uri, true);
    found['another config opened, to its first diagnostic'] = performance.now() - again;

    const edits: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [old, text] = round % 2 === 0 ? [WRONG, RIGHT] : [RIGHT, WRONG];
      const edited = performance.now();
      await replace(other.document, old, text);
      await reported(other.document.uri, text === WRONG);
      edits.push(performance.now() - edited);
    }
    found['an edit, to its diagnostics: median'] = percentile(edits, 0.5);
    found['an edit, to its diagnostics: 95th percentile'] = percentile(edits, 0.95);

    for (const [name, command] of [
      ['a hover', 'vscode.executeHoverProvider'],
      ['a completion', 'vscode.executeCompletionItemProvider'],
    ] as const) {
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const asked = performance.now();
        await vscode.commands.executeCommand(command, other.document.uri, new vscode.Position(1, 6));
        times.push(performance.now() - asked);
      }
      found[`${name}: median`] = percentile(times, 0.5);
    }
    found['the server, asked through the client: median'] = await asked(() => client.sendRequest('dsmigrate/viewFileText', { uri: '' }));
    writeFileSync(process.env['DSMIGRATE_BENCH'] ?? 'bench.json', JSON.stringify(found));
  });
});

async function asked(ask: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const began = performance.now();
    await ask();
    times.push(performance.now() - began);
  }
  return percentile(times, 0.5);
}

/** Return how long the code that VS Code loads takes to load: median of copies, which no cache of modules knows. */
function loading(): number {
  const times = Array.from({ length: 9 }, (_, round) => {
    const copy = join(mkdtempSync(join(tmpdir(), 'dsmigrate-bench-')), `extension-${round}.cjs`);
    copyFileSync(join(extension().extensionPath, 'dist', 'extension.js'), copy);
    const began = performance.now();
    createRequire(__filename)(copy);
    const took = performance.now() - began;
    rmSync(join(copy, '..'), { recursive: true });
    return took;
  });
  return percentile(times, 0.5);
}

/** Wait until the mistake is reported, or not any more. */
async function reported(uri: vscode.Uri, is: boolean): Promise<void> {
  const isSo = (): boolean => problems(uri).some((item) => codeOf(item) === 'DS101') === is;
  await until(isSo, () => `the ${is ? 'report' : 'silence'}`, 15_000, 1);
}

function percentile(times: readonly number[], part: number): number {
  const sorted = [...times].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}
