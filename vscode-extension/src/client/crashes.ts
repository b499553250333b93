const LIMIT = 3;
const WINDOW = 3 * 60_000;

/** Counts crashes of the server: it is started again after each of a few, and left alone when they come thick. */
export class Crashes {
  private times: number[] = [];

  /** Note a crash at a time in milliseconds, and return whether the server is worth another start. */
  note(now: number): boolean {
    this.times = [...this.times.filter((time) => now - time < WINDOW), now];
    return this.times.length <= LIMIT;
  }

  /** How many there were in the last three minutes before the last one. */
  get count(): number {
    return this.times.length;
  }

  /** A person wants another try. */
  forget(): void {
    this.times = [];
  }
}
