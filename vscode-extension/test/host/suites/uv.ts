import { strict as assert } from 'node:assert';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import * as vscode from 'vscode';

import { closeAll, problem, session, show } from '../support/editor';

const CALLS = process.env['UV_CALLS'] ?? '';
const calls = (): string[][] =>
  readFileSync(CALLS, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as string[]);

describe('where uv is installed', () => {
  before(() => rmSync(CALLS, { force: true }));
  after(closeAll);

  it('it makes the private environment', async () => {
    await vscode.commands.executeCommand('dsmigrate.server.createEnvironment');
    const { state, server } = await session();
    assert.equal(state, 'running');
    assert.equal(server?.origin, 'private');
    const [made, needed, own] = calls();
    assert.equal(calls().length, 3);
    assert.equal(made?.at(-1), join(server?.command ?? '', '..', '..'));
    assert.deepEqual(needed?.slice(0, 5), ['pip', 'install', '--python', server?.command, '--require-hashes']);
    assert.match(own?.at(-1) ?? '', /dsmigrate-.*\.whl$/);
    const { document } = await show('ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(document.uri, 'DS101');
  });
});
