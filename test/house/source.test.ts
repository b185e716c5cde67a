import { describe, expect, it } from 'vitest';
import { findImportCycles } from './cycles.ts';
import { listImportViolations, listUnknownLayers } from './import-rule.ts';
import { isLinear } from './linear-regex.ts';
import { parseSource } from './source.ts';

function listImports(text: string) {
  return parseSource('src/http/x.ts', text).imports.map(({ specifier, typeOnly, names }) => [
    specifier,
    typeOnly,
    names.join(' '),
  ]);
}

function listViolations(path: string, text: string) {
  return listImportViolations(parseSource(path, text));
}

describe('the scanner of the house rules', () => {
  it('finds imports in every syntax and identifies type-only imports', () => {
    const text = [
      "import './bare.ts';",
      "import type { A } from './a.ts';",
      "import { type B, type C as D } from './b.ts';",
      "import { type E, f as g } from './e.ts';",
      "import h, * as i from './h.ts';",
      "export { j } from './j.ts';",
      "export type { K } from './k.ts';",
      "export * from './l.ts';",
      "const m = await import('./m.ts');",
      'import {\n  n,\n  o,\n} from "./n.ts";',
    ].join('\n');
    expect(listImports(text)).toEqual([
      ['./bare.ts', false, ''],
      ['./a.ts', true, 'A'],
      ['./b.ts', true, 'B C'],
      ['./e.ts', false, 'E f'],
      ['./h.ts', false, 'default *'],
      ['./j.ts', false, 'j'],
      ['./k.ts', true, 'K'],
      ['./l.ts', false, '*'],
      ['./n.ts', false, 'n o'],
      ['./m.ts', false, '*'],
    ]);
  });

  it('ignores comments, strings and templates', () => {
    const text =
      "// import './no.ts';\n/* import './no.ts'; */\nconst s = \"import './no.ts';\";\nconst t = `import './no.ts' ${`${s}`} any`;\nexport const from = 'x';";
    expect(listImports(text)).toEqual([]);
    expect(parseSource('x.ts', text).code).not.toContain('any');
  });

  it('distinguishes a regular expression from a division', () => {
    const text =
      'const a = b / c / d;\nconst r = /x[/]y/gu;\nif (/z/.test(q)) n = (1 + 2) / 3;\nreturn /w/;\nconst u = `${/v/.source}`;';
    expect(parseSource('x.ts', text).regexes).toEqual([
      { line: 2, regex: '/x[/]y/gu' },
      { line: 3, regex: '/z/' },
      { line: 4, regex: '/w/' },
      { line: 5, regex: '/v/' },
    ]);
  });
});

describe('the import rule', () => {
  const openLog = "import { createLog } from '../observability/log.ts';";
  const importOpenStore = "import { openStore } from '../store/open.ts';";
  const importStoreType = "import type { Store } from '../store/contract.ts';";

  it.each([
    ['src/http/a.ts', importStoreType],
    ['src/http/a.ts', "import { b } from './b.ts';\nimport { parse } from '../model/address.ts';"],
    ['src/observability/a.ts', "import type { Log } from './log.ts';"],
    ['src/main.ts', "import { createLog } from './observability/log.ts';"],
    ['src/model/a.ts', "import { createHash } from 'node:crypto';"],
    ['src/main.ts', "import { b } from './store/b.ts';\nimport { systemClock } from './clock.ts';"],
    ['src/cli/serve.ts', "import { startService } from '../main.ts';"],
  ])('%s may contain %s', (path, text) => {
    expect(listViolations(path, text)).toEqual([]);
  });

  it.each([
    ['src/http/a.ts', importOpenStore],
    ['src/http/a.ts', "const { openStore } = await import('../store/open.ts');"],
    ['src/http/a.ts', "import type { X } from '../cli/main.ts';"],
    ['src/queue/a.ts', "import { systemClock } from '../clock.ts';"],
    ['src/queue/a.ts', openLog],
    ['src/wiring/a.ts', openLog],
    ['src/cli/a.ts', "import type { Log } from '../observability/log.ts';"],
    ['src/model/a.ts', "import { randomBytes } from 'node:crypto';"],
    ['src/model/a.ts', "import { readFileSync } from 'node:fs';"],
    ['src/model/a.ts', importStoreType],
    ['src/model/a.ts', "import { mask } from '../printing/escape.ts';"],
    ['src/message/a.ts', "import nodemailer from 'nodemailer';"],
    ['src/operator/a.ts', "import { DatabaseSync } from 'node:sqlite';"],
    ['src/main.ts', "import { spawn } from 'node:child_process';"],
  ])('%s may not contain %s', (path, text) => {
    expect(listViolations(path, text)).toHaveLength(1);
  });

  it('a layer that is in no list is reported', () => {
    expect(listUnknownLayers(['src/http/a.ts', 'src/clock.ts', 'src/gadgets/a.ts'])).toHaveLength(1);
  });
});

it.each([
  ['/[a]+/', true],
  [String.raw`/^[^"\]]+$/`, true],
  [String.raw`/\p{Cc}/gu`, true],
  ['/^[a-z]{2,}\\.com$/', true],
  ['/(a+)+$/', false],
  ['/a*a*b/', false],
  ['/^(a|b)*c/', false],
  ['/^a+$/m', false],
  [String.raw`/\s+$/`, false],
  ['/x{2,}y/', false],
])('the regular expression %s is known to be linear: %s', (regex, isKnownToBeLinear) => {
  expect(isLinear(regex)).toBe(isKnownToBeLinear);
});

describe('import cycles', () => {
  const parseFile = (path: string, text: string) => parseSource(path, text);

  it('are groups of files that import each other; type imports are included if requested', () => {
    const files = [
      parseFile('src/a.ts', "import { b } from './b.ts';"),
      parseFile('src/b.ts', "import { c } from './c.ts';"),
      parseFile('src/c.ts', "import { a } from './a.ts';\nimport { d } from './d.ts';"),
      parseFile('src/d.ts', "import type { E } from './e.ts';"),
      parseFile('src/e.ts', "import { d } from './d.ts';"),
      parseFile('src/f.ts', "import { a } from './a.ts';"),
    ];
    expect(findImportCycles(files, false)).toEqual(['src/a.ts, src/b.ts, src/c.ts']);
    expect(findImportCycles(files, true)).toEqual(['src/a.ts, src/b.ts, src/c.ts', 'src/d.ts, src/e.ts']);
  });
});
