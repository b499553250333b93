import * as vscode from 'vscode';

import { EXPLAIN } from '../client/names';
import type { Session } from '../client/session';
import { Problem } from '../server/problem';
import {
  compareWithClipboard,
  compareWithFile,
  compareWithHead,
  compareWithRevision,
} from './compare/commands';
import { convertScript } from './convert/converting';
import { chooseSubject, explainHere, explainLinked } from './explain';
import { newConfig } from './starter';
import { StatusBar } from './status/bar';
import { choose } from './status/menu';
import { type Tools } from './tools';
import { upgradeConfig } from './upgrade/upgrading';
import { verifyConversion } from './verify/verifying';
import { VirtualTexts } from './virtual';

type Run = (tools: Tools, ...given: unknown[]) => Promise<void>;

const COMMANDS: Record<string, Run> = {
  'dsmigrate.choose': choose,
  'dsmigrate.compareWithHead': compareWithHead,
  'dsmigrate.compareWithRevision': compareWithRevision,
  'dsmigrate.compareWithFile': compareWithFile,
  'dsmigrate.compareWithClipboard': compareWithClipboard,
  'dsmigrate.explainHere': explainHere,
  'dsmigrate.explainWord': chooseSubject,
  'dsmigrate.newConfig': newConfig,
  'dsmigrate.convertToDeepSpeed': convertScript,
  'dsmigrate.upgradeConfig': upgradeConfig,
  'dsmigrate.verifyConversion': verifyConversion,
  // what lenses, code actions and hovers of the server name
  [EXPLAIN]: explainLinked,
  'dsmigrate.diffWithHead': compareWithHead,
  'dsmigrate.convertScript': convertScript,
};

/** Add the commands, the status bar item and the panels; what they show comes from the server of the session. */
export function registerFeatures(context: vscode.ExtensionContext, session: Session): void {
  const texts = new VirtualTexts();
  const facts = new vscode.EventEmitter<void>();
  const tools: Tools = { context, session, texts, facts };
  context.subscriptions.push(texts, facts, new StatusBar(tools));
  for (const [name, run] of Object.entries(COMMANDS)) {
    context.subscriptions.push(
      vscode.commands.registerCommand(name, (...given: unknown[]) => guarded(tools, run, given)),
    );
  }
}

async function guarded(tools: Tools, run: Run, given: readonly unknown[]): Promise<void> {
  try {
    await run(tools, ...given);
  } catch (error) {
    if (error instanceof Problem || error instanceof vscode.CancellationError) {
      return; // the session tells
    }
    const said = error instanceof Error ? error.message : String(error);
    tools.session.log.error(error instanceof Error ? error : said);
    void vscode.window.showErrorMessage(vscode.l10n.t('DeepSpeed: {0}', said));
  }
}
