import * as vscode from 'vscode';
import type { AnnotatedTextEdit, TextDocumentEdit, TextEdit } from 'vscode-languageclient';

import type { Conversion } from '../answers';

/** How a conversion is applied: each change chosen in the refactor preview, or another config replaced. */
export interface Manner {
  choose?: boolean;
  replaceConfig?: boolean;
}

/**
 * A conversion as one edit: the script, the modules it trains with, and the config beside it, which is there on the disk
 * as soon as the script refers to it. Every change carries the decisions behind it.
 */
export async function editOf(conversion: Conversion, script: vscode.Uri, manner: Manner): Promise<vscode.WorkspaceEdit> {
  const edit = new vscode.WorkspaceEdit();
  const annotations = conversion.edit?.changeAnnotations ?? {};
  const files = [script, ...conversion.modules.map((module) => vscode.Uri.parse(module.uri))];
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
