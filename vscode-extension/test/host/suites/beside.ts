import { strict as assert } from 'node:assert';
import * as vscode from 'vscode';

import { closeAll, codeOf, pause, problem, root, session, show, until, write } from '../support/editor';

/** A schema as somebody would have it for these files: with texts, types and a closed section. */
const SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {
    train_batch_size: { type: 'integer', description: 'A schema on the batch.' },
    gradient_clipping: { type: 'number', description: 'A schema on clipping.' },
    steps_per_print: { type: 'integer', description: 'A schema on printing.' },
    zero_optimization: {
      type: 'object',
      description: 'A schema on ZeRO.',
      additionalProperties: false,
      properties: { stage: { enum: [0, 1, 2, 3], description: 'A schema on stages.' } },
    },
  },
};

const CONFIG = `{
  "train_batch_size": "8",
  "zero_optimization": {
    "stage": 7,
    "stge": 2
  },
  "bf16": { "enabled": tru },
  «
}
`;

type Where = 'nowhere' | 'in $schema' | 'in the settings';

describe('beside the JSON support of VS Code', () => {
  before(async () => {
    await write('schema.json', JSON.stringify(SCHEMA));
    await (await session()).start();
  });
  afterEach(async () => {
    await vscode.workspace.getConfiguration('json').update('schemas', undefined, vscode.ConfigurationTarget.Workspace);
    await closeAll();
  });

  for (const language of ['json', 'jsonc']) {
    for (const schema of ['nowhere', 'in $schema', 'in the settings'] satisfies Where[]) {
      it(`a ${language} config with a schema ${schema} has one hover and one entry per key, one report per problem`, async () => {
        const document = await open(language, schema);
        await oneHoverPerKey(document);
        await oneEntryPerKey(document);
        await oneReportPerProblem(document);
      });
    }
  }

  it('a fix is offered where a schema reports the problem, and mends it', async () => {
    const text = '{\n  "$schema": "../schema.json",\n  "train_batch_size": 8,\n  "zero_optimization": {"stge": 2}\n}\n';
    const { document } = await show('fix/ds_config.json', text);
    const at = document.positionAt(text.indexOf('"stge"'));
    await until(() => ofSchema(document).some(({ range }) => range.start.isEqual(at)), 'the schema');
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      'vscode.executeCodeActionProvider',
      document.uri,
      new vscode.Range(at, at.translate(0, 3)),
      vscode.CodeActionKind.QuickFix.value,
      10,
    );
    const fix = actions.find(({ title }) => title.endsWith(' stage'));
    assert(fix?.edit, JSON.stringify(actions.map(({ title }) => title)));
    assert(await vscode.workspace.applyEdit(fix.edit));
    await until(() => vscode.languages.getDiagnostics(document.uri).length === 0, 'silence');
  });

  it('comments of a config are reported by nobody once it is JSON with Comments', async () => {
    const text = '{\n  // a comment\n  "train_batch_size": 8\n}\n';
    const { document } = await show('comments/ds_config.json', text);
    await until(() => vscode.languages.getDiagnostics(document.uri).some(({ code }) => code === 521), 'a report');
    const settings = vscode.workspace.getConfiguration('dsmigrate');
    await settings.update('comments', 'jsonc', vscode.ConfigurationTarget.Workspace);
    try {
      await closeAll();
      const again = await show('comments/again/ds_config.json', text);
      const changed = await until(
        () => vscode.workspace.textDocuments.find((item) => item.uri.path === again.document.uri.path && item.languageId === 'jsonc'),
        'another language mode',
      );
      await until(() => vscode.languages.getDiagnostics(changed.uri).every(({ severity }) => severity > 1), 'silence');
    } finally {
      await settings.update('comments', undefined, vscode.ConfigurationTarget.Workspace);
    }
  });
});

async function open(language: string, schema: Where): Promise<vscode.TextDocument> {
  const first = schema === 'in $schema' ? `{\n  "$schema": "../schema.json",` : '{';
  const editor = await show(`${language} ${schema.replaceAll(' ', '_')}/ds_config.${language}`, CONFIG.replace('{', first));
  const document = await vscode.languages.setTextDocumentLanguage(editor.document, language);
  if (schema === 'in the settings') {
    const schemas = [{ fileMatch: [`ds_config.${language}`], url: vscode.Uri.joinPath(root(), 'schema.json').toString() }];
    await vscode.workspace.getConfiguration('json').update('schemas', schemas, vscode.ConfigurationTarget.Workspace);
  }
  if (schema === 'nowhere') {
    await problem(document.uri, 'DS101');
  } else {
    await until(() => ofSchema(document).length > 2, 'the schema');
    await until(() => vscode.languages.getDiagnostics(document.uri).every((item) => codeOf(item) !== 'DS101'), 'our silence');
  }
  return document;
}

function ofSchema(document: vscode.TextDocument): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source !== 'dsmigrate');
}


async function oneHoverPerKey(document: vscode.TextDocument): Promise<void> {
  for (const name of ['train_batch_size', 'zero_optimization', 'stage', 'bf16', 'enabled']) {
    const at = document.positionAt(document.getText().indexOf(`"${name}"`) + 2);
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, at);
    const texts = hovers.map(({ contents }) => contents.map((item) => (typeof item === 'string' ? item : item.value)).join(''));
    const told = texts.filter((text) => text.trim() !== '');
    assert.equal(told.length, 1, `${name}: ${JSON.stringify(texts)}`);
  }
}

async function oneEntryPerKey(document: vscode.TextDocument): Promise<void> {
  const line = document.getText().split('\n').indexOf('  ');
  const list = await vscode.commands.executeCommand<vscode.CompletionList>(
    'vscode.executeCompletionItemProvider',
    document.uri,
    new vscode.Position(line, 2),
  );
  const names = list.items
    .filter(({ kind }) => kind === vscode.CompletionItemKind.Property || kind === vscode.CompletionItemKind.Module)
    .map(({ label }) => (typeof label === 'string' ? label : label.label).replaceAll('"', ''));
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  assert.deepEqual(twice, []);
  for (const name of ['gradient_clipping', 'steps_per_print', 'fp16', 'optimizer', 'prescale_gradients']) {
    assert(names.includes(name), `${name} is among ${names.join(' ')}`);
  }
}

async function oneReportPerProblem(document: vscode.TextDocument): Promise<void> {
  await pause(300);
  const all = vscode.languages.getDiagnostics(document.uri);
  const shown = JSON.stringify(all.map((item) => [item.source, codeOf(item), document.getText(item.range), item.message]));
  const text = document.getText();
  for (const place of ['"8"', '7', '"stge"', 'tru']) {
    const at = document.positionAt(text.indexOf(place === 'tru' ? 'tru }' : place === '7' ? '7,' : place));
    const there = all.filter(({ range }) => range.start.isEqual(at));
    assert.equal(there.length, 1, `${place}: ${shown}`);
  }
}
