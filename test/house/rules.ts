/**
 * The house rules that the linter cannot check, each with its reason. A rule returns one line for every violation.
 * test/all.ts runs the rules and counts each rule as one test.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findImportCycles } from './cycles.ts';
import { getLayer, listImportViolations, listUnknownLayers, PURE_LAYERS } from './import-rule.ts';
import { EXPOSED_LAYERS, isLinear, REVIEWED_REGEXES } from './linear-regex.ts';
import { getLine, listFiles, ROOT, readSource, type SourceFile } from './source.ts';

export interface Rule {
  readonly name: string;
  readonly reason: string;
  check(sources: Sources): readonly string[];
}

export interface Sources {
  /** The files of src. */
  readonly src: readonly SourceFile[];
  /** The files of the client library. */
  readonly clients: readonly SourceFile[];
  /** The files of src, clients, test, bench and demo. */
  readonly allFiles: readonly SourceFile[];
  /** The files of the dashboard as text; their code contains markup, which the scanner does not read. */
  readonly pages: readonly { readonly path: string; readonly text: string }[];
}

export function readSources(): Sources {
  const src = listFiles('src', '.ts').map(readSource);
  const clients = listFiles('clients', '.ts')
    .filter((path) => path.split('/')[2] === 'src')
    .map(readSource);
  const otherSources = [...listFiles('test', '.ts'), ...listFiles('bench', '.ts'), ...listFiles('demo', '.ts')].map(
    readSource,
  );
  const pages = [...listFiles('dashboard/src', '.ts'), ...listFiles('dashboard/src', '.tsx')].map((path) => ({
    path,
    text: readFileSync(join(ROOT, path), 'utf8'),
  }));
  return { src, clients, allFiles: [...src, ...clients, ...otherSources], pages };
}

const VAGUE_NAMES = ['utils', 'util', 'helpers', 'helper', 'common', 'misc', 'tools', 'lib', 'shared', 'stuff'];
/** Entry files of threads. The rule on side effects at import excludes these files. */
const ENTRY_FILES = /(^|[-/])worker\.ts$/;

/**
 * Returns one line for each file and each function that docs/flow.md names but that does not exist. A path that
 * contains a folder is relative to src. A name in backticks that follows the path and has only letters must be in that
 * file.
 */
function listUnknownNames(page: string, src: readonly SourceFile[]): readonly string[] {
  const sourcesByPath = new Map(src.map((file) => [file.path, file.code]));
  const pathMatches = page.matchAll(/`([a-z0-9/-]+\.ts)`(?:\s+`([A-Za-z]+)`)?/g);
  return [...pathMatches].flatMap(([, path = '', name]) => {
    if (!path.includes('/')) return [];
    const code = sourcesByPath.get(`src/${path}`);
    if (code === undefined) return [`docs/flow.md: there is no src/${path}`];
    return name === undefined || new RegExp(`\\b${name}\\b`).test(code)
      ? []
      : [`docs/flow.md: src/${path} has no ${name}`];
  });
}

/** Returns `file:line: label` for every match in code; comments and strings are ignored. */
function findInCode(files: readonly SourceFile[], pattern: RegExp, label: string): readonly string[] {
  return files.flatMap((file) =>
    [...file.code.matchAll(pattern)].map((match) => `${file.path}:${getLine(file.code, match.index)}: ${label}`),
  );
}

