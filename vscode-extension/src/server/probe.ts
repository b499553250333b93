import { run } from './run';

/** What an interpreter is and has. */
export interface Probe {
  /** Its release, as numbers: [3, 11, 2]. */
  readonly python: readonly number[];
  /** The release of dsmigrate installed for it. */
  readonly dsmigrate?: string;
}

const SCRIPT = `
import json, sys
try:
    from importlib import metadata
    version = metadata.version("dsmigrate")
except Exception:
    version = None
print(json.dumps({"python": list(sys.version_info[:3]), "dsmigrate": version}))
`;

/** Ask an interpreter what it is; undefined for a program that is none, or does not answer within ten seconds. */
export async function probe(python: string, cwd: string): Promise<Probe | undefined> {
  try {
    const { code, stdout } = await run(python, ['-c', SCRIPT], { cwd, timeout: 10_000 });
    const told: unknown = code === 0 ? JSON.parse(stdout.trim().split('\n').at(-1) ?? '') : undefined;
    return isProbe(told) ? { python: told.python, ...(told.dsmigrate ? { dsmigrate: told.dsmigrate } : {}) } : undefined;
  } catch {
    return undefined;
  }
}

function isProbe(told: unknown): told is Probe {
  return typeof told === 'object' && told !== null && 'python' in told && Array.isArray(told.python);
}
