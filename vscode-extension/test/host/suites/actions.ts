import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import { closeAll, pause, problem, problems, session, show, until } from '../support/editor';

const BROKEN = '{\n  "train_batch_size": "8",\n  "zero_optimization": {"stage": "2", "cpu_offload": true}\n}\n';
const MENDED = '{\n  "train_batch_size": 8,\n  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}\n}\n';

describe('quick fixes', () => {
  before(async () => {
    await (await session()).start();
  });
  afterEach(closeAll);

  it('one is offered for a problem, mends it, and is undone in one step', async () => {
    const { document } = await show('one/ds_config.json', BROKEN);
    const found = await problem(document.uri, 'DS121');
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      'vscode.executeCodeActionProvider',
      document.uri,
      found.range,
      vscode.CodeActionKind.QuickFix.value,
      20,
    );
    const fix = actions.find(({ isPreferred }) => isPreferred);
    assert(fix?.edit, JSON.stringify(actions.map(({ title }) => title)));
    assert(await vscode.workspace.applyEdit(fix.edit));
    assert.equal(document.getText(), BROKEN.replace('"8"', '8'));
    await vscode.commands.executeCommand('undo');
    assert.equal(document.getText(), BROKEN);
  });

  it('the light bulb of the editor applies the preferred one', async () => {
    const editor = await show('bulb/ds_config.json', BROKEN);
    const found = await problem(editor.document.uri, 'DS121');
    editor.selection = new vscode.Selection(found.range.start, found.range.start);
    await vscode.commands.executeCommand('editor.action.autoFix');
    await until(() => editor.document.getText() === BROKEN.replace('"8"', '8'), 'the fix');
  });

  it('Fix All mends all that is safe', async () => {
    const { document } = await show('all/ds_config.json', BROKEN);
    await problem(document.uri, 'DS121');
    await until(
      async () => {
        if (document.getText() === BROKEN) {
          await vscode.commands.executeCommand('editor.action.fixAll'); // nothing, before the editor knows who can
          await pause(700);
        }
        return document.getText() === MENDED;
      },
      () => `the fixes, not ${document.getText()},`,
    );
    await until(() => problems(document.uri).every(({ severity }) => severity > 1), 'silence');
  });

  it('what is safe is mended on saving, when the settings have it so', async () => {
    const settings = vscode.workspace.getConfiguration('editor');
    await settings.update('codeActionsOnSave', { 'source.fixAll.dsmigrate': 'explicit' }, vscode.ConfigurationTarget.Workspace);
    try {
      const { document } = await show('save/ds_config.json', BROKEN);
      await problem(document.uri, 'DS121');
      await until(async () => {
        const edit = new vscode.WorkspaceEdit();
        edit.insert(document.uri, document.positionAt(document.getText().length), '\n');
        await vscode.workspace.applyEdit(edit);
        return (await document.save()) && document.getText().trim() === MENDED.trim(); // VS Code waits a second for it
      }, 'the fixes');
      assert.equal(document.getText().trim(), MENDED.trim());
      assert(!document.isDirty);
    } finally {
      await settings.update('codeActionsOnSave', undefined, vscode.ConfigurationTarget.Workspace);
    }
  });

  it('another ZeRO stage is a refactoring', async () => {
    const { document } = await show('stage/ds_config.json', '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n');
    const at = document.positionAt(document.getText().indexOf('"stage"') + 2);
    const actions = await until(async () => {
      const found = await vscode.commands.executeCommand<vscode.CodeAction[]>(
        'vscode.executeCodeActionProvider',
        document.uri,
        new vscode.Range(at, at),
        vscode.CodeActionKind.RefactorRewrite.value,
        20,
      );
      return found.length > 0 && found;
    }, 'refactorings');
    const three = actions.find(({ title }) => title.includes('stage 3'));
    assert(three?.edit, JSON.stringify(actions.map(({ title }) => title)));
    assert(await vscode.workspace.applyEdit(three.edit));
    const config = JSON.parse(document.getText()) as { zero_optimization: { stage: number } };
    assert.equal(config.zero_optimization.stage, 3);
  });
});
