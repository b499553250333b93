import * as vscode from 'vscode';

/** What is asked of other extensions at the moment; our own provider, which is asked as well, stays silent then. */
const asked = new Set<string>();

/** Kinds of completions that schemas make: keys and values, no words of the text. */
const OF_SCHEMAS = new Set([
  vscode.CompletionItemKind.Property,
  vscode.CompletionItemKind.Value,
  vscode.CompletionItemKind.Enum,
]);
const SOURCES = /^jsonc?$/i;

/** Return whether VS Code's own JSON support looks after a document. */
export function isCheckedByOthers({ languageId }: vscode.TextDocument): boolean {
  return languageId === 'json' || languageId === 'jsonc';
}

/** Return whether VS Code's own JSON support has the outline and the breadcrumb of a document, which show every outline. */
export function hasOutlineOfOthers(document: vscode.TextDocument): boolean {
  return isCheckedByOthers(document) && vscode.extensions.getExtension('vscode.json-language-features') !== undefined;
}

/** Return whether VS Code's own JSON support may have a schema for a document, by its text or by the settings. */
export function mayHaveSchema(document: vscode.TextDocument): boolean {
  const schemas = vscode.workspace.getConfiguration('json', document).get<unknown[]>('schemas', []);
  return isCheckedByOthers(document) && (schemas.length > 0 || document.getText().includes('"$schema"'));
}

/** Return whether another provider has a hover for a position. */
export async function hasHoverOfOthers(document: vscode.TextDocument, position: vscode.Position): Promise<boolean> {
  const hovers = await alone<vscode.Hover[]>('vscode.executeHoverProvider', document, position);
  const texts = (hovers ?? []).flatMap(({ contents }) => contents).map((item) => (typeof item === 'string' ? item : item.value));
  return texts.some((text) => text.trim() !== ''); // of keys it does not know a schema says nothing, at length
}

/** Return the names of the keys and values that other providers complete at a position. */
export async function completionsOfOthers(
  document: vscode.TextDocument,
  position: vscode.Position,
): Promise<ReadonlySet<string>> {
  const list = await alone<vscode.CompletionList>('vscode.executeCompletionItemProvider', document, position);
  const items = (list?.items ?? []).filter(({ kind }) => kind !== undefined && OF_SCHEMAS.has(kind));
  return new Set(items.map(nameOf));
}

/** Return what VS Code's own JSON support reports about a document; for faults by a schema it gives no source. */
export function problemsOfOthers(uri: vscode.Uri): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter(({ source }) => !source || SOURCES.test(source));
}

/** Return the name that a completion is shown under, without quotes. */
export function nameOf(item: vscode.CompletionItem): string {
  const label = typeof item.label === 'string' ? item.label : item.label.label;
  return label.replace(/^"|"$/g, '');
}

/** Return whether a request of VS Code is one that was made here, to hear what others say. */
export function isOurQuestion(document: vscode.TextDocument, position: vscode.Position): boolean {
  return asked.has(key(document, position));
}

async function alone<Answer>(
  command: string,
  document: vscode.TextDocument,
  position: vscode.Position,
): Promise<Answer | undefined> {
  asked.add(key(document, position));
  try {
    return await vscode.commands.executeCommand<Answer | undefined>(command, document.uri, position);
  } finally {
    asked.delete(key(document, position));
  }
}

function key(document: vscode.TextDocument, position: vscode.Position): string {
  return `${document.uri.toString()} ${document.version} ${position.line}:${position.character}`;
}

/** Have `changed` called when VS Code's own JSON support reports other places of an open document than before. */
export function onDidChangeProblemsOfOthers(changed: () => void): vscode.Disposable {
  const before = new Map<string, string>();
  const listening = vscode.languages.onDidChangeDiagnostics(({ uris }) => {
    for (const uri of uris) {
      const places = problemsOfOthers(uri).map(({ range: { start } }) => `${start.line}:${start.character}`).join(' ');
      if ((before.get(uri.toString()) ?? '') !== places) {
        before.set(uri.toString(), places);
        const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
        if (document && isCheckedByOthers(document)) {
          changed();
        }
      }
    }
  });
  const closing = vscode.workspace.onDidCloseTextDocument(({ uri }) => before.delete(uri.toString()));
  return vscode.Disposable.from(listening, closing);
}
