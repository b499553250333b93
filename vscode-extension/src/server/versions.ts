/** The oldest Python that the server runs on. */
export const OLDEST_PYTHON = [3, 10] as const;

/** Return the numbers that a release begins with: [0, 2, 0] for "0.2.0rc1". */
export function numbers(release: string): number[] {
  return (/^\d+(\.\d+)*/.exec(release)?.[0] ?? '').split('.').filter(Boolean).map(Number);
}

/** Return a negative number, zero or a positive one, as the first release is older, the same or newer. */
export function compare(one: readonly number[], other: readonly number[]): number {
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const difference = (one[index] ?? 0) - (other[index] ?? 0);
    if (difference !== 0) {
      return difference;
    }
  }
  return 0;
}

/** Return whether a server of one release speaks with the extension of another: from its own minor release on. */
export function matches(server: string, extension: string): boolean {
  const [ours, theirs] = [numbers(extension), numbers(server)];
  return theirs[0] === ours[0] && compare(theirs, ours.slice(0, 2)) >= 0;
}
