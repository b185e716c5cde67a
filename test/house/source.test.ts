import { describe, expect, it } from 'vitest';
import { findImportCycles } from './cycles.ts';
import { listImportViolations, listUnknownLayers } from './import-rule.ts';
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
  it('a layer may import types from every layer except the wiring layers, and values from itself and the pure layers', () => {
    expect(listViolations('src/http/a.ts', "import type { Store } from '../store/contract.ts';")).toEqual([]);
    expect(
      listViolations('src/http/a.ts', "import { b } from './b.ts';\nimport { parse } from '../model/address.ts';"),
    ).toEqual([]);
    expect(listViolations('src/http/a.ts', "import { openStore } from '../store/open.ts';")).toHaveLength(1);
    expect(listViolations('src/http/a.ts', "const { openStore } = await import('../store/open.ts');")).toHaveLength(1);
    expect(listViolations('src/http/a.ts', "import type { X } from '../cli/main.ts';")).toHaveLength(1);
    expect(listViolations('src/queue/a.ts', "import { systemClock } from '../clock.ts';")).toHaveLength(1);
  });

  it('only main.ts may open the log, and only observability may write it', () => {
    for (const path of ['src/queue/a.ts', 'src/wiring/a.ts', 'src/cli/a.ts']) {
      expect(listViolations(path, "import { createLog } from '../observability/log.ts';")).toHaveLength(1);
      expect(listViolations(path, "import type { Log } from '../observability/log.ts';")).toHaveLength(1);
    }
    expect(listViolations('src/observability/a.ts', "import type { Log } from './log.ts';")).toEqual([]);
    expect(listViolations('src/main.ts', "import { createLog } from './observability/log.ts';")).toEqual([]);
  });

  it('a pure layer may not load modules with side effects', () => {
    expect(listViolations('src/model/a.ts', "import { createHash } from 'node:crypto';")).toEqual([]);
    expect(listViolations('src/model/a.ts', "import { randomBytes } from 'node:crypto';")).toHaveLength(1);
    expect(listViolations('src/model/a.ts', "import { readFileSync } from 'node:fs';")).toHaveLength(1);
    expect(listViolations('src/model/a.ts', "import { send } from '../transports/transport.ts';")).toHaveLength(1);
    expect(listViolations('src/message/a.ts', "import nodemailer from 'nodemailer';")).toHaveLength(1);
  });

  it('model may import no other folder, types included', () => {
    expect(listViolations('src/model/a.ts', "import type { Store } from '../store/contract.ts';")).toHaveLength(1);
    expect(listViolations('src/model/a.ts', "import { mask } from '../printing/escape.ts';")).toHaveLength(1);
  });

  it('the wiring layers may load every layer', () => {
    const text =
      "import { a } from './http/a.ts';\nimport { b } from './store/b.ts';\nimport { systemClock } from './clock.ts';";
    expect(listViolations('src/main.ts', text)).toEqual([]);
    expect(listViolations('src/cli/serve.ts', "import { startService } from '../main.ts';")).toEqual([]);
  });

  it('only the store may load SQLite, and only the command line may start programs', () => {
    expect(listViolations('src/operator/a.ts', "import { DatabaseSync } from 'node:sqlite';")).toHaveLength(1);
    expect(listViolations('src/main.ts', "import { spawn } from 'node:child_process';")).toHaveLength(1);
  });

  it('a layer that is in no list is reported', () => {
    expect(listUnknownLayers(['src/http/a.ts', 'src/clock.ts', 'src/gadgets/a.ts'])).toHaveLength(1);
  });
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
