import * as vscode from 'vscode';

import type { Session } from '../client/session';
import { chooseInterpreter, createEnvironment, report } from './commands';
import type { Finder } from './find';
import type { Installer } from './installer';
import type { Problem, Remedy } from './problem';

/** Whether the person wants no question about an environment. */
const NEVER = 'dsmigrate.neverAskForEnvironment';

/** Tells why there is no server, once for each reason, with what can be done as buttons. */
export class Problems implements vscode.Disposable {
  private readonly listening: vscode.Disposable;
  private last = '';

  constructor(
    private readonly session: Session,
    private readonly context: vscode.ExtensionContext,
    private readonly finder: Finder,
    private readonly installer: Installer,
  ) {
    this.listening = session.onDidFail((problem) => void this.tell(problem));
  }

  dispose(): void {
    this.listening.dispose();
  }

  private async tell(problem: Problem): Promise<void> {
    if (problem.message === this.last) {
      return; // it is still on the screen
    }
    if (problem.isQuestion && this.context.globalState.get<boolean>(NEVER, false)) {
      this.session.log.info('the question about an environment is not asked again; the commands make or choose one');
      return;
    }
    this.last = problem.message;
    const remedies: Remedy[] = problem.isQuestion ? [...problem.remedies, 'never'] : [...problem.remedies];
    const titles = new Map(remedies.map((remedy) => [this.title(remedy), remedy]));
    const show = problem.isQuestion ? vscode.window.showInformationMessage : vscode.window.showErrorMessage;
    const chosen = await show<string>(problem.message, ...titles.keys());
    this.last = '';
    const remedy = chosen === undefined ? undefined : titles.get(chosen);
    if (remedy) {
      await this.apply(remedy);
    }
  }

  private title(remedy: Remedy): string {
    const titles: Record<Remedy, string> = {
      create: vscode.l10n.t('Create Environment'),
      choose: vscode.l10n.t('Choose Interpreter'),
      log: vscode.l10n.t('Show Log'),
      restart: vscode.l10n.t('Restart'),
      report: vscode.l10n.t('Report'),
      trust: vscode.l10n.t('Manage Trust'),
      settings: vscode.l10n.t('Open Settings'),
      help: vscode.l10n.t('What to Do'),
      never: vscode.l10n.t("Don't Ask Again"),
    };
    return titles[remedy];
  }

  private async apply(remedy: Remedy): Promise<unknown> {
    switch (remedy) {
      case 'create':
        return createEnvironment(this.session, this.finder, this.installer);
      case 'choose':
        return chooseInterpreter(this.session, this.finder);
      case 'log':
        return this.session.log.show();
      case 'restart':
        return this.session.restart();
      case 'report':
        return report(this.session, this.context);
      case 'trust':
        return vscode.commands.executeCommand('workbench.trust.manage');
      case 'settings':
        return vscode.commands.executeCommand('workbench.action.openSettings', 'dsmigrate.server');
      case 'help':
        return vscode.commands.executeCommand('workbench.action.openWalkthrough', `${this.context.extension.id}#start`, false);
      case 'never':
        return this.context.globalState.update(NEVER, true);
    }
  }
}
