import { arch, platform, release } from 'node:os';
import * as vscode from 'vscode';

import type { Session } from '../client/session';
import type { Finder } from './find';
import type { Installer } from './installer';
import { probe } from './probe';
import { Problem } from './problem';

const SETTING = 'server.interpreter';

/** Register the commands about the server itself. */
export function serverCommands(
  session: Session,
  context: vscode.ExtensionContext,
  finder: Finder,
  installer: Installer,
): vscode.Disposable {
  const commands: Record<string, () => unknown> = {
    restart: () => session.restart(),
    showLog: () => session.log.show(),
    createEnvironment: () => createEnvironment(session, finder, installer),
    removeEnvironment: () => removeEnvironment(session, finder),
    chooseInterpreter: () => chooseInterpreter(session, finder),
    report: () => report(session, context),
  };
  const registered = Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`dsmigrate.server.${name}`, run),
  );
  return vscode.Disposable.from(...registered);
}

/** Make the private environment anew, without a question, and start the server as the settings have it. */
export async function createEnvironment(session: Session, finder: Finder, installer: Installer): Promise<void> {
  const environment = await finder.environment();
  if (!environment) {
    void vscode.window.showErrorMessage(vscode.l10n.t('This build of the extension carries no server.'));
    return;
  }
  await session.stop();
  try {
    await installer.make(environment);
  } catch (error) {
    if (!(error instanceof vscode.CancellationError)) {
      session.failed(Problem.of(error));
    }
    return;
  }
  await session.restart();
}

/** Remove the private environment, of all releases. */
export async function removeEnvironment(session: Session, finder: Finder): Promise<void> {
  if (session.server?.origin === 'private') {
    await session.stop();
  }
  await (await finder.environment())?.remove();
  void vscode.window.showInformationMessage(vscode.l10n.t('The private environment is removed.'));
}

/** Let a person choose the Python that runs the server, and write it into the user settings. */
export async function chooseInterpreter(session: Session, finder: Finder): Promise<void> {
  const cwd = await finder.cwd();
  const known = async (path: string): Promise<vscode.QuickPickItem> => {
    const told = await probe(path, cwd);
    const version = told?.dsmigrate ? `dsmigrate ${told.dsmigrate}` : vscode.l10n.t('without dsmigrate');
    return { label: path, description: told ? `Python ${told.python.join('.')}, ${version}` : '' };
  };
  const browse: vscode.QuickPickItem = { label: vscode.l10n.t('Browse…') };
  const items = async (): Promise<vscode.QuickPickItem[]> => {
    const paths = await finder.candidates();
    return [...(await Promise.all(paths.map(known))), browse];
  };
  const picked = await vscode.window.showQuickPick(items(), {
    title: vscode.l10n.t('Python that has dsmigrate'),
    matchOnDescription: true,
  });
  const path = picked?.label === browse.label ? await browsed() : picked?.label;
  if (path === undefined) {
    return;
  }
  const told = await probe(path, cwd);
  if (!told?.dsmigrate) {
    session.failed(
      new Problem(vscode.l10n.t('{0} has no dsmigrate: pip install dsmigrate', path), ['choose', 'create', 'log']),
    );
    return;
  }
  await vscode.workspace.getConfiguration('dsmigrate').update(SETTING, path, vscode.ConfigurationTarget.Global);
  if (session.state !== 'running') {
    await session.restart();
  }
}

async function browsed(): Promise<string | undefined> {
  const [file] = (await vscode.window.showOpenDialog({ title: vscode.l10n.t('Python that has dsmigrate') })) ?? [];
  return file?.fsPath;
}

/** Open an issue with the releases of everything filled in; nothing is sent, and nothing of files is in it. */
export async function report(session: Session, context: vscode.ExtensionContext): Promise<void> {
  const { bugs, version } = context.extension.packageJSON as { bugs: { url: string }; version: string };
  const server = session.server ? `${session.server.version} (${session.server.origin})` : 'none';
  const body = [
    '<!-- What did you do, what did you expect, what happened? -->',
    '',
    `- extension: ${version}`,
    `- server: ${server}, ${session.state}`,
    `- editor: ${vscode.env.appName} ${vscode.version}${vscode.env.remoteName ? ` (${vscode.env.remoteName})` : ''}`,
    `- system: ${platform()} ${release()} ${arch()}`,
    ...(session.problem ? [`- problem: ${session.problem.message}`] : []),
    '',
    '<!-- The log helps: the command "DeepSpeed: Show Log" opens it. Look through it before you paste it. -->',
  ].join('\n');
  await vscode.env.openExternal(vscode.Uri.parse(`${bugs.url}/new?body=${encodeURIComponent(body)}`));
}
