import type { WorkspaceEdit } from 'vscode-languageclient';

/** What the server's commands answer; `docs/language-server.md` and `schemas/output/` describe them. */

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export type Severity = 'breaking' | 'warning' | 'info' | 'none';

/** One explanation of `schemas/output/diff.schema.json`. */
export interface Explained {
  code: string;
  paths: string[];
  effects: string[];
  severity: Severity;
  message: string;
  advice: string | null;
  old_range: Range | null;
  new_range: Range | null;
}

/** One changed key, with what is written and what counts; `null` stands for an absent key. */
export interface Edited {
  path: string;
  old: unknown;
  new: unknown;
  old_effective: unknown;
  new_effective: unknown;
  old_range: Range | null;
  new_range: Range | null;
}

export interface DiffReport {
  old: { path: string; deepspeed_version: string; consumer: string };
  new: { path: string; deepspeed_version: string; consumer: string };
  changes: Explained[];
  edits: Edited[];
  summary: { verdict: string; same: boolean; worst: Severity; deepspeed_version_from: string; consumer_from: string };
}

/** Bytes per GPU by what takes them, in the order of the picture. */
export type Memory = Record<string, number>;

export interface Compared {
  error?: undefined;
  markdown: string;
  verdict: string;
  severity: Severity;
  report: DiffReport;
  texts: { old: string; new: string };
  memory: { old: Memory; new: Memory };
  /** The name a reader knows the consumer by. */
  consumer: string;
}

export interface Failed {
  error: string;
}

export type Decision = 'converted' | 'kept' | 'todo' | 'refused';

/** One decision of `schemas/output/migrate.schema.json`; lines are those of the original script, from 1. */
export interface Change {
  code: string;
  kind: Decision;
  line: number;
  end_line: number;
  message: string;
  reason: string;
}

export type Outcome = 'converted' | 'converted_with_todos' | 'unchanged' | 'refused' | 'error';

export interface FileReport {
  path: string;
  status: Outcome;
  changes: Change[];
  notes: Change[];
  launch_commands: string[];
}

/** The config beside a converted script; `isThere` says that another file has its place and is left alone. */
export interface NewConfig {
  uri: string;
  text: string;
  isThere: boolean;
}

/** A file that is changed together with the script, or made if it `isNew`; `name` is its path within the project. */
export interface ChangedModule {
  uri: string;
  name: string;
  report: FileReport;
  after: string;
  isNew: boolean;
}

export interface Conversion {
  status: Outcome;
  reasons: string[];
  launch: string[];
  edit: WorkspaceEdit | null;
  report: FileReport | null;
  after: string | null;
  config: NewConfig | null;
  modules: ChangedModule[];
}

export interface Upgrade {
  from: string;
  to: string;
  edits: { range: Range; newText: string }[];
  after: string;
  done: string[];
  left: string[];
}

export interface Status {
  deepspeedVersion: string;
  whyVersion: string;
  consumer: string;
  consumerTitle: string;
  whyConsumer: string;
  worldSize: number | null;
  stage: number | null;
  summary: string;
  /** What the summary is made of: names and values. */
  details: [string, string][];
  findings: Partial<Record<'error' | 'warning' | 'info' | 'hint', number>>;
  changed: Record<string, unknown>;
}

export interface Choices {
  releases: string[];
  consumers: { name: string; title: string }[];
}

export interface Starter {
  label: string;
  summary: string;
  consumer: string | null;
  snippet: string;
}

export interface Subject {
  word: string;
  kind: 'key' | 'type' | 'code';
  summary: string;
}
