/** A language server that can be started. */
export interface Server {
  /** Absolute path of the interpreter. */
  readonly command: string;
  readonly args: readonly string[];
  /** Those of the arguments that are the interpreter's own. */
  readonly flags: readonly string[];
  /** Release of dsmigrate that it has. */
  readonly version: string;
  /** Where it was found. */
  readonly origin: Origin;
}

/** The setting, the interpreter chosen in the Python extension, or the environment that this extension made. */
export type Origin = 'setting' | 'python' | 'private';

/** Return the server of an interpreter; an isolated one hears no variables and no packages of the user. */
export function serverOf(python: string, version: string, origin: Origin, logLevel: string): Server {
  const flags = origin === 'private' ? ['-I'] : [];
  const args = [...flags, '-m', 'dsmigrate', 'server', '--log-level', logLevel];
  return { command: python, args, flags, version, origin };
}
