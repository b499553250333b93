import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import { closeAll, codeOf, problem, problems, replace, root, session, show, until, write } from '../support/editor';

const gone = (uri: vscode.Uri, code: string): Promise<boolean> =>
  until(() => problems(uri).every((item) => codeOf(item) !== code), `the end of ${code}`);

describe('diagnostics', () => {
  before(async () => {
    await (await session()).start();
  });
  afterEach(closeAll);

  it('have a code with its page, a place, and go away with the mistake', async () => {
    const { document } = await show('place/ds_config.json', '{\n  "train_batch_size": 8,\n  "zero_optimizatoin": {"stage": 2}\n}\n');
    const found = await problem(document.uri, 'DS101');
    assert.equal(document.getText(found.range), '"zero_optimizatoin"');
    assert(typeof found.code === 'object' && found.code.target.toString().includes('DS101'));
    await replace(document, 'optimizatoin', 'optimization');
    await gone(document.uri, 'DS101');
  });

  it('come for a file that becomes a config while it is typed', async () => {
    const { document } = await show('typed/other.json', '{\n  \n}\n');
    assert.deepEqual(problems(document.uri), []);
    await replace(document, '  \n', '  "zero_optimization": {"stage": 7}\n');
    const found = await problem(document.uri, 'DS123');
    assert.equal(document.getText(found.range), '7');
  });

  it('come for a config that was never saved', async () => {
    const document = await vscode.workspace.openTextDocument({
      language: 'json',
      content: '{"zero_optimization": {"stage": 7}}',
    });
    await vscode.window.showTextDocument(document);
    const found = await problem(document.uri, 'DS123');
    assert.equal(document.getText(found.range), '7');
  });

  it('come for Hjson, which VS Code has no language for', async () => {
    const { document } = await show('hjson/ds_config.hjson', '{\n  # a comment\n  zero_optimization: {stage: 7}\n}\n');
    const found = await problem(document.uri, 'DS123');
    assert.equal(document.getText(found.range), '7');
  });

  it('come at the exact place in a script', async () => {
    const text = 'import deepspeed\n\nds_config = {\n    "zero_optimization": {"stage": 7},\n}\nengine, *_ = deepspeed.initialize(model=None, config=ds_config)\n';
    const { document } = await show('script/train.py', text);
    const found = await problem(document.uri, 'DS123');
    assert.equal(document.getText(found.range), '7');
    assert.equal(found.range.start.line, 3);
  });

  it('come for files that nobody has opened', async () => {
    const uri = await write('closed/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n');
    await problem(uri, 'DS101');
    await vscode.workspace.fs.delete(uri);
    await gone(uri, 'DS101');
  });

  it('are those of each folder for the same mistake in two of its files, once each', async () => {
    const text = '{"train_batch_size": 8, "zero_optimizatoin": {"stage": 2}}\n';
    const [one, two] = [await write('twice/ds_one.json', text), await show('twice/ds_two.json', text)];
    await Promise.all([problem(one, 'DS101'), problem(two.document.uri, 'DS101')]);
    for (const uri of [one, two.document.uri]) {
      assert.equal(problems(uri).filter((item) => codeOf(item) === 'DS101').length, 1);
    }
  });

  it('leave JSON alone that is no config, and files of other extensions', async () => {
    const { document } = await show('alone/tsconfig.json', '{"compilerOptions": {"strict": true}}\n');
    const other = await show('alone/data.json', '{"train": 1, "stage": 7}\n');
    await problem(await write('alone/ds_config.json', '{"train_batch_size": 8, "zero_optimizatoin": {}}\n'), 'DS101');
    assert.deepEqual([...problems(document.uri), ...problems(other.document.uri)], []);
    assert(root().scheme === 'file');
  });
});
