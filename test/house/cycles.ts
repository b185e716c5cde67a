/**
 * Finds import cycles: groups of files in which each file reaches every other file through imports (Tarjan's
 * strongly connected components). With `withTypeImports`, type-only imports are included.
 */
import { posix } from 'node:path';
import type { SourceFile } from './source.ts';

/**
 * Returns one line for each cycle, with its files in alphabetical order. With `getUnit`, which returns the unit of a path, such
 * as its folder, the cycles are those of the units.
 */
export function findImportCycles(
  files: readonly SourceFile[],
  withTypeImports: boolean,
  getUnit: (path: string) => string = (path) => path,
): readonly string[] {
  const targets = new Map<string, Set<string>>();
  for (const { path, imports } of files) {
    const unitTargets = targets.get(getUnit(path)) ?? new Set();
    targets.set(getUnit(path), unitTargets);
    for (const { specifier, typeOnly } of imports)
      if (specifier.startsWith('.') && (withTypeImports || !typeOnly))
        unitTargets.add(getUnit(posix.normalize(posix.join(posix.dirname(path), specifier))));
  }
  const visitIndexes = new Map<string, number>();
  const lowestIndexes = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[] = [];

  function visitFile(path: string): number {
    const index = visitIndexes.size;
    visitIndexes.set(path, index);
    stack.push(path);
    let lowestIndex = index;
    for (const target of targets.get(path) ?? []) {
      if (!targets.has(target)) continue;
      if (!visitIndexes.has(target)) lowestIndex = Math.min(lowestIndex, visitFile(target));
      else if (stack.includes(target))
        lowestIndex = Math.min(lowestIndex, lowestIndexes.get(target) ?? visitIndexes.get(target) ?? lowestIndex);
    }
    lowestIndexes.set(path, lowestIndex);
    if (lowestIndex === index) {
      const component = stack.splice(stack.indexOf(path)).sort();
      if (component.length > 1) cycles.push(component.join(', '));
    }
    return lowestIndex;
  }

  for (const path of targets.keys()) if (!visitIndexes.has(path)) visitFile(path);
  return cycles.sort();
}