export const RULES: readonly Rule[] = [
  {
    name: 'a layer imports only allowed modules',
    reason: 'a layer that imports only types and pure layers can be tested and replaced separately',
    check: ({ src }) => [...listUnknownLayers(src.map((file) => file.path)), ...src.flatMap(listImportViolations)],
  },
  {
    name: 'the client library imports only its own files, and reads no global variable of Node or of a browser',
    reason: 'it also runs on Deno, Bun and edge runtimes, and has no dependencies',
    check: ({ clients }) => [
      ...clients.flatMap((file) =>
        file.imports
          .filter(({ specifier }) => !/^\.\/[\w-]+\.ts$/.test(specifier))
          .map(({ line, specifier }) => `${file.path}:${line} imports ${specifier}`),
      ),
      ...findInCode(
        clients,
        /(?<![.\w])(process|Buffer|global|require|window|document|navigator|Deno|Bun|setImmediate)\b(?!\s*:)/g,
        'a global variable that other runtimes do not have',
      ),
    ],
  },
  {
    name: 'docs/flow.md names files and functions that exist',
    reason: 'readers use these names to follow a message through the code',
    check: ({ src }) => listUnknownNames(readFileSync(join(ROOT, 'docs/flow.md'), 'utf8'), src),
  },
  {
    name: 'no import cycles',
    reason: 'the files or folders of a cycle can be read, tested and moved only together; type imports are included',
    check: ({ src, clients }) =>
      [...findImportCycles([...src, ...clients], true), ...findImportCycles(src, true, getLayer)].map(
        (units) => `${units} import each other`,
      ),
  },
  {
    name: 'pure layers use no clock, random values, process state or network',
    reason: 'a test must be able to repeat the results of a pure layer',
    check: ({ src }) => {
      const pureFiles = src.filter((file) => PURE_LAYERS.includes(getLayer(file.path)));
      const effectPattern =
        /\b(Date\.now\s*\(|new Date\s*\(\s*\)|Math\.random|performance\.|setTimeout|setInterval|setImmediate|queueMicrotask|process\.|fetch\s*\(|console\.|crypto\.(getRandomValues|randomUUID))/g;
      return findInCode(pureFiles, effectPattern, 'a side effect in a pure layer; inject the function that causes it');
    },
  },
  {
    name: 'the clock is injected',
    reason: 'a test cannot control a schedule that reads the clock of the machine',
    check: ({ src }) => {
      const files = src.filter((file) =>
        ['queue', 'http', 'operator', 'feedback', 'domains'].includes(getLayer(file.path)),
      );
      return findInCode(files, /\b(Date\.now\s*\(|new Date\s*\(\s*\))/g, 'use the injected clock');
    },
  },
  {
    name: 'no vague file names',
    reason: 'a name such as utils or helpers does not describe the content, so unrelated code is added to the file',
    check: ({ allFiles }) =>
      allFiles
        .filter((file) =>
          file.path.split('/').some((segment) => VAGUE_NAMES.includes(segment.replace(/\.ts$/, '').toLowerCase())),
        )
        .map((file) => `${file.path} has a vague name; name it after its content`),
  },
  {
    name: 'no check is disabled in a comment',
    reason: 'a disabled check also hides later errors',
    check: ({ allFiles, pages }) =>
      [...allFiles, ...pages]
        .filter((file) => !file.path.startsWith('test/house/'))
        .flatMap((file) =>
          [...file.text.matchAll(/@ts-(ignore|nocheck|expect-error)|biome-ignore|eslint-disable|prettier-ignore/g)].map(
            (match) => `${file.path}:${getLine(file.text, match.index)}: ${match[0]}`,
          ),
        ),
  },
  {
    name: 'only the command line writes to the console',
    reason: 'the log contains only events with a name and listed fields',
    check: ({ src }) =>
      findInCode(
        src.filter((file) => getLayer(file.path) !== 'cli'),
        /\bconsole\.|\bprocess\.std(out|err)\b/g,
        'publish an event',
      ),
  },
  {
    name: 'only log.ts loads the logger',
    reason: 'every log line has a name in log-events.ts, and docs/log-events.md lists every name',
    check: ({ src }) =>
      src
        .filter((file) => file.path !== 'src/observability/log.ts' && /\bfrom\s+'pino'/.test(file.text))
        .map((file) => `${file.path} loads pino; publish an event and define it in log-events.ts`),
  },
  {
    name: 'a regular expression that reads bytes from outside runs in linear time',
    reason: 'a nested quantifier can allow a remote peer to block the service; see test/house/linear-regex.ts',
    check: ({ src, clients }) => {
      const exposedFiles = [...src.filter((file) => EXPOSED_LAYERS.includes(getLayer(file.path))), ...clients];
      const regexes = exposedFiles.flatMap((file) => file.regexes.map((used) => ({ file: file.path, ...used })));
      return [
        ...regexes
          .filter(({ regex }) => !isLinear(regex) && !REVIEWED_REGEXES.includes(regex))
          .map(({ file, line, regex }) => `${file}:${line}: ${regex} may need more than linear time`),
        ...findInCode(
          exposedFiles,
          /\bnew RegExp\b|(?<!\w)RegExp\s*\(/g,
          'an expression built at run time cannot be checked',
        ),
        ...REVIEWED_REGEXES.filter((reviewed) => !regexes.some(({ regex }) => regex === reviewed)).map(
          (regex) => `${regex} is in REVIEWED_REGEXES but not used`,
        ),
      ];
    },
  },
  {
    name: 'importing a file has no side effect',
    reason: 'code that runs at import cannot get an injected clock, store or setting, and cannot be stopped',
    check: ({ src, clients }) => {
      const files = [...src, ...clients].map((file) => file.path).filter((path) => !ENTRY_FILES.test(path));
      const script = `for (const file of ${JSON.stringify(files)}) await import('./' + file);
        const openResources = process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap' && kind !== 'TTYWrap');
        if (openResources.length > 0) { process.stderr.write('open resources: ' + openResources.join(', ')); process.exitCode = 1; }`;
      const processRun = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
        cwd: ROOT,
        encoding: 'utf8',
        timeout: 60_000,
        env: { PATH: process.env.PATH ?? '', NODE_NO_WARNINGS: '1' },
      });
      const output = `${processRun.stdout}${processRun.stderr}`.trim();
      return processRun.status === 0 && output === ''
        ? []
        : [`importing all files of src and clients: exit code ${processRun.status}, ${output.slice(0, 2000)}`];
    },
  },
  {
    name: 'the lockfile names no registry',
    reason: 'npm must install from the registry that the user has configured',
    check: () =>
      readFileSync(join(ROOT, 'package-lock.json'), 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          /"resolved":\s*"https?:/.test(line) ? [`package-lock.json:${index + 1}:${line.trim()}`] : [],
        ),
  },
];
