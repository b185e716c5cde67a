/**
 * The house rules that no linter has, each with its reason. A rule answers with one line for every breach; none means
 * that it holds. test/all.ts runs them, and counts each as one test.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importCycles } from './cycles.ts';
import { importViolations, layerOf, PURE_LAYERS, unknownLayers } from './import-rule.ts';
import { EXPOSED_LAYERS, LISTED_REGEXES } from './regex-list.ts';
import { filesUnder, lineOf, ROOT, readSource, type SourceFile } from './source.ts';

export interface Rule {
  readonly name: string;
  readonly reason: string;
  check(sources: Sources): readonly string[];
}

export interface Sources {
  /** src alone. */
  readonly src: readonly SourceFile[];
  /** src, test, bench and demo. */
  readonly all: readonly SourceFile[];
  /** The dashboard's, whose code has markup in it; its text alone is looked at here. */
  readonly pages: readonly { readonly path: string; readonly text: string }[];
}

export function readSources(): Sources {
  const src = filesUnder('src', '.ts').map(readSource);
  const rest = [...filesUnder('test', '.ts'), ...filesUnder('bench', '.ts'), ...filesUnder('demo', '.ts')].map(
    readSource,
  );
  const pages = [...filesUnder('dashboard/src', '.ts'), ...filesUnder('dashboard/src', '.tsx')].map((path) => ({
    path,
    text: readFileSync(join(ROOT, path), 'utf8'),
  }));
  return { src, all: [...src, ...rest], pages };
}

const DRAWERS = ['utils', 'util', 'helpers', 'helper', 'common', 'misc', 'tools', 'lib', 'shared', 'stuff'];
/** Entry files of threads: loading one outside its thread is not importing it. */
const ENTRY_FILES = /(^|[-/])worker\.ts$/;

/**
 * Names in docs/flow.md that the code does not have: a path with a folder in it is a file of src, and a name that follows it (in code
 * marks, letters alone) stands in that file.
 */
function strangeNames(page: string, src: readonly SourceFile[]): readonly string[] {
  const byPath = new Map(src.map((file) => [file.path, file.code]));
  const named = page.matchAll(/`([a-z0-9/-]+\.ts)`(?:\s+`([A-Za-z]+)`)?/g);
  return [...named].flatMap(([, path = '', name]) => {
    if (!path.includes('/')) return [];
    const code = byPath.get(`src/${path}`);
    if (code === undefined) return [`docs/flow.md: there is no src/${path}`];
    return name === undefined || new RegExp(`\\b${name}\\b`).test(code)
      ? []
      : [`docs/flow.md: src/${path} has no ${name}`];
  });
}

/** `file:line: what` for every match in code, comments and strings aside. */
function findInCode(files: readonly SourceFile[], pattern: RegExp, what: string): readonly string[] {
  return files.flatMap((file) =>
    [...file.code.matchAll(pattern)].map((match) => `${file.path}:${lineOf(file.code, match.index)}: ${what}`),
  );
}

