/** Formats a number of bytes. */

const UNITS = ['B', 'kB', 'MB', 'GB'];

/** Returns a text such as `12.3 MB`. Each unit is 1024 times the next smaller unit. */
export function formatBytes(count: number): string {
  let value = count;
  let unitIndex = 0;
  while (value >= 1024 && unitIndex < UNITS.length - 1) {
    value /= 1024;
    unitIndex += 1;
  }
  return `${unitIndex === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unitIndex]}`;
}
