import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** What the extension carries: the package, and the releases with checksums of all that it needs. */
export interface Bundled {
  readonly wheel: string;
  readonly requirements: string;
  /** Release of the package. */
  readonly version: string;
}

/** Return what lies in the folder `bundled` of the extension; undefined in a checkout where it was not built. */
export async function bundled(extension: string): Promise<Bundled | undefined> {
  const folder = join(extension, 'bundled');
  const names = await readdir(folder).catch(() => []);
  const wheel = names.find((name) => /^dsmigrate-.*\.whl$/.test(name));
  const version = wheel?.split('-')[1];
  return wheel && version
    ? { wheel: join(folder, wheel), requirements: join(folder, 'requirements.txt'), version }
    : undefined;
}
