import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import { closeAll, problem, session, show, until } from '../support/editor';

const textOf = (hover: vscode.Hover): string =>
  hover.contents.map((item) => (typeof item === 'string' ? item : item.value)).join('\n');

describe('hover and completion', () => {
  before(async () => {
    await (await session()).start();
  });
  afterEach(closeAll);

  it('a hover tells what a key is and what it does in this file', async () => {
    const { document } = await show('hover/ds_config.json', '{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000}}\n');
    const at = document.positionAt(document.getText().indexOf('reduce_bucket'));
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, at);
    assert.equal(hovers.length, 1);
    const [hover] = hovers;
    assert(hover?.range);
    assert.equal(document.getText(hover.range), '"reduce_bucket_size"');
    assert.match(textOf(hover), /default/i);
    assert.match(textOf(hover), /Bi?B|bytes/);
  });

  it('an accepted key comes with its value, and the file stays JSON', async () => {
    const editor = await show('key/ds_config.json', '{\n  "train_batch_size": 8,\n  «\n}\n');
    await accept('gradient_clipping');
    const { document } = editor;
    await until(() => document.getText().includes('gradient_clipping'), 'the key');
    const value: unknown = JSON.parse(document.getText());
    assert.deepEqual(Object.keys(value as object), ['train_batch_size', 'gradient_clipping']);
  });

  it('an accepted key replaces what was typed of it', async () => {
    const editor = await show('half/ds_config.json', '{\n  "train_batch_size": 8,\n  "gradient_cli«"\n}\n');
    await accept('gradient_clipping');
    await until(() => editor.document.getText().includes('gradient_clipping'), 'the key');
    assert.equal(Object.keys(JSON.parse(editor.document.getText()) as object)[1], 'gradient_clipping');
  });

  it('values are completed with those that are allowed', async () => {
    const { document } = await show('value/ds_config.json', '{"zero_optimization": {"stage": }}\n');
    const list = await vscode.commands.executeCommand<vscode.CompletionList>(
      'vscode.executeCompletionItemProvider',
      document.uri,
      document.positionAt(document.getText().indexOf(': }}') + 2),
    );
    const names = list.items.map(({ label }) => (typeof label === 'string' ? label : label.label));
    for (const stage of ['0', '1', '2', '3']) {
      assert.equal(names.filter((name) => name === stage).length, 1, names.join(' '));
    }
  });

  it('scripts have hovers in their config, in Python spelling', async () => {
    const text = 'import deepspeed\n\nds_config = {"zero_optimization": {"stage": 2, "overlap_comm": True}}\ndeepspeed.initialize(config=ds_config)\n';
    const { document } = await show('script/hover.py', text);
    const at = document.positionAt(text.indexOf('overlap_comm'));
    const hovers = await until(async () => {
      const found = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, at);
      return found.length > 0 && found;
    }, 'a hover');
    assert.equal(hovers.length, 1);
  });

  it('hints and lenses of a script are shown, and go with their settings', async () => {
    const script = 'import deepspeed\nengine = deepspeed.initialize(model=model, config={"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 500000000}})\n';
    const { document } = await show('hints/train.py', script);
    const all = new vscode.Range(0, 0, document.lineCount, 0);
    const hints = (): Thenable<vscode.InlayHint[]> => vscode.commands.executeCommand('vscode.executeInlayHintProvider', document.uri, all);
    const lenses = (): Thenable<vscode.CodeLens[]> => vscode.commands.executeCommand('vscode.executeCodeLensProvider', document.uri, 10);
    await until(async () => (await hints()).length > 0, 'a hint');
    await until(async () => (await lenses()).length > 0, 'a lens');
    const settings = vscode.workspace.getConfiguration('dsmigrate');
    await settings.update('inlayHints', false, vscode.ConfigurationTarget.Workspace);
    await settings.update('codeLens', false, vscode.ConfigurationTarget.Workspace);
    try {
      await until(async () => (await hints()).length === 0, 'no hint');
      await until(async () => (await lenses()).length === 0, 'no lens');
    } finally {
      await settings.update('inlayHints', undefined, vscode.ConfigurationTarget.Workspace);
      await settings.update('codeLens', undefined, vscode.ConfigurationTarget.Workspace);
    }
  });

  it('the outline has one entry a key', async () => {
    const { document } = await show('outline/ds_config.json', '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}\n');
    await until(async () => (await session()).isConfig(document), 'a config');
    const symbols = await until(async () => {
      const found = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>('vscode.executeDocumentSymbolProvider', document.uri);
      return found && found.length > 0 && found;
    }, 'an outline');
    assert.deepEqual(symbols.map(({ name }) => name), ['train_batch_size', 'zero_optimization']);
  });

  it('keys are highlighted without their sections', async () => {
    const { document } = await show('highlights/ds_config.json', '{"zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1000}}\n');
    const at = document.positionAt(document.getText().indexOf('"stage"') + 2);
    const found = await until(async () => {
      const shown = await vscode.commands.executeCommand<vscode.DocumentHighlight[] | undefined>('vscode.executeDocumentHighlights', document.uri, at);
      return shown?.some(({ range }) => document.getText(range) === '"stage3_max_live_parameters"') && shown;
    }, 'a highlight');
    assert(found.every(({ range }) => /^"\w+"$/.test(document.getText(range))), JSON.stringify(found));
  });

  it('a key leads to what decides about it', async () => {
    const { document } = await show('definition/ds_config.json', '{"zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1000}}\n');
    await problem(document.uri, 'DS401').catch(() => undefined);
    const at = document.positionAt(document.getText().indexOf('stage3_max') + 2);
    const found = await vscode.commands.executeCommand<(vscode.Location | vscode.LocationLink)[]>('vscode.executeDefinitionProvider', document.uri, at);
    const ranges = found.map((item) => ('range' in item ? item.range : item.targetRange));
    assert(ranges.some((range) => document.getText(range).includes('stage')), JSON.stringify(ranges));
  });
});

/** Accept a completion by its name, as a person does: open the list, go down to it, press enter. */
async function accept(name: string): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  assert(editor);
  const { version } = editor.document;
  for (let tries = 0; tries < 5 && editor.document.version === version; tries++) {
    const list = await vscode.commands.executeCommand<vscode.CompletionList>(
      'vscode.executeCompletionItemProvider',
      editor.document.uri,
      editor.selection.active,
    );
    const sorted = [...list.items].sort((one, other) => (sortOf(one) < sortOf(other) ? -1 : 1));
    const at = sorted.findIndex((item) => labelOf(item) === name);
    assert(at >= 0, `${name} is among ${sorted.map(labelOf).join(' ')}`);
    await vscode.commands.executeCommand('editor.action.triggerSuggest');
    await new Promise((resolve) => setTimeout(resolve, 400));
    if (editor.document.getText(editor.document.lineAt(editor.selection.active.line).range).trim() === '') {
      for (let down = 0; down < at; down++) {
        await vscode.commands.executeCommand('selectNextSuggestion');
      }
    }
    await vscode.commands.executeCommand('acceptSelectedSuggestion');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

const labelOf = ({ label }: vscode.CompletionItem): string => (typeof label === 'string' ? label : label.label).replaceAll('"', '');
const sortOf = (item: vscode.CompletionItem): string => item.sortText ?? labelOf(item);
