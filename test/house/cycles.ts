/**
 * Finds import cycles: groups of files in which each file reaches every other by its imports (Tarjan's strongly connected
 * components). With `types`, type-only imports count too.
 */
import { posix } from 'node:path';
import type { SourceFile } from './source.ts';

/** One line for each cycle, with its files in alphabetical order. */
export function importCycles(files: readonly SourceFile[], types: boolean): readonly string[] {
  const targets = new Map(
    files.map(({ path, imports }) => [
      path,
      imports
        .filter(({ specifier, typeOnly }) => specifier.startsWith('.') && (types || !typeOnly))
        .map(({ specifier }) => posix.normalize(posix.join(posix.dirname(path), specifier))),
    ]),
  );
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[] = [];

  function visit(path: string): number {
    const index = order.size;
    order.set(path, index);
    stack.push(path);
    let low = index;
    for (const target of targets.get(path) ?? []) {
      if (!targets.has(target)) continue;
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (stack.includes(target)) low = Math.min(low, lowest.get(target) ?? order.get(target) ?? low);
    }
    lowest.set(path, low);
    if (low === index) {
      const group = stack.splice(stack.indexOf(path)).sort();
      if (group.length > 1) cycles.push(group.join(', '));
    }
    return low;
  }

  for (const path of targets.keys()) if (!order.has(path)) visit(path);
  return cycles.sort();
}
