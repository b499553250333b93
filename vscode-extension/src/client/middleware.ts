import * as vscode from 'vscode';
import { type Middleware, vsdiag } from 'vscode-languageclient/node';

import {
  completionsOfOthers,
  hasHoverOfOthers,
  hasOutlineOfOthers,
  isCheckedByOthers,
  isOurQuestion,
  mayHaveSchema,
  nameOf,
  problemsOfOthers,
} from './others';

/** Rules about keys and types, which a schema, or the grammar of JSON, can tell as well. */
const OF_SCHEMAS = /^DS1\d\d$/;

/**
 * Lets every key and problem have one voice: where a schema speaks already, because a config names one in `$schema` or
 * the settings have one for it, the server is silent about the same thing.
 */
export const middleware: Middleware = {
  async provideHover(document, position, token, next) {
    if (isOurQuestion(document, position)) {
      return null;
    }
    if (!mayHaveSchema(document)) {
      return next(document, position, token);
    }
    const [hover, isTold] = await Promise.all([
      next(document, position, token),
      hasHoverOfOthers(document, position),
    ]);
    return isTold ? null : hover;
  },

  async provideCompletionItem(document, position, context, token, next) {
    if (isOurQuestion(document, position)) {
      return null;
    }
    if (!mayHaveSchema(document)) {
      return next(document, position, context, token);
    }
    const [answer, theirs] = await Promise.all([
      next(document, position, context, token),
      completionsOfOthers(document, position),
    ]);
    const items = (Array.isArray(answer) ? answer : answer?.items ?? []).filter((item) => !theirs.has(nameOf(item)));
    return Array.isArray(answer) ? items : new vscode.CompletionList(items, answer?.isIncomplete);
  },

  provideDocumentSymbols: (document, token, next) => (hasOutlineOfOthers(document) ? null : next(document, token)),

  async provideDiagnostics(document, previous, token, next) {
    const open = document instanceof vscode.Uri ? documentAt(document) : document;
    if (!open || !isCheckedByOthers(open)) {
      return next(document, previous, token);
    }
    const report = await next(document, undefined, token); // in full: what others say may have changed
    if (report?.kind !== vsdiag.DocumentDiagnosticReportKind.full) {
      return report;
    }
    const theirs = problemsOfOthers(open.uri);
    const items = report.items.filter(
      (item) => !OF_SCHEMAS.test(codeOf(item)) || !theirs.some(({ range }) => range.start.isEqual(item.range.start)),
    );
    return { kind: report.kind, items };
  },
};

function documentAt(uri: vscode.Uri): vscode.TextDocument | undefined {
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
}

function codeOf(item: vscode.Diagnostic): string {
  return String(typeof item.code === 'object' ? item.code.value : item.code);
}
