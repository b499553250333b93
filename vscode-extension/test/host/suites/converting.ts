import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import type { Conversion } from '../../../src/features/answers';
import { editOf } from '../../../src/features/convert/edit';
import { conversionReport } from '../../../src/features/convert/render';
import { closeAll, root, session, show, until, write } from '../support/editor';
import { diffTabs, panelTabs } from '../support/tabs';

const SCRIPT = `import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
model = DDP(torch.nn.Linear(8, 1).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(10):
    loss = model(torch.randn(4, 8, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
`;
const MAIN = SCRIPT.slice(0, SCRIPT.indexOf('for _')).replace(
  'import os\n',
  'import os\n\nfrom loop import train\n',
) + 'train(model, optimizer, local_rank)\n';
const LOOP = `import torch


def train(model, optimizer, local_rank):
    for _ in range(10):
        loss = model(torch.randn(4, 8, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
`;
const REFUSED = SCRIPT.replace('optimizer.step()', 'optimizer.step(lambda: loss)');

const convert = async (uri: vscode.Uri): Promise<Conversion> =>
  (await session()).execute<Conversion>('dsmigrate.convertScript', [uri.toString(), false]);

const exists = (uri: vscode.Uri): Promise<boolean> =>
  Promise.resolve(vscode.workspace.fs.stat(uri)).then(
    () => true,
    () => false,
  );

describe('converting', () => {
  before(async () => {
    await (await session()).start();
  });
  afterEach(closeAll);

  it('shows the changes and the report, and writes nothing', async () => {
    const { document } = await show('convert/shown/train.py', SCRIPT);
    await vscode.commands.executeCommand('dsmigrate.convertToDeepSpeed');
    const [tab] = await until(() => diffTabs().length > 0 && diffTabs(), 'the text diff');
    assert.equal(tab?.original.toString(), document.uri.toString());
    assert.match((await vscode.workspace.openTextDocument(tab.modified)).getText(), /deepspeed\.initialize/);
    const [panel] = await until(() => panelTabs('dsmigrate.conversion').length > 0 && panelTabs('dsmigrate.conversion'));
    assert.equal(panel?.label, 'train.py: Conversion');
    assert.equal(document.getText(), SCRIPT);
    assert(!document.isDirty);
    assert.deepEqual(await vscode.workspace.fs.readDirectory(vscode.Uri.joinPath(document.uri, '..')), [
      ['train.py', vscode.FileType.File],
    ]);
  });

  it('is one edit that also makes the config, and one undo takes both back', async () => {
    const { document } = await show('convert/undone/train.py', SCRIPT);
    const config = vscode.Uri.joinPath(document.uri, '..', 'ds_config.json');
    const conversion = await convert(document.uri);
    assert.equal(conversion.status, 'converted');
    assert(await vscode.workspace.applyEdit(await editOf(conversion, document.uri, {})));
    assert.equal(document.getText(), conversion.after);
    const written = new TextDecoder().decode(await vscode.workspace.fs.readFile(config));
    assert.equal(written, conversion.config?.text);
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('undo');
    await until(() => document.getText() === SCRIPT, 'the script as it was');
    await until(async () => !(await exists(config)), 'the end of the config');
    await vscode.commands.executeCommand('redo');
    await until(() => document.getText() === conversion.after, 'the conversion again');
    await until(() => exists(config), 'the config again');
  });

  it('changes the modules with the script, as they are shown, and one undo takes all of it back', async () => {
    const loop = await vscode.workspace.openTextDocument(await write('convert/several/loop.py', LOOP));
    const typed = new vscode.WorkspaceEdit();
    typed.insert(loop.uri, new vscode.Position(0, 0), '# not saved yet\n');
    assert(await vscode.workspace.applyEdit(typed));
    const shown = loop.getText();
    const { document } = await show('convert/several/main.py', MAIN);
    const config = vscode.Uri.joinPath(document.uri, '..', 'ds_config.json');
    const conversion = await convert(document.uri);
    assert.equal(conversion.status, 'converted', conversion.reasons.join());
    assert.deepEqual(conversion.modules.map(({ uri }) => vscode.Uri.parse(uri).path), [loop.uri.path]);
    const { text } = conversionReport(conversion, 'main.py', 'preview');
    assert.match(text, /data-do="diff"/);
    assert.match(text, /loop\.py<br>/);
    assert(await vscode.workspace.applyEdit(await editOf(conversion, document.uri, {})));
    assert.equal(document.getText(), conversion.after);
    assert.equal(loop.getText(), conversion.modules[0]?.after);
    assert.match(loop.getText(), /^# not saved yet\n[^]*model\.backward\(loss\)/);
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('undo');
    await until(() => document.getText() === MAIN, 'the script as it was');
    await until(() => loop.getText() === shown, 'the module as it was');
    await until(async () => !(await exists(config)), 'the end of the config');
  });

  it('undoes several files also where the config was there', async () => {
    await write('convert/several/there/ds_config.json', '{"train_batch_size": 64}\n');
    const loop = await vscode.workspace.openTextDocument(await write('convert/several/there/loop.py', LOOP));
    const { document } = await show('convert/several/there/main.py', MAIN);
    const conversion = await convert(document.uri);
    assert(await vscode.workspace.applyEdit(await editOf(conversion, document.uri, {})));
    assert.equal(loop.getText(), conversion.modules[0]?.after);
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('undo');
    await until(() => document.getText() === MAIN, 'the script as it was');
    await until(() => loop.getText() === LOOP, 'the module as it was');
  });

  it('leaves a config that is there alone, unless it is to be replaced', async () => {
    const config = await write('convert/kept/ds_config.json', '{"train_batch_size": 64}\n');
    const { document } = await show('convert/kept/train.py', SCRIPT);
    const conversion = await convert(document.uri);
    assert.equal(conversion.config?.isThere, true);
    const kept = await editOf(conversion, document.uri, {});
    assert.deepEqual(kept.entries().map(([uri]) => uri.toString()), [document.uri.toString()]);
    assert.match(conversionReport(conversion, 'train.py', 'preview').text, /data-do="replace"/);
    assert(await vscode.workspace.applyEdit(await editOf(conversion, document.uri, { replaceConfig: true })));
    assert.equal((await vscode.workspace.openTextDocument(config)).getText(), conversion.config?.text);
  });

  it('says why it refuses, and where', async () => {
    const { document } = await show('convert/refused/train.py', REFUSED);
    const conversion = await convert(document.uri);
    assert.equal(conversion.status, 'refused');
    assert.equal(conversion.edit, null);
    const { text } = conversionReport(conversion, 'train.py', 'preview');
    assert.match(text, /data-do="go" data-line="15"/);
    assert.match(text, /data-word="MG906"/);
    assert.doesNotMatch(text, /data-do="apply"/);
  });

  it('has every decision in its report once', async () => {
    const uri = await write('convert/report/train.py', SCRIPT);
    await vscode.workspace.openTextDocument(uri);
    const conversion = await convert(uri);
    const { text } = conversionReport(conversion, 'train.py', 'preview');
    const codes = [...text.matchAll(/data-word="(\w+)"/g)].map(([, code]) => code);
    assert.deepEqual(codes.toSorted(), conversion.report?.changes.map(({ code }) => code).toSorted());
    for (const command of conversion.launch) {
      assert(text.includes(`data-text="${command}"`), command);
    }
  });

  it('tells what is no script', async () => {
    await show('convert/package.json', '{"name": "x"}\n');
    await vscode.commands.executeCommand('dsmigrate.convertToDeepSpeed');
    assert.deepEqual(panelTabs('dsmigrate.conversion'), []);
    assert(root());
  });
});
