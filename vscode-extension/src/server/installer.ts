import * as vscode from 'vscode';

import type { PrivateEnvironment, Tools } from './environment';

/** Makes the private environment: shows how far it is, and writes everything down in the log. */
export class Installer {
  private making: Promise<string> | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly tools: () => Promise<Tools>,
  ) {}

  /** Make the environment, which takes half a minute, and return its interpreter. */
  make(environment: PrivateEnvironment): Promise<string> {
    this.making ??= this.withProgress(environment).finally(() => {
      this.making = undefined;
    });
    return this.making;
  }

  private withProgress(environment: PrivateEnvironment): Promise<string> {
    const options = {
      location: vscode.ProgressLocation.Notification,
      title: vscode.l10n.t('Private environment for DeepSpeed'),
      cancellable: true,
    };
    const made = vscode.window.withProgress(options, async (progress, token) => {
      const began = Date.now();
      const tools = await this.tools();
      this.log.info(`making the private environment in ${this.context.globalStorageUri.fsPath}`);
      const interpreter = await environment.make(tools, {
        token,
        onLine: (line) => this.log.info(line),
        onStep: (message) => progress.report({ message }),
      });
      this.log.info(`made in ${((Date.now() - began) / 1000).toFixed(1)} s: ${interpreter}`);
      return interpreter;
    });
    return Promise.resolve(made);
  }
}
