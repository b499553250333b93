import * as vscode from 'vscode';

/** Return whether the folder is trusted; where it is not, say what needs that, with a button that leads there. */
export async function isTrustedFor(what: string): Promise<boolean> {
  if (!vscode.workspace.isTrusted) {
    const trust = vscode.l10n.t('Manage Trust');
    if ((await vscode.window.showInformationMessage(what, trust)) === trust) {
      await vscode.commands.executeCommand('workbench.trust.manage');
    }
  }
  return vscode.workspace.isTrusted;
}