export const RULES: readonly Rule[] = [
  {
    name: 'a room imports only what it may',
    reason: 'stages that know only types and pure rooms can be tested and replaced alone; docs/flow.md draws them',
    check: ({ src }) => [...unknownLayers(src.map((file) => file.path)), ...src.flatMap(importViolations)],
  },
  {
    name: 'docs/flow.md names files and functions that exist',
    reason: 'a reader who follows a message through the code goes from name to name',
    check: ({ src }) => strangeNames(readFileSync(join(ROOT, 'docs/flow.md'), 'utf8'), src),
  },
  {
    name: 'no imports in a circle',
    reason: 'files of a circle can be read, tested and moved only together; types count too',
    check: ({ src }) => importCycles(src, true).map((files) => `${files} import one another`),
  },
  {
    name: 'pure rooms read no clock, chance, process or network',
    reason: 'what they compute must be repeatable in a test of days in milliseconds',
    check: ({ src }) => {
      const pure = src.filter((file) => PURE_LAYERS.includes(layerOf(file.path)));
      const effects =
        /\b(Date\.now\s*\(|new Date\s*\(\s*\)|Math\.random|performance\.|setTimeout|setInterval|setImmediate|queueMicrotask|process\.|fetch\s*\(|console\.|crypto\.(getRandomValues|randomUUID))/g;
      return findInCode(pure, effects, 'an effect in a pure room; have it handed in');
    },
  },
  {
    name: 'the clock is handed in',
    reason: 'a schedule that reads the machine’s clock cannot be run by a test’s own',
    check: ({ src }) => {
      const stages = src.filter((file) =>
        ['queue', 'http', 'operator', 'feedback', 'domains'].includes(layerOf(file.path)),
      );
      return findInCode(
        stages,
        /\b(Date\.now\s*\(|new Date\s*\(\s*\))/g,
        'take the time from the clock that is handed in',
      );
    },
  },
  {
    name: 'a file of src opens by saying what it is for',
    reason: 'a reader learns purpose, promises and failures before the first line of code',
    check: ({ src, pages }) =>
      [...src, ...pages]
        .filter((file) => !/^(#!.*\n)?\/[/*]/.test(file.text))
        .map((file) => `${file.path} opens with no comment`),
  },
  {
    name: 'no drawers',
    reason: 'a name such as utils or helpers says nothing about what is inside, so everything lands there',
    check: ({ all }) =>
      all
        .filter((file) =>
          file.path.split('/').some((part) => DRAWERS.includes(part.replace(/\.ts$/, '').toLowerCase())),
        )
        .map((file) => `${file.path} is a drawer; name it for what is in it`),
  },
  {
    name: 'no default exports',
    reason: 'a thing has one name wherever it is read',
    check: ({ all }) => findInCode(all, /\bexport\s+default\b|\bexport\s*\{[^}]*\bas default\b/g, 'export it by name'),
  },
  {
    name: 'no any',
    reason: 'it switches off the type checks for all that it touches; unknown keeps them',
    check: ({ all }) =>
      findInCode(
        all,
        /(:\s*|\bas\s+|<\s*|\|\s*)any\b(?!\s*[:(=])|\bany\s*(>|\[\])/g,
        'any; use unknown and look before you trust',
      ),
  },
  {
    name: 'no check is switched off in a comment',
    reason: 'a silenced check hides the next fault as well',
    check: ({ all, pages }) =>
      [...all, ...pages]
        .filter((file) => !file.path.startsWith('test/house/'))
        .flatMap((file) =>
          [...file.text.matchAll(/@ts-(ignore|nocheck|expect-error)|biome-ignore|eslint-disable|prettier-ignore/g)].map(
            (match) => `${file.path}:${lineOf(file.text, match.index)}: ${match[0]}`,
          ),
        ),
  },
  {
    name: 'no test is skipped or focused',
    reason: 'a test that does not run keeps no promise',
    check: ({ all }) =>
      findInCode(
        all.filter((file) => file.path.endsWith('.test.ts')),
        /\b(it|test|describe)\s*\.\s*(skip|only|todo|skipIf|runIf|fails)\b/g,
        'every test runs, always',
      ),
  },
  {
    name: 'only the command line writes to the console',
    reason: 'the log writes events that have a name, and only the fields that each lists',
    check: ({ src }) =>
      findInCode(
        src.filter((file) => layerOf(file.path) !== 'cli'),
        /\bconsole\.|\bprocess\.std(out|err)\b/g,
        'hand in the logger',
      ),
  },
  {
    name: 'only the log loads the logger',
    reason: 'every log line has a name of log-events.ts, and docs/log-events.md lists all of them',
    check: ({ src }) =>
      src
        .filter((file) => file.path !== 'src/observability/log.ts' && /\bfrom\s+'pino'/.test(file.text))
        .map((file) => `${file.path} loads pino; publish an event with a definition in log-events.ts`),
  },
  {
    name: 'every regular expression that meets outside bytes is listed',
    reason: 'one nested quantifier lets a stranger stop the service; test/house/regex-list.ts has the reasons',
    check: ({ src }) => {
      const exposed = src.filter((file) => EXPOSED_LAYERS.includes(layerOf(file.path)));
      const found = exposed.flatMap((file) => file.regexes.map((found) => ({ file: file.path, ...found })));
      const unlisted = found
        .filter((one) => !LISTED_REGEXES.some((listed) => listed.file === one.file && listed.regex === one.regex))
        .map((one) => `${one.file}:${one.line}: ${one.regex} is not listed`);
      const stale = LISTED_REGEXES.filter(
        (listed) => !found.some((one) => one.file === listed.file && one.regex === listed.regex),
      );
      const built = findInCode(
        exposed,
        /\bnew RegExp\b|(?<!\w)RegExp\s*\(/g,
        'an expression built at run time cannot be read here',
      );
      return [
        ...unlisted,
        ...built,
        ...stale.map((listed) => `${listed.file}: ${listed.regex} is listed and not there`),
      ];
    },
  },
  {
    name: 'importing a file does nothing',
    reason: 'what happens at import cannot be handed a clock, a store or a setting, nor be stopped',
    check: ({ src }) => {
      const files = src.map((file) => file.path).filter((path) => !ENTRY_FILES.test(path));
      const script = `for (const file of ${JSON.stringify(files)}) await import('./' + file);
        const kept = process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap' && kind !== 'TTYWrap');
        if (kept.length > 0) { process.stderr.write('left open: ' + kept.join(', ')); process.exitCode = 1; }`;
      const run = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
        cwd: ROOT,
        encoding: 'utf8',
        timeout: 60_000,
        env: { PATH: process.env.PATH ?? '', NODE_NO_WARNINGS: '1' },
      });
      const said = `${run.stdout}${run.stderr}`.trim();
      return run.status === 0 && said === ''
        ? []
        : [`importing all of src: exit ${run.status}, ${said.slice(0, 2000)}`];
    },
  },
  {
    name: 'the lockfile names no registry',
    reason: 'a clone installs from whichever registry its own npm is set to',
    check: () =>
      readFileSync(join(ROOT, 'package-lock.json'), 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          /"resolved":\s*"https?:/.test(line) ? [`package-lock.json:${index + 1}:${line.trim()}`] : [],
        ),
  },
];
