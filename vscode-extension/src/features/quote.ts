import { win32 } from 'node:path';

/** How a shell wants words written. */
export type Family = 'posix' | 'fish' | 'powershell' | 'cmd';

const FAMILIES: Readonly<Record<string, Family>> = {
  ash: 'posix',
  bash: 'posix',
  dash: 'posix',
  ksh: 'posix',
  mksh: 'posix',
  sh: 'posix',
  zsh: 'posix',
  fish: 'fish',
  powershell: 'powershell',
  pwsh: 'powershell',
  cmd: 'cmd',
};

/** Words that mean themselves in every shell; PowerShell parts `-a.b` in two, and makes a list of `a,b`. */
const PLAIN = /^(?:--?[\w-]+|[\w./:][\w./:-]*)$/;
/** What a terminal takes for a key: nothing that is typed into one may hold any. */
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

/** Return the family of a shell by the path of its program; undefined for one that is not known. */
export function familyOf(shell: string): Family | undefined {
  return FAMILIES[win32.basename(shell).toLowerCase().replace(/\.exe$/, '')];
}

/** Return whether a text can be typed into a terminal and stays what it is. */
export function isTypable(text: string): boolean {
  return !CONTROL.test(text);
}

/** Return a command line that a shell of a family takes for exactly these words; throws for what cannot be typed. */
export function commandLine(words: readonly string[], family: Family): string {
  const written = words.map((word) => {
    if (!isTypable(word)) {
      throw new Error(`control characters in ${JSON.stringify(word)}`);
    }
    return PLAIN.test(word) ? word : QUOTED[family](word);
  });
  const calls = family === 'powershell' && /^['"]/.test(written[0] ?? ''); // or the quoted word is its own value
  return (calls ? ['&', ...written] : written).join(' ');
}

const QUOTED: Readonly<Record<Family, (word: string) => string>> = {
  posix: (word) => `'${word.replaceAll("'", "'\\''")}'`,
  fish: (word) => `'${word.replace(/[\\']/g, '\\$&')}'`,
  // PowerShell ends a string at curly quotes as well
  powershell: (word) => `'${word.replace(/['\u2018\u2019\u201a\u201b]/g, '$&$&')}'`,
  // a variable is replaced within quotes, too; a backslash before the quote would keep it
  cmd: (word) => `"${word.replaceAll('"', '""').replaceAll('%', '"^%"').replace(/\\+$/, '$&$&')}"`,
};
