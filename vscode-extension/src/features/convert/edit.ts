import * as vscode from 'vscode';
import type { AnnotatedTextEdit, TextDocumentEdit, TextEdit } from 'vscode-languageclient';

import type { Conversion } from '../answers';

/** How a conversion is applied: each change chosen in the refactor preview, or another config replaced. */
export interface Manner {
  choose?: boolean;
  replaceConfig?: boolean;
}

/**
 * A conversion as one edit: the script, the modules it trains with, and the files that it needs beside it (the config,
 * `ds_compat.py`), which are there on the disk as soon as the script refers to them. Every change carries its decisions.
 */
export async function editOf(conversion: Conversion, script: vscode.Uri, manner: Manner): Promise<vscode.WorkspaceEdit> {
  const edit = new vscode.WorkspaceEdit();
  const annotations = conversion.edit?.changeAnnotations ?? {};
  const files = [script, ...conversion.modules.filter(({ isNew }) => !isNew).map(({ uri }) => vscode.Uri.parse(uri))];
  for (const change of conversion.edit?.documentChanges ?? []) {
    const file = files.find((uri) => isOf(change, uri));
    if (file && 'edits' in change) {
      for (const part of change.edits as (TextEdit | AnnotatedTextEdit)[]) {
        const said = 'annotationId' in part ? annotations[part.annotationId] : undefined;
        const { start, end } = part.range;
        const range = new vscode.Range(start.line, start.character, end.line, end.character);
        edit.replace(file, range, part.newText, {
          label: said?.label ?? vscode.l10n.t('Convert to DeepSpeed'),
          description: said?.description ?? '',
          needsConfirmation: manner.choose ?? false,
        });
      }
    }
  }
  for (const { uri, after, isNew } of conversion.modules) {
    if (isNew) {
      const metadata = {
        label: vscode.l10n.t('Convert to DeepSpeed'),
        description: vscode.l10n.t('what converted scripts need besides DeepSpeed'),
        needsConfirmation: manner.choose ?? false,
      };
      edit.createFile(vscode.Uri.parse(uri), { ignoreIfExists: true, contents: new TextEncoder().encode(after) }, metadata);
    }
  }
  await addConfig(edit, conversion, manner);
  return edit;
}

function isOf(change: object, file: vscode.Uri): boolean {
  return 'edits' in change && vscode.Uri.parse((change as TextDocumentEdit).textDocument.uri).path === file.path;
}

async function addConfig(edit: vscode.WorkspaceEdit, { config }: Conversion, manner: Manner): Promise<void> {
  if (!config) {
    return;
  }
  const uri = vscode.Uri.parse(config.uri);
  const metadata = {
    label: vscode.l10n.t('DeepSpeed config'),
    description: vscode.l10n.t('what the converted script trains with'),
    needsConfirmation: manner.choose ?? false,
  };
  if (!config.isThere) {
    const contents = new TextEncoder().encode(config.text);
    edit.createFile(uri, { ignoreIfExists: true, contents }, metadata);
  } else if (manner.replaceConfig) {
    const document = await vscode.workspace.openTextDocument(uri);
    const whole = new vscode.Range(new vscode.Position(0, 0), document.lineAt(document.lineCount - 1).range.end);
    edit.replace(uri, whole, config.text, metadata);
  }
}
