import * as vscode from 'vscode';

import { Comments } from './client/comments';
import { Session } from './client/session';
import { Watch } from './client/watch';
import { registerFeatures } from './features';
import { Finder } from './server/find';
import { Installer } from './server/installer';
import { Changes } from './server/changes';
import { serverCommands } from './server/commands';
import { Problems } from './server/problems';

/** What the extension offers others, its tests among them. */
export interface Api {
  readonly session: Session;
  /** How long `activate` took, in milliseconds. */
  readonly activatedIn: number;
}

let current: Session | undefined;

/** Register everything; the language client is loaded, and a server started, once there is something for it. */
export function activate(context: vscode.ExtensionContext): Api {
  const began = performance.now();
  const log = vscode.window.createOutputChannel('DeepSpeed (dsmigrate)', { log: true });
  const installer: Installer = new Installer(context, log, () => finder.tools());
  const finder: Finder = new Finder(context, log, (environment) => installer.make(environment));
  const session = new Session(
    log,
    (token) => finder.find(token),
    async (server, itself, stop) => (await import('./client/connect')).connect(server, itself, await finder.cwd(), stop),
  );
  current = session;
  const watch = new Watch(session);
  context.subscriptions.push(
    log,
    session,
    watch,
    new Comments(session),
    new Changes(session),
    new Problems(session, context, finder, installer),
    serverCommands(session, context, finder, installer),
  );
  registerFeatures(context, session);
  void watch.begin();
  return { session, activatedIn: performance.now() - began };
}

/** Stop the server. */
export async function deactivate(): Promise<void> {
  await current?.stop();
}
