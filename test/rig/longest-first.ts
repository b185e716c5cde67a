/**
 * Long files run first, so that no worker runs one at the end alone. A fresh checkout has no durations, so folder and
 * size estimate them. A worker ends when the next file belongs to another project.
 */
import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ROOT } from '../house/source.ts';

/** The folders whose test files start processes or databases, ordered by the duration of their files, longest first. */
const SLOW_FOLDERS = ['browser', 'faults', 'scenarios', 'long', 'package', 'contract'];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranks = new Map(files.map((file) => [file, rankFile(file)] as const));
    const compare = (one: TestSpecification, other: TestSpecification) => {
      const [a, b] = [ranks.get(one), ranks.get(other)];
      if (a === undefined || b === undefined) return 0;
      return a.projectRank - b.projectRank || a.folderRank - b.folderRank || b.bytes - a.bytes;
    };
    return files.toSorted(compare);
  }
}

function rankFile({ moduleId, project }: TestSpecification): {
  readonly projectRank: number;
  readonly folderRank: number;
  readonly bytes: number;
} {
  const folder = relative(ROOT, moduleId).split('/')[1] ?? '';
  const rank = SLOW_FOLDERS.indexOf(folder);
  return {
    // The project with the short files runs last.
    projectRank: project.name === 'sqlite' ? 1 : 0,
    folderRank: rank < 0 ? SLOW_FOLDERS.length : rank,
    bytes: statSync(moduleId).size,
  };
}
