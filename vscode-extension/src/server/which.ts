import { access, constants, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

const ENDINGS = process.platform === 'win32' ? ['.exe'] : [''];

/**
 * Return the absolute paths of a program on PATH, first come first. Relative folders of PATH are passed over, so that
 * no program of a workspace is found.
 */
export async function which(name: string, path = process.env['PATH'] ?? ''): Promise<string[]> {
  const candidates = path
    .split(delimiter)
    .filter(isAbsolute)
    .flatMap((folder) => ENDINGS.map((ending) => join(folder, name + ending)));
  const found = await Promise.all(candidates.map(isProgram));
  return candidates.filter((_, index) => found[index]);
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}
